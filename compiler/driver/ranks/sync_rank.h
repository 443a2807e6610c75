// `cinch sync`: one rank, the GPUs of ranks, and the final report.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/driver/ranks/sync_tensors.h"
#include "runtime/call/tensor_view.h"
#include "runtime/gpu/program.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/sync_session.h"

namespace cinch::driver {

struct SyncRankOptions {
  rt::SyncOptions session;
  std::uint64_t first_step = 0, num_steps = 1;
  std::vector<std::vector<std::uint8_t>> saved_states;  // of all ranks, to start from; may be empty
  bool saves_states = false;
  // By tensor of the plan: when the gradient becomes ready after the begin of the step. Empty: all
  // are ready at once.
  std::vector<double> ready_seconds;
};

// What a rank knows at the end. All of it except its own update is the same on all ranks.
struct SyncReport {
  std::vector<std::vector<float>> updates;    // by tensor, of the last step
  std::vector<double> step_ms;                // by step: of the slowest rank
  std::vector<rt::TaskTimes> times;           // by rank, of the last step
  std::vector<std::uint64_t> sent_bytes;      // by rank, of the last step
  double relative_error = 0;                  // ‖mean - update‖ / ‖mean‖ of the last step
  bool same_bits = true;                      // of the updates of all steps
  bool was_stopped = false;                   // some rank got a signal
  std::optional<rt::RestoreReport> restored;  // about this rank's states
  std::vector<std::uint8_t> saved_states;     // of this rank after the last step, if requested
};

// One rank, over any transport. All ranks run this and learn the same about each other. Takes all
// steps with the same gradients, by tensor of the plan. Throws CommandError.
SyncReport run_sync_rank(const SyncRankOptions& options,
                         const std::vector<rt::ConstTensorView>& gradients,
                         rt::Transport& transport);

/// The GPUs on which ranks of this process compute.
class SyncDevices {
 public:
  // `programs` are by codec. Must outlive the sessions of all ranks.
  SyncDevices(const ExecutionOptions& execution, const std::vector<ProgramOptions>& programs)
      : execution_(execution), programs_(programs) {}

  // The GPU of a rank: ranks take the machine's GPUs in turn. Nothing if the options name a CPU.
  // Call it from one thread. Throws CommandError.
  std::optional<rt::SyncDevice> of(std::uint32_t rank);

 private:
  rt::SyncDevice open(int ordinal);

  const ExecutionOptions& execution_;
  const std::vector<ProgramOptions>& programs_;
  std::map<int, rt::SyncDevice> opened_;  // by ordinal
  std::mutex turns_;                      // for an emulated device, which runs on one thread
};

// The final report: one value, as JSON or as text.
nlohmann::json report_of(const SyncCommandOptions& options, const SyncSubject& subject,
                         const rt::Plan& plan, const SyncReport& report);
void print_sync_report(const nlohmann::json& report);

}  // namespace cinch::driver
