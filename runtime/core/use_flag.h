// Marks an object that takes one call at a time as in use, so that a second call meanwhile, from
// another thread or from a callback, is an error and not a race.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>

namespace cinch::rt {

class UseFlag {
 public:
  enum class Kind : std::uint8_t { None, Call, Look };

  /// A call that finds another call fails. A call that finds a look waits, since looks are short. A
  /// look that finds either fails.
  bool try_take(Kind kind) {
    for (;;) {
      Kind seen = Kind::None;
      if (use_.compare_exchange_weak(seen, kind, std::memory_order_acquire)) return true;
      if (seen == Kind::Call || (seen == Kind::Look && kind == Kind::Look)) return false;
      std::this_thread::yield();
    }
  }
  void give_back() { use_.store(Kind::None, std::memory_order_release); }

 private:
  std::atomic<Kind> use_{Kind::None};
};

/// Holds the flag as long as it lives, if nobody else held it.
class Use {
 public:
  explicit Use(UseFlag& flag, UseFlag::Kind kind = UseFlag::Kind::Call)
      : flag_(flag.try_take(kind) ? &flag : nullptr) {}
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
