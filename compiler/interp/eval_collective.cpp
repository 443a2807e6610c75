// Collectives: all ranks' arrays in rank order, then the part that this rank gets.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "compiler/interp/evaluator.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"
#include "runtime/core/numbers/scalar_eval.h"

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

std::vector<Array> Evaluator::meet(const Array& array) {
  if (!exchange_) {
    if (call_.inputs.world != 1) {
      stop(rt::ErrorKind::InvalidArgument, "collectives of several ranks need run_ranks");
    }
    return {array};
  }
  std::vector<Array> ranks = exchange_->meet(call_.inputs.worker, array);
  if (ranks.empty()) stop(rt::ErrorKind::Cancelled, "another rank has left the protocol");
  return ranks;
}

// Element by element, in rank order.
Array Evaluator::join_ranks(const Op& op, const std::vector<Array>& ranks) const {
  const auto joins = function_.combiners[op.attrs.combiner.index()].op;
  CINCH_CHECK(joins, "ranks joined by a lambda");
  Array result = ranks.front();
  for (std::size_t w = 1; w < ranks.size(); ++w) {
    for (std::size_t i = 0; i < result.bits.size(); ++i) {
      const Element operands[] = {result.bits[i], ranks[w].bits[i]};
      result.bits[i] = evaluate_scalar(*joins, result.dtype, operands);
    }
  }
  return result;
}

void Evaluator::eval_all_reduce(const Op& op) {
  Array result = join_ranks(op, meet(in(op, 0)));
  if (op.attrs.mean) {
    const Element world = convert_element(kU32, result.dtype, call_.inputs.world);
    for (Element& x : result.bits) {
      const Element operands[] = {x, world};
      x = evaluate_scalar(ScalarOp::div, result.dtype, operands);
    }
  }
  out(op) = std::move(result);
}

void Evaluator::eval_all_gather(const Op& op) {
  const std::vector<Array> ranks = meet(in(op, 0));
  Array result =
      make_matrix(in(op, 0).dtype, static_cast<std::int64_t>(ranks.size()), in(op, 0).size());
  result.bits.clear();
  for (const Array& rank : ranks) {
    result.bits.insert(result.bits.end(), rank.bits.begin(), rank.bits.end());
  }
  out(op) = std::move(result);
}

void Evaluator::eval_all_to_all(const Op& op) {
  const std::vector<Array> ranks = meet(in(op, 0));
  Array result = in(op, 0);
  result.bits.clear();
  const std::int64_t width = result.dims[1], worker = call_.inputs.worker;
  std::int64_t size = static_cast<std::int64_t>(ranks.size()), stride = 1;
  if (op.attrs.size.is_valid()) {
    size = call_.size(op.attrs.size);
    stride = call_.size(op.attrs.size2);
  }
  if (size * stride <= 0 || static_cast<std::int64_t>(ranks.size()) % (size * stride) != 0) {
    stop(rt::ErrorKind::CheckFailed, "ranks that are in no group");
  }
  const std::int64_t first = worker / (size * stride) * size * stride + worker % stride;
  const std::int64_t own = worker / stride % size;
  for (std::int64_t i = 0; i < size; ++i) {
    const Array& rank = ranks[static_cast<std::size_t>(first + i * stride)];
    const auto row = rank.bits.begin() + own * width;
    result.bits.insert(result.bits.end(), row, row + width);
  }
  out(op) = std::move(result);
}

void Evaluator::eval_reduce_scatter(const Op& op) {
  const Array joined = join_ranks(op, meet(in(op, 0)));
  const std::int64_t width = joined.dims[1];
  Array result = make_vector(joined.dtype, width);
  const auto row = joined.bits.begin() + call_.inputs.worker * width;
  result.bits.assign(row, row + width);
  out(op) = std::move(result);
}

void Evaluator::eval_broadcast(const Op& op) {
  const std::vector<Array> ranks = meet(in(op, 0));
  if (op.attrs.index >= ranks.size()) stop(rt::ErrorKind::OutOfRange, "there is no such root");
  out(op) = ranks[op.attrs.index];
}

