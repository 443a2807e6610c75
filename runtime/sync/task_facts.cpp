#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <set>

#include "runtime/call/list_session.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/payload/payload.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kSizeAt = 56;  // in a payload's header

Status check_room(const Plan& plan, const Group& group, const ProgramInfo& info,
                  const ParameterValues& parameters, std::uint64_t step) {
  for (const std::uint32_t piece : group.pieces) {
    const Piece& of = plan.pieces[piece];
    const PlanTensor& tensor = plan.tensors[of.tensor];
    const TensorFacts facts{info.is_matrix ? tensor.rows : of.num_elems,
                            info.is_matrix ? tensor.cols : 1, plan.world()};
    const auto layout =
        TRY(payload_bound_layout(info, host_env(facts_for(info, facts), parameters, step)));
    const auto bytes = static_cast<std::uint64_t>(layout.size_bytes);
    const std::uint64_t room = payload_room(group, of);
    if (bytes <= room) continue;
    return fail(
        ErrorKind::OutOfRange,
        fmt::format("{}: a payload may then have {} bytes, the plan has room for {}: it was "
                    "made for the values that the session was opened with",
                    describe_piece(plan, piece), bytes, room));
  }
  return Ok{};
}

using nlohmann::json;

// The weight of a piece in a message: plans do not know payload sizes of programs with a `sync`.
double weight_of(const Piece& piece) {
  return static_cast<double>(
      piece.bound_bytes > 0 ? piece.bound_bytes : 4 * static_cast<std::uint64_t>(piece.num_elems));
}

}  // namespace

void list_pieces(const Plan& plan, const Task& task, PieceList& to) {
  to.clear();
  for (const std::uint32_t group : task.groups) {
    const PieceList& of = plan.groups[group].pieces;
    to.insert(to.end(), of.begin(), of.end());
  }
}

PieceList pieces_of(const Plan& plan, const Task& task) {
  PieceList pieces;
  list_pieces(plan, task, pieces);
  return pieces;
}

std::uint32_t codec_of(const Plan& plan, const Task& task) {
  return plan.groups[task.groups[0]].codec;
}

std::optional<std::uint32_t> codec_carried_by(const Plan& plan, std::uint32_t codec) {
  for (const Group& group : plan.groups) {
    if (group.codec == codec && group.carries != kNoGroup) return plan.groups[group.carries].codec;
  }
  return std::nullopt;
}

bool is_dense(const Plan& plan, const Task& task) {
  return task.is_dense || codec_of(plan, task) == kDense;
}

// Arbitrary odd numbers, far apart.
std::uint64_t site_seed(std::uint64_t seed, Site site) {
  return seed ^ (0x9e3779b97f4a7c15U * static_cast<std::uint64_t>(site));
}

Site decoding_site(const ProgramInfo& info, Site encoded_at) {
  return info.decode_draws ? encoded_at : Site::Worker;
}

PieceList summed_pieces(const Plan& plan, std::uint32_t rank, DevicePart part) {
  std::vector<bool> is_summed(plan.pieces.size());
  PieceList pieces;
  for (const Task& task : plan.ranks[rank].tasks) {
    const bool sums_up =
        task.kind == TaskKind::Clear || (task.kind == TaskKind::Decode && task.to == Value::Sum);
    if (!sums_up || !is_part(part, task.on_cpus)) continue;
    for (const std::uint32_t piece : pieces_of(plan, task)) {
      if (!is_summed[piece]) pieces.push_back(piece);
      is_summed[piece] = true;
    }
  }
  return pieces;
}

std::vector<Site> sites_of(const Task& task, const ProgramInfo& info) {
  switch (task.kind) {
    case TaskKind::Encode:
      return {task.site};
    case TaskKind::Decode:
    case TaskKind::DecodeAdd:
      return {decoding_site(info, task.site)};
    case TaskKind::Finish:
    case TaskKind::Part:
    case TaskKind::Synchronise:
    case TaskKind::Spread:
    case TaskKind::Join:
      return {Site::Worker};
    default:
      return {};
  }
}

Status check_room(const Plan& plan, std::uint32_t piece, bool is_of_carrier, std::int64_t bound,
                  std::uint64_t step) {
  const Piece& of = plan.pieces[piece];
  const std::uint64_t room = is_of_carrier ? of.carried_bytes : of.bound_bytes;
  if (static_cast<std::uint64_t>(bound) <= room) return Ok{};
  return invalid(
      fmt::format("{}: a payload of step {} may have {} bytes, the plan has room for {}: "
                  "it was made for other parameters or a later step",
                  describe_piece(plan, piece), step, bound, room));
}

