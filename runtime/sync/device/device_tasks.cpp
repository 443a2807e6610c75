// Opening, and operations on states; the tasks themselves are in device_run_tasks.cpp.
#include "runtime/sync/device/device_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "runtime/session/tensor_convert.h"

namespace cinch::rt {

DeviceTasks::DeviceTasks(const Plan& plan, std::unique_ptr<ComputeDevice> device,
                         const DeviceTaskOptions& options)
    : plan_(plan),
      device_(std::move(device)),
      options_(options),
      own_(plan.ranks[options.rank]),
      protocols_(plan),
      has_gradient_(plan.pieces.size()),
      checked_(2 * plan.pieces.size()) {}

Result<std::unique_ptr<RankTasks>> DeviceTasks::open(const Plan& plan,
                                                     std::unique_ptr<ComputeDevice> device,
                                                     const DeviceTaskOptions& options) {
  std::unique_ptr<DeviceTasks> tasks(new DeviceTasks(plan, std::move(device), options));
  CINCH_TRY(tasks->start());
  return tasks;
}

DeviceTasks::~DeviceTasks() {
  const auto turn = take_turn(*device_);
  // After a failed step, work may still use memory that is freed now.
  (void)device_->wait();
  wire_.reset();
  pinned_ = {};
  lists_.clear();
  sums_.reset();
  memory_.reset();
}

Status DeviceTasks::start() {
  const auto turn = take_turn(*device_);
  DeviceMemoryNeeds needs{{}, gathered_bytes(), options_.host_wire};
  // Sessions on a host handle this themselves.
  if (!device_->is_host()) needs.apart = pieces_apart();
  auto memory = DeviceMemory::make(plan_, options_.rank, *device_, needs);
  CINCH_TRY(memory);
  memory_ = std::make_unique<DeviceMemory>(std::move(*memory));
  for (std::uint32_t codec = 0; codec < device_->num_programs(); ++codec) {
    summed_.push_back(SummedArrays::of(info_of(codec), options_.world));
  }
  if (device_->gpu() != nullptr) {
    if (Status status = open_wire(); !status) return status;
    if (Status status = open_sums(); !status) return status;
  }
  for (const Task& task : own_.tasks) need_lists(task);
  for (auto& [key, list] : lists_) {
    const auto& [codec, site, first] = key;
    if (Status status = open_list(codec, site, list); !status) return status;
  }
  return device_->wait();
}

// Room for the payloads of one task whose messages are assembled when their lengths are known.
std::uint64_t DeviceTasks::gathered_bytes() const {
  std::uint64_t most = 0;
  for (const Task& task : own_.tasks) {
    if (device_->is_host() || task.kind != TaskKind::Encode || is_dense(plan_, task)) continue;
    if (has_known_sizes(codec_of(plan_, task))) continue;
    std::uint64_t bytes = 0;
    for (const std::uint32_t slot : task.writes) {
      if (is_packed(slot)) bytes += gathering_room(slot);
    }
    most = std::max(most, bytes);
  }
  return most;
}

Status DeviceTasks::open_wire() {
  const GpuQueue& gpu = *device_->gpu();
  const std::span<std::uint8_t> bytes = memory_->wire();
  auto wire = DeviceWire::open(plan_, {bytes, gpu.device, gpu.turns}, gpu.stream,
                               *options_.transport, codecs_added_here());
  CINCH_TRY(wire);
  wire_ = std::move(*wire);
  if (!wire_->is_used()) {
    pinned_ = PinnedMemory(gpu.device, options_.host_wire);
    return Ok{};
  }
  // Padding of a message is sent, too; it must never be old memory contents.
  if (Status status = device_->clear(bytes.data(), bytes.size()); !status) return status;
  // Allocates now: an allocation during exchanges might wait for them.
  if (options_.has_tensors || plan_.pieces.empty()) return Ok{};
  const auto values = memory_->values(0);
  return values ? Status(Ok{}) : tl::unexpected<Error>(values.error());
}

// Pieces whose result must not overwrite its input: of a `sync`, and of a finish that leaves a sum.
PieceList DeviceTasks::pieces_apart() const {
  PieceList apart;
  for (const Task& task : own_.tasks) {
    if (task.groups.empty() || is_dense(plan_, task)) continue;
    const bool is_sync = task.kind == TaskKind::Synchronise || task.is_last_part();
    const bool stays = task.kind == TaskKind::Finish && task.to == Value::Sum &&
                       info_of(codec_of(plan_, task)).has_finish;
    if (!is_sync && !stays) continue;
    const PieceList pieces = pieces_of(plan_, task);
    apart.insert(apart.end(), pieces.begin(), pieces.end());
  }
  return apart;
}

void DeviceTasks::need_lists(const Task& task) {
  for (const std::uint32_t group : task.groups) {
    const auto& [codec, pieces] = plan_.groups[group];
    if (codec == kDense || task.is_dense) continue;
    for (const Site site : sites_of(task, info_of(codec))) {
      for (const std::uint32_t piece : pieces) {
        List& list = lists_[key_of(codec, site, info_of(codec).has_sync ? piece : pieces[0])];
        if (list.has(piece)) continue;
        list.entries.resize(std::max<std::size_t>(list.entries.size(), piece + 1), kNoEntry);
        list.entries[piece] = static_cast<std::uint32_t>(list.pieces.size());
        list.pieces.push_back(piece);
      }
    }
  }
}

Status DeviceTasks::open_list(std::uint32_t codec, Site site, List& list) {
  std::vector<ListTensor> tensors;
  const bool is_matrix = info_of(codec).is_matrix;
  for (const std::uint32_t piece : list.pieces) {
    const Piece& of = plan_.pieces[piece];
    const PlanTensor& tensor = plan_.tensors[of.tensor];
    tensors.push_back({is_matrix ? tensor.rows : of.num_elems, is_matrix ? tensor.cols : 1,
                       of.tensor, of.number});
  }
  const ListOptions options{
      options_.world, options_.rank, site_seed(options_.seed, site), {}, true};
  auto sessions = device_->open(codec, options, tensors);
  if (!sessions) return named(tl::unexpected<ListError>(sessions.error()), list.pieces);
  list.sessions = std::move(*sessions);
  list.bounds.resize(list.pieces.size());
  return device_->is_host() ? Status(Ok{}) : collect(list);
}

ListCall DeviceTasks::call_on(const List& list, const PieceList& pieces) {
  which_.clear();
  for (const std::uint32_t piece : pieces) which_.push_back(list.entry_of(piece));
  return {step_, which_};
}

Status DeviceTasks::named(const ListStatus& status, const PieceList& pieces) const {
  if (status) return Ok{};
  Error error = status.error().error;
  if (status.error().place < pieces.size()) {
    error.message = describe_piece(plan_, pieces[status.error().place]) + ": " + error.message;
  }
  return tl::unexpected<Error>(std::move(error));
}

Status DeviceTasks::collect(List& list) {
  list.begun.clear();
  auto outcomes = list.sessions->collect();
  CINCH_TRY(outcomes);
  outcomes_ = std::move(*outcomes);
  for (std::size_t i = 0; i < outcomes_.size(); ++i) {
    if (outcomes_[i].status) continue;
    return named(tl::unexpected<ListError>(ListError{outcomes_[i].status.error(), i}), list.pieces);
  }
  return Ok{};
}

Status DeviceTasks::check(List& list, const Task& task) {
  if (device_->is_host()) return Ok{};
  if (!is_deferred()) return collect(list);
  if (std::ranges::find(list.begun, &task) == list.begun.end()) list.begun.push_back(&task);
  return Ok{};
}

// The device does not tell which of several tasks failed.
Status DeviceTasks::collect_begun(List& list) {
  std::vector<std::string> names;
  for (const Task* task : list.begun) {
    std::string name = describe_task(plan_, *task);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  Status status = collect(list);
  if (!status) {
    Error& error = status.error();
    error.message = fmt::format("{}: {}", fmt::join(names, " or "), error.message);
  }
  return status;
}

Status DeviceTasks::set_parameter(std::uint32_t codec, std::string_view name, double value) {
  const auto turn = take_turn(*device_);
  for (auto& [key, list] : lists_) {
    if (std::get<0>(key) != codec) continue;
    if (Status status = list.sessions->set_parameter(name, value); !status) return status;
  }
  return Ok{};
}

Status DeviceTasks::begin_step(std::uint64_t step) {
  const auto turn = take_turn(*device_);
  step_ = step;
  protocols_.begin_step();
  has_gradient_.assign(plan_.pieces.size(), false);
  for (auto& [key, list] : lists_) {
    if (Status status = list.sessions->keep_states(); !status) return status;
    if (info_of(std::get<0>(key)).has_sync) continue;
    for (std::size_t i = 0; i < list.pieces.size(); ++i) {
      const auto bound = list.sessions->payload_bound(i, step);
      CINCH_TRY(bound);
      if (Status status = check_room(plan_, list.pieces[i], *bound, step); !status) return status;
      list.bounds[i] = static_cast<std::uint64_t>(*bound);
    }
  }
  return Ok{};
}

Status DeviceTasks::end_step() {
  const auto turn = take_turn(*device_);
  Status status = device_->wait();
  for (auto& [key, list] : lists_) {
    if (list.begun.empty()) continue;
    if (Status own = collect_begun(list); status && !own) status = own;
  }
  return status;
}

// If the device itself has failed, nothing can be undone: the step's error says so.
void DeviceTasks::take_back_step() {
  const auto turn = take_turn(*device_);
  (void)device_->wait();
  for (auto& [key, list] : lists_) {
    (void)list.sessions->take_back_states();
  }
  (void)device_->wait();
}

void DeviceTasks::take_back(std::uint32_t piece) {
  const auto turn = take_turn(*device_);
  for (auto& [key, list] : lists_) {
    if (list.has(piece)) (void)list.sessions->take_back_tensor(list.entry_of(piece));
  }
  (void)device_->wait();
}

// This is rare, so it goes through the host.
Status DeviceTasks::fill_update(std::uint32_t piece, Fill with, PieceMemory& memory) {
  const auto turn = take_turn(*device_);
  const TensorView update = memory.update(piece);
  const bool is_here = device_->is_host() || !options_.has_tensors;
  std::vector<std::uint8_t> host(is_here ? 0 : byte_count(update));
  const TensorView filled =
      is_here ? update : TensorView{host.data(), update.dtype, update.num_elems};
  TaskRunner runner(1);
  Status status = Ok{};
  if (with == Fill::NaN) {
    status = fill_nan(filled, runner, nullptr);
  } else if (filled.num_elems > 0) {
    std::memset(filled.data, 0, byte_count(filled));
  }
  if (!status || is_here) return status;
  status = device_->copy_in(update.data, host);
  return status ? device_->wait() : status;
}

// The states of a newly opened session.
Status DeviceTasks::reset_states(std::uint32_t piece) {
  const auto turn = take_turn(*device_);
  for (auto& [key, list] : lists_) {
    const auto& [codec, site, first] = key;
    if (!list.has(piece) || info_of(codec).states.empty()) continue;
    List fresh;
    fresh.pieces = {piece};
    if (Status status = open_list(codec, site, fresh); !status) return status;
    const auto states = fresh.sessions->states_as_bytes(0);
    CINCH_TRY(states);
    Status status = list.sessions->set_states(list.entry_of(piece), *states);
    if (!status) return status;
  }
  return Ok{};
}

SyncMemory DeviceTasks::memory_use() const {
  const auto turn = take_turn(*device_);
  SyncMemory use;
  for (const auto& [key, list] : lists_) {
    use.states += list.sessions->state_bytes();
    use.workspace += list.sessions->workspace_bytes();
  }
  use.messages = own_.wire_bytes;
  for (const std::uint32_t piece : summed_pieces(plan_, options_.rank))
    use.sums += f32_bytes(piece);
  return use;
}

void DeviceTasks::visit_states(const SiteVisitor& visit) {
  for (auto& [key, list] : lists_) {
    if (info_of(std::get<0>(key)).states.empty()) continue;
    for (std::size_t i = 0; i < list.pieces.size(); ++i) {
      SiteStates states(*list.sessions, i, *device_);
      visit({list.pieces[i], std::get<1>(key)}, states);
    }
  }
}

}  // namespace cinch::rt
