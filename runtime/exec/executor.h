// Runs the steps of one entry of an image: launches kernels over groups, follows if, while and for,
// fills and copies buffers, checks host conditions. Assumes a validated image and buffers of at
// least the bytes that their formulas give. Results do not depend on the number of threads nor on
// how groups are cut into tasks.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/collective/rank_exchange.h"
#include "runtime/core/error.h"
#include "runtime/exec/task_runner.h"
#include "runtime/image/image.h"
#include "runtime/tuning/numbers.h"

namespace cinch::rt {

/// What a call moved, where ProgramImage::counts_accesses; else all zero and empty.
struct AccessCounts {
  struct Kernel {
    std::uint64_t launches = 0;
    std::uint64_t bytes_read = 0, bytes_written = 0;  // of all launches; bits rounded up for each
  };
  std::uint64_t bytes_read = 0, bytes_written = 0;  // kernels, zero fills and copies
  std::vector<Kernel> kernels;                      // by kernel index
};

struct ExecutorOptions {
  /// Groups per task; 0 chooses by the kernel's bytes. Rounded up to the kernel's group_multiple.
  std::uint64_t groups_per_task = 0;
  /// Read between tasks and between steps; may be null.
  const std::atomic<bool>* cancelled = nullptr;
  CpuTuning tuning;
};

/// What one call works on. All spans outlive the call.
struct CallInputs {
  HostEnv env;                            // of the host formulas; params as HostValue
  std::span<const std::uint64_t> params;  // KernelArgs::params
  DrawWords draw{};
  std::span<void* const> buffers;  // by BufferIndex; null where the entry does not touch it
  std::span<const std::int64_t> buffer_bytes;  // by BufferIndex
};

struct CallOutcome {
  /// A non-finite gradient value was seen; the steps after that did not run.
  bool non_finite = false;
  AccessCounts accesses;
};

class EntryRun;

enum class RunState : std::uint8_t {
  Ended,
  NonFinite,  // as CallOutcome::non_finite
  Meets       // at a collective: its output is to be there before the run goes on
};

/// Runs one entry at a time; a run that begins ends the one before.
class Executor {
 public:
  /// `kernels` by kernel index. `image` and `runner` outlive the executor.
  Executor(const ProgramImage& image, std::vector<KernelFunction> kernels, TaskRunner& runner,
           ExecutorOptions options);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// For the runs that follow.
  void set_tuning(const CpuTuning& tuning) { options_.tuning = tuning; }

  /// Runs an entry that is present. Errors: CheckFailed (message of the program's check; no step
  /// after the failing one ran), Cancelled, Overflow (a formula), InvalidArgument (a formula asks
  /// for a count), Unavailable (loops of 2^28 steps), Internal (a collective). Non-finite is found
  /// before a failed check of the same launch.
  Result<CallOutcome> run(EntryKind entry, const CallInputs& inputs);

  /// The same in parts, from one place where ranks meet to the next; what the inputs point at
  /// outlives the run. Nothing has run yet after `begin`. Errors: those of formulas.
  Status begin(EntryKind entry, const CallInputs& inputs);
  /// On to the next collective or to the end; no more after that, nor after an error, which are
  /// those of `run`.
  Result<RunState> resume();
  /// The collective where it stands.
  const CollectiveCall& meeting() const;
  AccessCounts take_accesses();
  /// How often the body of each loop of the entry ran in the last run; loops in the order in which
  /// they stand, outer ones before those in them.
  std::vector<std::int64_t> loop_rounds() const;

 private:
  ExecutorOptions options_;
  std::unique_ptr<EntryRun> run_;  // keeps its memory from call to call
};

}  // namespace cinch::rt
