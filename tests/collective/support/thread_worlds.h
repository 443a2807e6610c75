// Every transport whose ranks are threads of the test.
#pragma once
#include <functional>
#include <span>

#include "runtime/collective/transport.h"

namespace cinch::testing {

/// Closes the transport of a rank that leaves before its body ends.
using Leave = std::function<void()>;
using WorldBody = std::function<void(rt::Transport&, const Leave&)>;

/// Who adds floats: the library as it likes, or we in rank order.
enum class Sums : std::uint8_t { Library, RankOrder };

struct ThreadWorld {
  const char* name;
  /// Runs the body on a thread for each rank. Fails the test where a transport does not open, and
  /// where a library was used wrongly.
  void (*run)(std::uint32_t world, const WorldBody& body, Sums sums);
  bool names_silent_ranks;  // does it know whom an exchange waits for?
  bool finds_faults;        // of size, and ranks that have gone; else it hangs
};
/// Loopback, loopback with slow links, lent calls, the double of NCCL; where UCX is, that over TCP
/// and over shared memory.
std::span<const ThreadWorld> thread_worlds();

}  // namespace cinch::testing
