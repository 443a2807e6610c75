// A barrier that carries arrays.
#include "compiler/interp/exchange.h"

#include <utility>

namespace cinch::interp {

std::vector<Array> Exchange::meet(std::size_t rank, Array array) {
  std::unique_lock lock(mutex_);
  if (num_left_ < arrived_.size()) return {};
  arrived_[rank] = std::move(array);
  const std::size_t round = round_;
  if (++num_arrived_ == arrived_.size()) {
    complete_ = arrived_;
    num_arrived_ = 0;
    ++round_;
    changed_.notify_all();
    return complete_;
  }
  // The last arrays stay until all ranks have arrived for the next round, so that a late one still
  // finds them.
  changed_.wait(lock, [&] { return round_ != round || num_left_ < arrived_.size(); });
  return round_ != round ? complete_ : std::vector<Array>{};
}

void Exchange::leave() {
  const std::lock_guard lock(mutex_);
  --num_left_;
  changed_.notify_all();
}

}  // namespace cinch::interp
