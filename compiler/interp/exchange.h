// How the ranks of a sync meet: every collective exchanges arrays once.
#pragma once

#include <condition_variable>
#include <mutex>
#include <vector>

#include "compiler/interp/array.h"

namespace cinch::interp {

/// All ranks call `meet` equally often and in the same order, each on a thread of its own.
class Meeting {
 public:
  Meeting() = default;
  Meeting(const Meeting&) = delete;
  Meeting& operator=(const Meeting&) = delete;
  virtual ~Meeting() = default;

  /// Returns all ranks' arrays in rank order when every rank has arrived. Empty if a rank has left:
  /// the others can never meet again.
  virtual std::vector<Array> meet(std::size_t rank, Array array) = 0;
};

/// For ranks that are threads.
class Exchange : public Meeting {
 public:
  explicit Exchange(std::size_t num_ranks) : arrived_(num_ranks), num_left_(num_ranks) {}

  std::vector<Array> meet(std::size_t rank, Array array) override;
  /// A rank leaves (it has ended or failed).
  void leave();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Array> arrived_, complete_;
  std::size_t num_arrived_ = 0;
  std::size_t num_left_;
  std::size_t round_ = 0;
};

}  // namespace cinch::interp
