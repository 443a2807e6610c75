// Runs the steps of one entry of an image: launches kernels over groups, follows if, while and for,
// fills and copies buffers, checks host conditions. The image must be validated, and buffers must
// have at least the bytes of their formulas. Results do not depend on the number of threads, nor on
// how groups are divided into tasks.
#pragma once
#include <array>

#include "runtime/collective/rank_exchange.h"
#include "runtime/core/sizes/host_value.h"
#include "runtime/exec/narrow_tensor.h"
#include "runtime/exec/task_runner.h"
#include "runtime/tuning/tuning.h"

namespace cinch::rt {

/// What a call moved, if ProgramImage::counts_accesses; else all zero and empty.
struct AccessCounts {
  struct Kernel {
    std::uint64_t launches = 0;
    // Of all launches; bits are rounded up for each launch
    std::uint64_t bytes_read = 0, bytes_written = 0;
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

/// A launch of at least one group, and the threads that run it.
struct LaunchSize {
  const KernelInfo& kernel;
  std::uint64_t num_groups = 1;
  std::uint32_t threads = 1;
  const HostExprPool& exprs;
  const HostEnv& env;
};

/// How many groups of the launch one task takes.
std::uint64_t groups_per_task(const LaunchSize& launch, const ExecutorOptions& options);

/// What one call works on. All spans outlive the call.
struct CallInputs {
  HostEnv env;                            // of the host formulas; params as HostValue
  std::span<const std::uint64_t> params;  // KernelArgs::params
  DrawWords draw{};
  std::span<void* const> buffers;              // by BufferIndex; null if the entry does not use it
  std::span<const std::int64_t> buffer_bytes;  // by BufferIndex
  NarrowTensor narrow = {};                    // in place of the pointer to its buffer
};

struct CallOutcome {
  /// A non-finite gradient value was found; later steps did not run.
  bool non_finite = false;
  AccessCounts accesses;
};

class EntryRun;

enum class RunState : std::uint8_t {
  Ended,
  NonFinite,  // as CallOutcome::non_finite
  Meets       // at a collective: its output must be there before the run goes on
};

/// Runs one entry at a time; a new run ends the one before.
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

  /// Replaces the code for the runs that follow. Results must not depend on it.
  void set_kernels(std::vector<KernelFunction> kernels);

  /// Runs an entry; the image must have it. A non-finite value is reported before a failed check of
  /// the same launch. Errors: CheckFailed (with the check's message; no later step ran), Cancelled,
  /// Overflow (a formula), InvalidArgument (a formula needs a count), Unavailable (loops of 2^28
  /// steps), Internal (a collective).
  Result<CallOutcome> run(EntryKind entry, const CallInputs& inputs);

  /// The same in parts, from one meeting of the ranks to the next. What the inputs point to
  /// outlives the run. `begin` itself runs nothing. Errors: those of formulas.
  Status begin(EntryKind entry, const CallInputs& inputs);
  /// Runs to the next collective or to the end. Do not call it after the end or after an error.
  /// Errors: those of `run`.
  Result<RunState> resume();
  /// The collective at which the run waits.
  const CollectiveCall& meeting() const;
  AccessCounts take_accesses();
  /// How often the body of each loop of the entry ran in the last run. Loops are in program order,
  /// outer ones before inner ones.
  std::vector<std::int64_t> loop_rounds() const;

 private:
  ExecutorOptions options_;
  std::unique_ptr<EntryRun> run_;  // reused from call to call
};

}  // namespace cinch::rt
