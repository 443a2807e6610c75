// Opening, and operations on states; the tasks themselves are in device_run_tasks.cpp.
#include "runtime/sync/device/device_tasks.h"

#include <cstring>

#include "runtime/session/tensor_convert.h"

namespace cinch::rt {

DeviceTasks::DeviceTasks(const Plan& plan, std::unique_ptr<ComputeDevice> device,
                         const DeviceTaskOptions& options)
    : plan_(plan),
      device_(std::move(device)),
      options_(options),
      own_(plan.ranks[options.rank]),
      lists_(plan, *device_, {options.world, options.rank, options.machine_ranks, options.seed}),
      protocols_(plan, options.rank) {}

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
  lists_.close();
  sums_.reset();
  memory_.reset();
}

Status DeviceTasks::start() {
  const auto turn = take_turn(*device_);
  DeviceMemoryNeeds needs{options_.part, {}, gathered_bytes(), options_.host_wire};
  // Sessions on a host handle this themselves.
  if (!device_->is_host()) needs.apart = pieces_apart();
  auto memory = TRY(DeviceMemory::make(plan_, options_.rank, *device_, needs));
  memory_ = std::make_unique<DeviceMemory>(std::move(memory));
  for (std::uint32_t codec = 0; codec < device_->num_programs(); ++codec) {
    summed_.push_back(SummedArrays::of(info_of(codec), options_.world));
  }
  if (device_->gpu() != nullptr) {
    CINCH_TRY(open_wire());
    CINCH_TRY(open_sums());
  }
  tensors_ = std::make_unique<DeviceTensors>(
      plan_, *device_, *memory_, DeviceTensors::Options{options_.has_tensors, is_deferred()});
  for (const Task& task : own_.tasks) {
    if (takes(task)) lists_.need(task);
  }
  CINCH_TRY(lists_.open());
  return device_->wait();
}

// Room for the payloads of one task whose messages are assembled when their lengths are known.
std::uint64_t DeviceTasks::gathered_bytes() const {
  std::uint64_t most = 0;
  for (const Task& task : own_.tasks) {
    if (device_->is_host() || task.kind != TaskKind::Encode || !takes(task)) continue;
    if (is_dense(plan_, task)) continue;
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
  wire_ = TRY(DeviceWire::open(plan_, {bytes, gpu.device, gpu.turns}, gpu.stream,
                               *options_.transport, codecs_added_here()));
  if (!wire_->is_used()) {
    pinned_ = PinnedMemory(gpu.device, options_.host_wire);
    return Ok{};
  }
  // Padding of a message is sent, too; it must never be old memory contents.
  CINCH_TRY(device_->clear(bytes.data(), bytes.size()));
  // Allocates now: an allocation during exchanges might wait for them.
  if (options_.has_tensors || plan_.pieces.empty()) return Ok{};
  const auto values = memory_->values(0);
  return values ? Status(Ok{}) : tl::unexpected<Error>(values.error());
}

// Pieces whose result must not overwrite its input: of a `sync`, and of a finish that leaves a sum.
PieceList DeviceTasks::pieces_apart() const {
  PieceList apart;
  for (const Task& task : own_.tasks) {
    if (task.groups.empty() || !takes(task) || is_dense(plan_, task)) continue;
    const bool is_sync = task.kind == TaskKind::Synchronise || task.is_last_part();
    const bool stays = task.kind == TaskKind::Finish && task.to == Value::Sum &&
                       info_of(codec_of(plan_, task)).has_finish;
    if (!is_sync && !stays) continue;
    const PieceList pieces = pieces_of(plan_, task);
    apart.insert(apart.end(), pieces.begin(), pieces.end());
  }
  return apart;
}

Status DeviceTasks::set_parameter(std::uint32_t codec, std::string_view name, double value) {
  const auto turn = take_turn(*device_);
  for (auto& [key, list] : lists_.all()) {
    if (std::get<0>(key) != codec) continue;
    CINCH_TRY(list.sessions->set_parameter(name, value));
  }
  return Ok{};
}

Status DeviceTasks::begin_step(std::uint64_t step) {
  const auto turn = take_turn(*device_);
  step_ = step;
  protocols_.begin_step();
  tensors_->begin_step();
  for (auto& [key, list] : lists_.all()) {
    const std::uint32_t codec = std::get<0>(key);
    list.has_inputs.assign(list.pieces.size(), 0);
    if (!list.only_decodes) CINCH_TRY(list.sessions->keep_states());
    if (info_of(codec).has_sync) continue;
    for (std::size_t i = 0; i < list.pieces.size(); ++i) {
      const auto bound = TRY(list.sessions->payload_bound(i, step));
      CINCH_TRY(check_room(plan_, list.pieces[i], lists_.is_carrier(codec), bound, step));
      list.bounds[i] = static_cast<std::uint64_t>(bound);
    }
  }
  return Ok{};
}

Status DeviceTasks::end_step() {
  const auto turn = take_turn(*device_);
  Status status = device_->wait();
  const Status begun = lists_.collect_begun();
  return status ? begun : status;
}

// If the device itself has failed, nothing can be undone: the step's error says so.
void DeviceTasks::take_back_step() {
  const auto turn = take_turn(*device_);
  (void)device_->wait();
  for (auto& [key, list] : lists_.all()) {
    if (!list.only_decodes) (void)list.sessions->take_back_states();
  }
  (void)device_->wait();
}

void DeviceTasks::take_back(std::uint32_t piece) {
  const auto turn = take_turn(*device_);
  for (auto& [key, list] : lists_.all()) {
    const bool is_kept = list.has(piece) && !list.only_decodes;
    if (is_kept) (void)list.sessions->take_back_tensor(list.entry_of(piece));
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
  if (with == Fill::NaN) {
    CINCH_TRY(fill_nan(filled, runner, nullptr));
  } else if (filled.num_elems > 0) {
    std::memset(filled.data, 0, byte_count(filled));
  }
  if (is_here) return Ok{};
  CINCH_TRY(device_->copy_in(update.data, host));
  return device_->wait();
}

// The states of a newly opened session.
Status DeviceTasks::reset_states(std::uint32_t piece) {
  const auto turn = take_turn(*device_);
  for (auto& [key, list] : lists_.all()) {
    const auto& [codec, site, first] = key;
    if (!list.has(piece) || list.only_decodes || !info_of(codec).has_states()) continue;
    DeviceList fresh;
    fresh.pieces = {piece};
    CINCH_TRY(lists_.open(codec, site, fresh));
    const auto states = TRY(fresh.sessions->states_as_bytes(0));
    CINCH_TRY(list.sessions->set_states(list.entry_of(piece), states));
  }
  return Ok{};
}

SyncMemory DeviceTasks::memory_use() const {
  const auto turn = take_turn(*device_);
  SyncMemory use;
  for (const auto& [key, list] : lists_.all()) {
    use.states += list.sessions->state_bytes();
    use.workspace += list.sessions->workspace_bytes();
  }
  use.messages = own_.wire_bytes;
  for (const std::uint32_t piece : summed_pieces(plan_, options_.rank, options_.part))
    use.sums += tensors_->f32_bytes(piece);
  return use;
}

void DeviceTasks::visit_states(const SiteVisitor& visit) {
  for (auto& [key, list] : lists_.all()) {
    if (list.only_decodes || !info_of(std::get<0>(key)).has_states()) continue;
    for (std::size_t i = 0; i < list.pieces.size(); ++i) {
      SiteStates states(*list.sessions, i, *device_);
      visit({list.pieces[i], std::get<1>(key)}, states);
    }
  }
}

}  // namespace cinch::rt