Status check_room(const Plan& plan, std::uint32_t codec, const ProgramInfo& info,
                  const ParameterValues& parameters, std::uint64_t step) {
  if (info.has_sync) return Ok{};
  for (const Group& group : plan.groups) {
    if (group.codec != codec) continue;
    CINCH_TRY(check_room(plan, group, info, parameters, step));
  }
  return Ok{};
}

std::size_t round_up_to_arena(std::size_t bytes) {
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

Status split_message(const Plan& plan, const Group& group, std::span<const std::uint8_t> message,
                     bool is_packed, std::vector<PayloadBytes>& to) {
  std::size_t begin = 0;
  for (const std::uint32_t piece : group.pieces) {
    begin = round_up_to_arena(begin);
    const auto header = static_cast<std::size_t>(kPayloadHeaderBytes);
    std::uint64_t size = 0;
    const bool has_header = begin <= message.size() && message.size() - begin >= header;
    if (has_header) std::memcpy(&size, message.data() + begin + kSizeAt, sizeof size);
    if (!has_header || size < header || size > message.size() - begin) {
      return fail(ErrorKind::CorruptPayload,
                  fmt::format("{}: a payload of {} bytes at {} of a message of {}",
                              describe_piece(plan, piece), size, begin, message.size()));
    }
    to.push_back(message.subspan(begin, size));
    begin += is_packed ? size : payload_room(group, plan.pieces[piece]);
  }
  return Ok{};
}

namespace {

using nlohmann::json;

constexpr double kMicroseconds = 1e6;
// Rows of the trace behind those of the lanes that compute and copy.
constexpr std::size_t kNetworkRow = 4;

const char* phase_name(const Task& task) {
  return task.kind == TaskKind::Exchange ? exchange_kind_name(task.exchange)
                                         : task_kind_name(task.kind);
}

// Exchanges overlap, but events in a row of the trace must not: each goes to the first free row.
class Rows {
 public:
  std::size_t row_of(const TaskTime& time) {
    const auto found = std::ranges::find_if(ends_, [&](double end) { return end <= time.begin; });
    if (found == ends_.end()) {
      ends_.push_back(time.end);
      return ends_.size() - 1;
    }
    *found = time.end;
    return static_cast<std::size_t>(found - ends_.begin());
  }
  std::size_t size() const { return ends_.size(); }

 private:
  std::vector<double> ends_;
};

// An event that describes a process or thread of the trace: its name, or its place among the
// others.
json note_event(const char* what, std::uint32_t rank, std::size_t thread, json args) {
  return {{"ph", "M"}, {"pid", rank}, {"tid", thread}, {"name", what}, {"args", std::move(args)}};
}

// Without a sort index "network 10" would come before "network 2".
void add_thread(std::uint32_t rank, std::size_t thread, const std::string& name, json& events) {
  events.push_back(note_event("thread_name", rank, thread, {{"name", name}}));
  events.push_back(note_event("thread_sort_index", rank, thread, {{"sort_index", thread}}));
}

// If tensors became ready one after the other: the computation that made each.
void add_backward(const Plan& plan, std::uint32_t rank, const TaskTimes& times, double start,
                  std::size_t thread, json& events) {
  if (!times.is_in_parts || times.ready.empty()) return;
  std::vector<std::size_t> order(times.ready.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t t) { return times.ready[t]; });
  double before = times.begin;
  for (const std::size_t t : order) {
    const double ready = std::max(before, times.ready[t]);
    events.push_back({{"ph", "X"},
                      {"pid", rank},
                      {"tid", thread},
                      {"name", plan.tensors[t].name},
                      {"cat", "backward"},
                      {"ts", (before - start) * kMicroseconds},
                      {"dur", (ready - before) * kMicroseconds}});
    before = ready;
  }
  add_thread(rank, thread, "backward", events);
}

void add_rank(const Plan& plan, std::uint32_t rank, const TaskTimes& times, double start,
              json& events) {
  events.push_back(note_event("process_name", rank, 0, {{"name", "rank " + std::to_string(rank)}}));
  events.push_back(note_event("process_sort_index", rank, 0, {{"sort_index", rank}}));
  add_thread(rank, 0, "compute", events);
  const auto& tasks = plan.ranks[rank].tasks;
  std::vector<std::size_t> order(tasks.size());
  for (std::size_t t = 0; t < order.size(); ++t) order[t] = t;
  std::ranges::stable_sort(order, {}, [&](std::size_t t) { return times.tasks[t].begin; });
  Rows network;
  std::set<Lane> others;
  for (const std::size_t t : order) {
    const TaskTime& time = times.tasks[t];
    const Lane lane = tasks[t].lane();
    if (lane != Lane::Network && lane != Lane::Compute) others.insert(lane);
    const std::size_t thread = lane == Lane::Network   ? kNetworkRow + network.row_of(time)
                               : lane == Lane::Compute ? 0
                                                       : static_cast<std::size_t>(lane) - 1;
    events.push_back({{"ph", "X"},
                      {"pid", rank},
                      {"tid", thread},
                      {"name", phase_name(tasks[t])},
                      {"cat", lane == Lane::Network ? "network" : "compute"},
                      {"ts", (time.begin - start) * kMicroseconds},
                      {"dur", (time.end - time.begin) * kMicroseconds},
                      {"args",
                       {{"task", t},
                        {"what", describe_task(plan, tasks[t])},
                        {"sent_bytes", time.sent_bytes}}}});
  }
  add_backward(plan, rank, times, start, kNetworkRow + network.size(), events);
  for (const Lane lane : others) {
    add_thread(rank, static_cast<std::size_t>(lane) - 1, lane_name(lane), events);
  }
  for (std::size_t row = 0; row < network.size(); ++row) {
    add_thread(rank, kNetworkRow + row, row == 0 ? "network" : "network " + std::to_string(row + 1),
               events);
  }
}

}  // namespace

