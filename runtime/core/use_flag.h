// Notes that somebody uses what takes one call at a time, so that a second call meanwhile, of
// another thread or of a callback, is an error and not a race.
#pragma once
#include <atomic>

namespace cinch::rt {

class UseFlag {
 public:
  bool try_take() { return !is_taken_.exchange(true, std::memory_order_acquire); }
  void give_back() { is_taken_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> is_taken_{false};
};

/// For as long as it lives, if nobody else uses it.
class Use {
 public:
  explicit Use(UseFlag& flag) : flag_(flag.try_take() ? &flag : nullptr) {}
  ~Use() {
    if (flag_ != nullptr) flag_->give_back();
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  explicit operator bool() const { return flag_ != nullptr; }

 private:
  UseFlag* flag_;
};

}  // namespace cinch::rt
