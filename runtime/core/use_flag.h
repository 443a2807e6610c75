// Notes that somebody uses what takes one call at a time, so that a second call meanwhile, of
// another thread or of a callback, is an error and not a race.
#pragma once
#include <atomic>
#include <cstdint>
#include <thread>

namespace cinch::rt {

class UseFlag {
 public:
  enum class Kind : std::uint8_t { None, Call, Look };

  /// A call that meets another fails; one that meets a look, which is soon over, waits for it. A
  /// look that meets either fails.
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

/// For as long as it lives, if nobody else uses it.
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
