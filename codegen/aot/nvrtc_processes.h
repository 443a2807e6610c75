// Runs NVRTC in several processes, since within one process it compiles one text at a time, on
// about one core.
#pragma once
#include <sys/types.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

/// Child processes, each of which opens NVRTC at its first request. They end with this object, and
/// with the thread that made it.
class NvrtcProcesses {
 public:
  /// Forks up to `count` processes. Forks none if this process has more than one thread, which a
  /// fork would not copy, or if the system refuses.
  explicit NvrtcProcesses(std::size_t count);
  ~NvrtcProcesses();
  NvrtcProcesses(const NvrtcProcesses&) = delete;
  NvrtcProcesses& operator=(const NvrtcProcesses&) = delete;

  std::size_t count() const { return children_.size(); }
  /// Calls nvrtc_binary in a free process; waits for one. From any thread. Errors: those of
  /// nvrtc_binary, and Internal if the process has ended.
  rt::Result<std::vector<std::uint8_t>> compile(const KernelSource& source, bool is_ptx);

 private:
  struct Child {
    pid_t process = 0;
    int socket = -1;
  };
  void start_child();

  std::vector<Child> children_;
  std::mutex mutex_;  // guards `free_`
  std::condition_variable is_free_;
  std::vector<std::size_t> free_;  // indices of children
};

}  // namespace cinch::codegen
