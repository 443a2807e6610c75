// Opening, and what is done with states; the tasks themselves are in device_run_tasks.cpp.
#include "runtime/sync/device_tasks.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/session/tensor_convert.h"

namespace cinch::rt {

DeviceTasks::DeviceTasks(const Plan& plan, const DeviceTaskOptions& options)
    : plan_(plan),
      options_(options),
      device_(options.device.plain->device()),
      stream_(options.device.stream),
      sums_of_payloads_(plan, options.world),
      protocols_(plan),
      has_gradient_(plan.pieces.size()),
      checked_(2 * plan.pieces.size()) {}

Result<std::unique_ptr<RankTasks>> DeviceTasks::open(const Plan& plan,
                                                     const DeviceTaskOptions& options) {
  DeviceTaskOptions complete = options;
  auto& plain = complete.device.plain;
  if (plain == nullptr && !complete.device.programs.empty()) plain = complete.device.programs[0];
  if (plain == nullptr) {
    return fail(ErrorKind::InvalidArgument,
                "a rank on a GPU needs some program for it, also where no tensor has one");
  }
  for (const auto& program : complete.device.programs) {
    if (program->device() == plain->device()) continue;
    return fail(ErrorKind::InvalidArgument, "programs of one rank for different devices");
  }
  std::unique_ptr<DeviceTasks> tasks(new DeviceTasks(plan, complete));
  if (Status status = tasks->start(); !status) return tl::unexpected<Error>(status.error());
  return tasks;
}

DeviceTasks::~DeviceTasks() {
  const std::lock_guard lock(turns());
  const GpuDevice::Scope scope(*device_);
  // After a failed step something may still be under way in memory that goes now.
  (void)device_->driver().stream_synchronize(stream_);
  wire_.reset();
  pinned_ = {};
  units_.clear();
  sums_.reset();
  arrays_.reset();
  memory_.reset();
  if (owns_stream_) (void)device_->driver().stream_destroy(stream_);
}

Status DeviceTasks::start() {
  const std::lock_guard lock(turns());
  if (stream_ == nullptr) {
    constexpr unsigned kNonBlocking = 1;
    const GpuDevice::Scope scope(*device_);
    const GpuCode code = device_->driver().stream_create(&stream_, kNonBlocking);
    if (Status status = device_->status(code, "creating a stream"); !status) return status;
    owns_stream_ = true;
  }
  auto arrays = GpuArrays::make(options_.device.plain, stream_);
  if (!arrays) return tl::unexpected<Error>(arrays.error());
  arrays_ = std::make_unique<GpuArrays>(std::move(*arrays));
  auto memory =
      DeviceMemory::make(plan_, options_.rank, pieces_apart(), gathered_bytes(), device_, stream_);
  if (!memory) return tl::unexpected<Error>(memory.error());
  memory_ = std::make_unique<DeviceMemory>(std::move(*memory));
  for (const auto& program : options_.device.programs) {
    sums_of_payloads_.add_codec(program->info());
  }
  if (Status status = open_wire(); !status) return status;
  if (Status status = open_sums(); !status) return status;
  for (const Task& task : plan_.ranks[options_.rank].tasks) need_units(task);
  for (auto& [key, unit] : units_) {
    if (Status status = open_unit(unit); !status) return status;
  }
  return wait();
}

// Room for the payloads of one task whose messages are put together when their lengths are known.
std::uint64_t DeviceTasks::gathered_bytes() const {
  std::uint64_t most = 0;
  for (const Task& task : plan_.ranks[options_.rank].tasks) {
    if (task.kind != TaskKind::Encode || is_dense(plan_, task)) continue;
    if (info_of(codec_of(plan_, task)).wire.counts.empty()) continue;
    std::uint64_t bytes = 0;
    for (const std::uint32_t slot : task.writes) {
      if (is_packed(slot)) bytes += gathering_room(slot);
    }
    most = std::max(most, bytes);
  }
  return most;
}

Status DeviceTasks::open_wire() {
  const std::span<std::uint8_t> bytes = memory_->wire();
  auto wire = DeviceWire::open(plan_, {bytes, device_, options_.device.turns}, stream_,
                               *options_.transport, codecs_added_here());
  if (!wire) return tl::unexpected<Error>(wire.error());
  wire_ = std::move(*wire);
  if (!wire_->is_used()) {
    pinned_ = PinnedMemory(device_, options_.host_wire);
    return Ok{};
  }
  // What pads a message is sent, too: never what was in memory before.
  const GpuDevice::Scope scope(*device_);
  const GpuCode code = device_->driver().fill(memory_->slot(0), 0, bytes.size(), stream_);
  if (Status status = device_->status(code, "clearing messages"); !status) return status;
  // Memory that is made while exchanges are under way may wait for these.
  if (options_.device.has_tensors || plan_.pieces.empty()) return Ok{};
  const auto values = memory_->values(0);
  return values ? Status(Ok{}) : tl::unexpected<Error>(values.error());
}

// Results that may not lie where they are made from: of a `sync`, and of a finish that stays a sum.
PieceList DeviceTasks::pieces_apart() const {
  PieceList apart;
  for (const Task& task : plan_.ranks[options_.rank].tasks) {
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

void DeviceTasks::need_units(const Task& task) {
  for (const std::uint32_t group : task.groups) {
    const PieceList& pieces = plan_.groups[group].pieces;
    const std::uint32_t codec = plan_.groups[group].codec;
    if (codec == kDense || task.is_dense || pieces.empty()) continue;
    for (const Site site : sites_of(task, info_of(codec))) {
      if (!info_of(codec).has_sync) {
        units_.try_emplace({pieces[0], site}, Unit{codec, site, pieces, nullptr, false});
        continue;
      }
      for (const std::uint32_t piece : pieces) {
        units_.try_emplace({piece, site}, Unit{codec, site, {piece}, nullptr, false});
      }
    }
  }
}

Status DeviceTasks::open_unit(Unit& unit) {
  GpuSessionOptions options;
  const bool is_matrix = info_of(unit.codec).is_matrix;
  for (const std::uint32_t piece : unit.pieces) {
    const Piece& of = plan_.pieces[piece];
    const PlanTensor& tensor = plan_.tensors[of.tensor];
    options.tensors.push_back({is_matrix ? tensor.rows : of.num_elems, is_matrix ? tensor.cols : 1,
                               of.tensor, of.number});
  }
  options.world = options_.world;
  options.worker = options_.rank;
  options.seed = site_seed(options_.seed, unit.site);
  options.keeps_states = true;
  auto session = GpuSession::open(options_.device.programs[unit.codec], options, stream_);
  if (!session) {
    Error error = session.error();
    error.message = describe_piece(plan_, unit.pieces[0]) + ": " + error.message;
    return tl::unexpected<Error>(std::move(error));
  }
  unit.session = std::make_unique<GpuSession>(std::move(*session));
  return collect(unit);
}

Status DeviceTasks::collect(Unit& unit) {
  unit.begun.clear();
  const auto outcomes = unit.session->collect(stream_);
  if (!outcomes) return tl::unexpected<Error>(outcomes.error());
  sizes_.clear();
  for (std::size_t i = 0; i < outcomes->size(); ++i) {
    const GpuTensorOutcome& outcome = (*outcomes)[i];
    sizes_.push_back(static_cast<std::uint64_t>(outcome.payload_bytes));
    if (outcome.status) continue;
    Error error = outcome.status.error();
    error.message = describe_piece(plan_, unit.pieces[i]) + ": " + error.message;
    return tl::unexpected<Error>(std::move(error));
  }
  return Ok{};
}

Status DeviceTasks::check(Unit& unit, const Task& task) {
  if (!wire_->is_used()) return collect(unit);
  if (std::ranges::find(unit.begun, &task) == unit.begun.end()) unit.begun.push_back(&task);
  return Ok{};
}

// Which of several tasks it was the device does not say.
Status DeviceTasks::collect_begun(Unit& unit) {
  std::vector<std::string> names;
  for (const Task* task : unit.begun) {
    std::string name = describe_task(plan_, *task);
    if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
  }
  Status status = collect(unit);
  if (!status) {
    Error& error = status.error();
    error.message = fmt::format("{}: {}", fmt::join(names, " or "), error.message);
  }
  return status;
}

Status DeviceTasks::wait() const {
  const GpuDevice::Scope scope(*device_);
  return device_->status(device_->driver().stream_synchronize(stream_), "waiting for the device");
}

Status DeviceTasks::set_parameter(std::uint32_t codec, std::string_view name, double value) {
  const std::lock_guard lock(turns());
  for (auto& [key, unit] : units_) {
    if (unit.codec != codec) continue;
    if (Status status = unit.session->set_parameter(name, value); !status) return status;
  }
  return Ok{};
}

Status DeviceTasks::begin_step(std::uint64_t step) {
  const std::lock_guard lock(turns());
  step_ = step;
  protocols_.begin_step();
  has_gradient_.assign(plan_.pieces.size(), false);
  for (auto& [key, unit] : units_) unit.is_kept = false;
  for (auto& [key, unit] : units_) {
    if (Status status = unit.session->keep_states(stream_); !status) return status;
    unit.is_kept = true;
    if (info_of(unit.codec).has_sync) continue;
    for (std::size_t i = 0; i < unit.pieces.size(); ++i) {
      const auto bound = unit.session->payload_bound(i, step);
      if (!bound) return tl::unexpected<Error>(bound.error());
      const Status status = check_room(plan_, unit.pieces[i], *bound, step);
      if (!status) return status;
    }
  }
  return Ok{};
}

Status DeviceTasks::end_step() {
  const std::lock_guard lock(turns());
  Status status = wait();
  for (auto& [key, unit] : units_) {
    if (unit.begun.empty()) continue;
    if (Status own = collect_begun(unit); status && !own) status = own;
  }
  return status;
}

// Where the device itself has failed nothing can be taken back: the step's error says so.
void DeviceTasks::take_back_step() {
  const std::lock_guard lock(turns());
  (void)wait();
  for (auto& [key, unit] : units_) {
    if (unit.is_kept) (void)unit.session->take_back_states(stream_);
  }
  (void)wait();
}

void DeviceTasks::take_back(std::uint32_t piece) {
  const std::lock_guard lock(turns());
  for (auto& [key, unit] : units_) {
    const auto found = std::ranges::find(unit.pieces, piece);
    if (found == unit.pieces.end() || !unit.is_kept) continue;
    const auto tensor = static_cast<std::size_t>(found - unit.pieces.begin());
    (void)unit.session->take_back_states(stream_, tensor);
  }
  (void)wait();
}

// Rare, so it goes by the host.
Status DeviceTasks::make_nan(std::uint32_t piece, PieceMemory& memory) {
  const std::lock_guard lock(turns());
  const GpuDevice::Scope scope(*device_);
  const TensorView update = memory.update(piece);
  const std::size_t bytes = static_cast<std::size_t>(update.num_elems * update.dtype.bits / 8);
  std::vector<std::uint8_t> host(bytes);
  const TensorView nan{host.data(), update.dtype, update.num_elems};
  TaskRunner runner(1);
  const bool is_here = !options_.device.has_tensors;
  Status status = fill_nan(is_here ? update : nan, runner, nullptr);
  if (!status || is_here) return status;
  status = copy_in(reinterpret_cast<GpuAddress>(update.data), host);
  return status ? wait() : status;
}

class DeviceTasks::UnitStates : public SiteStates {
 public:
  UnitStates(DeviceTasks& tasks, GpuSession& session, std::size_t tensor)
      : tasks_(tasks), session_(session), tensor_(tensor) {}
  const ProgramInfo& info() const override { return session_.info(); }
  Result<std::vector<std::uint8_t>> as_bytes() const override {
    const std::lock_guard lock(tasks_.turns());
    return session_.states_as_bytes(tensor_, tasks_.stream_);
  }
  Status set(std::span<const std::uint8_t> bytes) override {
    const std::lock_guard lock(tasks_.turns());
    return session_.set_states(tensor_, bytes, tasks_.stream_);
  }

 private:
  DeviceTasks& tasks_;
  GpuSession& session_;
  std::size_t tensor_;
};

void DeviceTasks::visit_states(const SiteVisitor& visit) {
  for (auto& [key, unit] : units_) {
    if (info_of(unit.codec).states.empty()) continue;
    for (std::size_t i = 0; i < unit.pieces.size(); ++i) {
      UnitStates states(*this, *unit.session, i);
      visit({unit.pieces[i], unit.site}, states);
    }
  }
}

}  // namespace cinch::rt
