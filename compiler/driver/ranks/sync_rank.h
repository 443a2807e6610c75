// One rank of `cinch sync`, over any transport. All ranks run this and learn the same about each
// other.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/call/tensor_view.h"
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

// Takes all steps with the same gradients, by tensor of the plan. Throws CommandError.
SyncReport run_sync_rank(const SyncRankOptions& options,
                         const std::vector<rt::ConstTensorView>& gradients,
                         rt::Transport& transport);

}  // namespace cinch::driver
