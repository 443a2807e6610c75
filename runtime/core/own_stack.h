// Work that needs more stack than the caller's thread may have: threads of hosts may have 64 KB,
// and calls may come from coroutines.
#pragma once
#include <cstddef>
#include <functional>

namespace cinch::rt {

/// Does this thread have as many bytes of stack left? False if it runs on another stack than the
/// thread was made with.
bool has_stack(std::size_t bytes);

/// Runs `work` on a new thread with a stack of so many bytes, of which only what is used is real
/// memory, and waits for it. Signals are handled on the host's threads. What `work` throws is
/// thrown here. If no thread can be started, `work` runs on this one.
void run_on_own_stack(std::size_t bytes, const std::function<void()>& work);

}  // namespace cinch::rt
