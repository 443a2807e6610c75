// All transports whose ranks are threads of the test.
#pragma once
#include <functional>
#include <span>

#include "runtime/collective/transport.h"

namespace cinch::testing {

/// Closes the transport of a rank that leaves before its body ends.
using Leave = std::function<void()>;
using WorldBody = std::function<void(rt::Transport&, const Leave&)>;

/// Who adds floats: the library in its own order, or Cinch in rank order.
enum class Sums : std::uint8_t { Library, RankOrder };

struct ThreadWorld {
  const char* name;
  /// Runs the body on a thread for each rank. Fails the test if a transport does not open, or if a
  /// library was used wrongly.
  void (*run)(std::uint32_t world, const WorldBody& body, Sums sums);
  bool names_silent_ranks;  // does it know which ranks an exchange waits for?
  // Does it detect wrong sizes, and ranks that have gone? Otherwise it hangs
  bool finds_faults;
};
/// Loopback, loopback with slow links, the callback transport, the fake of NCCL; with UCX, also UCX
/// over TCP and over shared memory.
std::span<const ThreadWorld> thread_worlds();

}  // namespace cinch::testing