void Evaluator::eval_broadcast_from(const Op& op) {
  const std::size_t root = find_root(op);
  out(op) = meet(in(op, 0))[root];
}

std::vector<Evaluator::Element> Evaluator::tell_all(Element own) {
  return mapped<Element>(meet(make_scalar(kU64, own)),
                         [&](const Array& rank) { return rank.bits[0]; });
}

std::size_t Evaluator::find_root(const Op& op) {
  const std::vector<Element> roots = tell_all(in(op, 1).bits[0]);
  const auto number = [](Element root) {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(root));
  };
  for (std::size_t rank = 0; rank < roots.size(); ++rank) {
    if (roots[rank] != roots[0]) {
      stop(rt::ErrorKind::CheckFailed,
           fmt::format("{}: rank 0 names rank {}, rank {} names rank {}", op.attrs.text,
                       number(roots[0]), rank, number(roots[rank])));
    }
  }
  if (roots[0] >= roots.size()) {
    stop(rt::ErrorKind::CheckFailed, fmt::format("{}: there is no rank {} of {}", op.attrs.text,
                                                 number(roots[0]), roots.size()));
  }
  return roots[0];
}

std::size_t Evaluator::find_sender(const Op& op) {
  const std::vector<Element> to = tell_all(in(op, 1).bits[0]);
  const std::size_t nobody = to.size();
  std::vector<std::size_t> from(to.size(), nobody);
  for (std::size_t rank = 0; rank < to.size(); ++rank) {
    const std::string& place = op.attrs.text;
    if (to[rank] >= to.size()) {
      stop(rt::ErrorKind::CheckFailed,
           fmt::format("{}: rank {} sends to rank {} of {}", place, rank,
                       static_cast<std::int32_t>(static_cast<std::uint32_t>(to[rank])), to.size()));
    }
    std::size_t& sender = from[to[rank]];
    if (sender != nobody) {
      stop(rt::ErrorKind::CheckFailed,
           fmt::format("{}: ranks {} and {} both send to rank {}", place, sender, rank, to[rank]));
    }
    sender = rank;
  }
  return from[call_.inputs.worker];
}

void Evaluator::eval_send_receive(const Op& op) {
  const std::size_t sender = find_sender(op);
  out(op) = meet(in(op, 0))[sender];
}

// Ranks meet with arrays of equal size, so each pads its own to the longest.
std::vector<Evaluator::Elements> Evaluator::meet_counted(const Op& op, Element own_length) {
  const std::vector<Element> lengths = tell_all(own_length);
  Array own = in(op, 0);
  own.dims[0] = static_cast<std::int64_t>(*std::ranges::max_element(lengths));
  own.bits.resize(static_cast<std::size_t>(own.dims[0]));
  std::vector<Elements> all;
  for (Array& rank : meet(own)) {
    rank.bits.resize(lengths[all.size()]);
    all.push_back(std::move(rank.bits));
  }
  return all;
}

void Evaluator::give_counted(const Op& op, Elements received) {
  out(op, 1) = make_scalar(kU32, received.size());
  Array result = make_out(op);
  if (received.size() > result.bits.size()) {
    stop(rt::ErrorKind::Internal, "an array that is longer than its receiver's");
  }
  std::ranges::copy(received, result.bits.begin());
  out(op) = std::move(result);
}

void Evaluator::eval_all_gather_counted(const Op& op) {
  Elements joined;
  for (const Elements& rank : meet_counted(op, in(op, 1).bits[0])) {
    joined.insert(joined.end(), rank.begin(), rank.end());
  }
  give_counted(op, std::move(joined));
}

void Evaluator::eval_send_receive_counted(const Op& op) {
  const std::size_t sender = find_sender(op);
  give_counted(op, std::move(meet_counted(op, in(op, 2).bits[0])[sender]));
}

}  // namespace cinch::interp