std::vector<Phase> phases_of(const RankPlan& plan, const TaskTimes& times) {
  std::vector<Phase> phases;
  for (std::size_t t = 0; t < times.tasks.size(); ++t) {
    const std::string name = phase_name(plan.tasks[t]);
    auto found = std::ranges::find(phases, name, &Phase::name);
    if (found == phases.end()) found = phases.insert(phases.end(), Phase{name});
    found->seconds += times.tasks[t].end - times.tasks[t].begin;
    found->sent_bytes += times.tasks[t].sent_bytes;
    ++found->num_tasks;
  }
  return phases;
}

json phases_json(const RankPlan& plan, const TaskTimes& times) {
  json list = json::array();
  for (const Phase& phase : phases_of(plan, times)) {
    list.push_back({{"phase", phase.name},
                    {"ms", phase.seconds * 1e3},
                    {"sent_bytes", phase.sent_bytes},
                    {"tasks", phase.num_tasks}});
  }
  return list;
}

std::string trace_json(const Plan& plan, const std::vector<TaskTimes>& by_rank) {
  json events = json::array();
  double start = 0;
  for (const TaskTimes& times : by_rank) {
    if (!times.tasks.empty()) start = start == 0 ? times.begin : std::min(start, times.begin);
  }
  for (std::uint32_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!by_rank[rank].tasks.empty()) add_rank(plan, rank, by_rank[rank], start, events);
  }
  return json{{"displayTimeUnit", "ms"}, {"traceEvents", events}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

std::vector<double> sent_bytes_by_tensor(const Plan& plan, std::uint32_t rank,
                                         const TaskTimes& times) {
  std::vector<double> bytes(plan.tensors.size());
  const auto& tasks = plan.ranks[rank].tasks;
  for (std::size_t t = 0; t < std::min(tasks.size(), times.tasks.size()); ++t) {
    if (times.tasks[t].sent_bytes == 0) continue;
    double whole = 0;
    for (const std::uint32_t group : tasks[t].groups) {
      for (const std::uint32_t piece : plan.groups[group].pieces) {
        whole += weight_of(plan.pieces[piece]);
      }
    }
    if (whole == 0) continue;
    const double share = static_cast<double>(times.tasks[t].sent_bytes) / whole;
    for (const std::uint32_t group : tasks[t].groups) {
      for (const std::uint32_t piece : plan.groups[group].pieces) {
        bytes[plan.pieces[piece].tensor] += share * weight_of(plan.pieces[piece]);
      }
    }
  }
  return bytes;
}

std::string step_report_json(const Plan& plan, std::uint32_t rank, const TaskTimes& times,
                             const SyncMemory& memory, std::span<const double> errors) {
  const std::vector<double> sent = sent_bytes_by_tensor(plan, rank, times);
  json tensors = json::array();
  std::uint64_t all = 0;
  for (const TaskTime& task : times.tasks) all += task.sent_bytes;
  for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
    const double ready = t < times.ready.size() ? times.ready[t] : 0;
    tensors.push_back({{"name", plan.tensors[t].name},
                       {"elements", plan.tensors[t].num_elems()},
                       {"compressed", plan.tensors[t].codec != kDense},
                       {"sent_bytes", std::llround(sent[t])},
                       {"ready_ms", std::max(0.0, ready - times.begin) * 1e3}});
    if (t < errors.size()) tensors.back()["error"] = errors[t];
  }
  const json report = {{"step_ms", (times.end - times.begin) * 1e3},
                       {"sent_bytes", all},
                       {"phases", phases_json(plan.ranks[rank], times)},
                       {"tensors", tensors},
                       {"memory_bytes",
                        {{"states", memory.states},
                         {"workspace", memory.workspace},
                         {"messages", memory.messages},
                         {"sums", memory.sums},
                         {"gradients", memory.gradients}}}};
  return report.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace cinch::rt
