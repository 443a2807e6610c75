// Facts about tasks that are needed before they run.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/call/parameters.h"
#include "runtime/core/error.h"
#include "runtime/plan/plan.h"
#include "runtime/session/session.h"

namespace cinch::rt {
using PieceList = std::vector<std::uint32_t>;

/// Lists the pieces of all groups of the task, in order, in the memory that `to` has.
void list_pieces(const Plan& plan, const Task& task, PieceList& to);
PieceList pieces_of(const Plan& plan, const Task& task);
std::uint32_t codec_of(const Plan& plan, const Task& task);
/// Does the codec carry the sums of another (Group::carries)? Then of this one.
std::optional<std::uint32_t> codec_carried_by(const Plan& plan, std::uint32_t codec);
/// Does the task work on plain f32?
bool is_dense(const Plan& plan, const Task& task);

/// Makes a seed for the site, so that different sites draw differently.
std::uint64_t site_seed(std::uint64_t seed, Site site);
/// The site whose sessions decode what `encoded_at` encoded. If decoding repeats no draws, these
/// are the sessions that encode the rank's own gradient, so that no states are held for decoding
/// alone.
Site decoding_site(const ProgramInfo& info, Site encoded_at);

/// Which of a rank's values a device works on (PlanTensor::on_cpus).
enum class DevicePart : std::uint8_t { All, Gpu, Cpus };
inline bool is_part(DevicePart part, bool on_cpus) {
  return part == DevicePart::All || (part == DevicePart::Cpus) == on_cpus;
}

/// Pieces of that part that some task of the rank adds up, each once.
PieceList summed_pieces(const Plan& plan, std::uint32_t rank, DevicePart part);

/// Sites at which this task needs sessions of a program.
std::vector<Site> sites_of(const Task& task, const ProgramInfo& info);

/// Does a payload of at most `bound` bytes, perhaps of the carrier of sums, fit into its room in
/// the plan? Errors: InvalidArgument.
Status check_room(const Plan& plan, std::uint32_t piece, bool is_of_carrier, std::int64_t bound,
                  std::uint64_t step);
/// Do all payloads of a codec fit with these parameters? Errors: OutOfRange.
Status check_room(const Plan& plan, std::uint32_t codec, const ProgramInfo& info,
                  const ParameterValues& parameters, std::uint64_t step);

/// Rounds up to a multiple of kArenaAlignment, where the next payload of a message begins.
std::size_t round_up_to_arena(std::size_t bytes);
/// Appends the payloads of an untrusted message to `to`. If packed, they follow one another;
/// otherwise each begins where the largest payloads before it would end. Errors: CorruptPayload.
Status split_message(const Plan& plan, const Group& group, std::span<const std::uint8_t> message,
                     bool is_packed, std::vector<PayloadBytes>& to);

// When the tasks of a step ran: phases, and a timeline that opens in Perfetto.

/// Seconds since the clock's epoch, which the ranks of one machine share.
inline double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// In seconds_now.
struct TaskTime {
  double begin = 0, end = 0;
  std::uint64_t sent_bytes = 0;  // to other ranks
};

struct TaskTimes {
  double begin = 0, end = 0;    // of the step
  std::vector<TaskTime> tasks;  // by the rank's plan
  std::vector<double> ready;    // by tensor: when it became ready
  bool is_in_parts = false;     // did tensors become ready one after the other, while the step ran?
};

struct Phase {
  std::string name;    // "encode", "all_gather"
  double seconds = 0;  // summed; phases of different lanes overlap
  std::uint64_t sent_bytes = 0;
  std::uint64_t num_tasks = 0;
};

/// Phases in the order of their first task.
std::vector<Phase> phases_of(const RankPlan& plan, const TaskTimes& times);
/// [{"phase", "ms", "sent_bytes", "tasks"}]
nlohmann::json phases_json(const RankPlan& plan, const TaskTimes& times);

/// The "traceEvents" of all ranks, as JSON of the Chrome trace format: a process for each rank, a
/// thread for each lane. `by_rank` has an entry per rank; one without tasks is left out.
std::string trace_json(const Plan& plan, const std::vector<TaskTimes>& by_rank);

// Reports one rank's last step as JSON, for tools that watch a training run.

/// Bytes that one rank holds.
struct SyncMemory {
  std::size_t states = 0, workspace = 0, messages = 0, sums = 0;
  std::size_t gradients = 0;  // copies, for measuring errors
};

/// Bytes that the rank sent to others, by tensor. Tensors that share a message count its bytes in
/// proportion to their largest sizes.
std::vector<double> sent_bytes_by_tensor(const Plan& plan, std::uint32_t rank,
                                         const TaskTimes& times);

/// {"step_ms", "sent_bytes", "phases": [{"phase", "ms", "sent_bytes", "tasks"}], "tensors":
/// [{"name", "elements", "compressed", "sent_bytes", "ready_ms", "error"}], "memory_bytes":
/// {"states", "workspace", "messages", "sums", "gradients"}}. `ready_ms` counts from the step's
/// begin. `errors` holds the errors of sync_session_impl.h by tensor; NaN becomes null. If it is
/// empty there is no "error".
std::string step_report_json(const Plan& plan, std::uint32_t rank, const TaskTimes& times,
                             const SyncMemory& memory, std::span<const double> errors);

}  // namespace cinch::rt
