#include "runtime/sync/device/offload.h"

#include <utility>

namespace cinch::rt {
namespace {

// Elements are copied as they are, and have at most this size.
constexpr std::int64_t kMostElementBytes = 4;

std::unique_lock<std::mutex> shared_turn(const ComputeDevice& gpu) {
  std::mutex* const turns = gpu.gpu()->turns;
  return turns == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*turns);
}

}  // namespace

HostCopies::HostCopies(const Plan& plan, std::uint32_t rank, ComputeDevice& gpu,
                       const PieceMemory& memory)
    : plan_(plan),
      own_(plan.ranks[rank]),
      gpu_(gpu),
      memory_(memory.beside()),
      copies_(plan.tensors.size()),
      apart_(plan.tensors.size()),
      gradients_(plan.tensors.size()),
      updates_(plan.tensors.size()),
      is_bound_(plan.tensors.size()),
      fetched_(own_.tasks.size()) {
  memory_.bind(gradients_, updates_);
}

Result<std::unique_ptr<HostCopies>> HostCopies::open(const Plan& plan, std::uint32_t rank,
                                                     ComputeDevice& gpu,
                                                     const PieceMemory& memory) {
  std::unique_ptr<HostCopies> made(new HostCopies(plan, rank, gpu, memory));
  CINCH_TRY(made->start());
  return made;
}

Status HostCopies::start() {
  const auto turn = take_turn(gpu_);
  for (std::size_t t = 0; t < plan_.tensors.size(); ++t) {
    if (!plan_.tensors[t].on_cpus) continue;
    CINCH_TRY(copies_[t].resize(plan_.tensors[t].num_elems() * kMostElementBytes));
    if (copies_[t].size_bytes() == 0) continue;
    pinned_.emplace_back(gpu_.gpu()->device, copies_[t].bytes());
  }
  const GpuDevice::Scope scope(device());
  GpuCode code = kGpuSuccess;
  const auto make = [&](auto&& call) {
    if (code == kGpuSuccess) code = call();
  };
  for (GpuStream* stream : {&out_, &in_}) {
    make([&] { return driver().stream_create(stream, kGpuStreamNonBlocking); });
  }
  for (GpuEvent* event : {&given_, &delivered_}) {
    make([&] { return driver().event_create(event, kGpuEventWithoutTiming); });
  }
  for (std::size_t t = 0; t < fetched_.size(); ++t) {
    if (own_.tasks[t].kind != TaskKind::Fetch) continue;
    make([&] { return driver().event_create(&fetched_[t], kGpuEventWithoutTiming); });
  }
  return device().status(code, "making streams of copies");
}

HostCopies::~HostCopies() {
  const auto turn = take_turn(gpu_);
  const GpuDevice::Scope scope(device());
  // After a failed step, copies may still use memory that is freed now.
  for (GpuStream stream : {out_, in_}) {
    if (stream == nullptr) continue;
    (void)driver().stream_synchronize(stream);
    (void)driver().stream_destroy(stream);
  }
  fetched_.push_back(given_);
  fetched_.push_back(delivered_);
  for (GpuEvent event : fetched_) {
    if (event != nullptr) (void)driver().event_destroy(event);
  }
}

std::size_t HostCopies::size_bytes() const {
  std::int64_t bytes = 0;
  for (const auto* all : {&copies_, &apart_}) {
    for (const AlignedBuffer& each : *all) bytes += each.size_bytes();
  }
  return static_cast<std::size_t>(bytes);
}

Status HostCopies::bind(std::uint32_t tensor, const ConstTensorView& gradient,
                        const TensorView& update) {
  if (is_bound_[tensor]) return Ok{};
  is_bound_[tensor] = true;
  const std::int64_t num_elems = plan_.tensors[tensor].num_elems();
  gradients_[tensor] = {copies_[tensor].data(), gradient.dtype, num_elems};
  std::uint8_t* place = copies_[tensor].data();
  if (gradient.dtype.bits != update.dtype.bits) {
    CINCH_TRY(apart_[tensor].resize(num_elems * kMostElementBytes));
    place = apart_[tensor].data();
  }
  updates_[tensor] = {place, update.dtype, num_elems};
  return Ok{};
}

Status HostCopies::fetch(const Task& task, const PieceMemory& user) {
  const auto turn = take_turn(gpu_);
  const GpuDevice::Scope scope(device());
  // Gradients are ready in the order of the GPU's stream.
  GpuCode code = driver().event_record(given_, gpu_.gpu()->stream);
  if (code == kGpuSuccess) code = driver().stream_wait_event(out_, given_, 0);
  for (const std::uint32_t piece : pieces_of(plan_, task)) {
    const ConstTensorView from = user.gradient(piece);
    if (from.num_elems == 0 || code != kGpuSuccess) continue;
    CINCH_TRY(gpu_.check_memory(from.data));
    CINCH_TRY(bind(plan_.pieces[piece].tensor, from, user.update(piece)));
    auto* const to = static_cast<std::uint8_t*>(const_cast<void*>(memory_.gradient(piece).data));
    code =
        driver().copy_to_host(to, reinterpret_cast<GpuAddress>(from.data), byte_count(from), out_);
  }
  if (code == kGpuSuccess) code = driver().event_record(fetched_[index_of(task)], out_);
  return device().status(code, "copying gradients from the device");
}

Status HostCopies::deliver(const Task& task, const PieceMemory& user) {
  const auto turn = take_turn(gpu_);
  const GpuDevice::Scope scope(device());
  GpuCode code = kGpuSuccess;
  for (const std::uint32_t piece : pieces_of(plan_, task)) {
    const TensorView to = user.update(piece);
    if (to.num_elems == 0 || code != kGpuSuccess) continue;
    CINCH_TRY(gpu_.check_memory(to.data));
    code = driver().copy_to_device(reinterpret_cast<GpuAddress>(to.data),
                                   memory_.update(piece).data, byte_count(to), in_);
  }
  if (code == kGpuSuccess) code = driver().event_record(delivered_, in_);
  if (code == kGpuSuccess) {
    code = driver().stream_wait_event(gpu_.gpu()->stream, delivered_, 0);
  }
  return device().status(code, "copying updates to the device");
}

Status HostCopies::wait_before(const Task& task) const {
  for (const std::uint32_t earlier : task.after) {
    if (fetched_[earlier] == nullptr) continue;
    // Not in the device's own turn: the GPU gets its work meanwhile.
    const auto turn = shared_turn(gpu_);
    const GpuDevice::Scope scope(device());
    const GpuCode code = driver().event_synchronize(fetched_[earlier]);
    CINCH_TRY(device().status(code, "waiting for a gradient"));
  }
  return Ok{};
}

Status HostCopies::wait() {
  const auto turn = take_turn(gpu_);
  const GpuDevice::Scope scope(device());
  Status status = Ok{};
  for (GpuStream stream : {out_, in_}) {
    Status own = device().status(driver().stream_synchronize(stream), "waiting for copies");
    if (status) status = std::move(own);
  }
  return status;
}

Result<std::unique_ptr<RankTasks>> OffloadTasks::open(const Plan& plan,
                                                      std::unique_ptr<ComputeDevice> gpu,
                                                      std::unique_ptr<ComputeDevice> host,
                                                      DeviceTaskOptions options,
                                                      const PieceMemory& memory) {
  std::unique_ptr<OffloadTasks> made(new OffloadTasks);
  ComputeDevice& queue = *gpu;
  options.part = DevicePart::Gpu;
  made->gpu_ = TRY(DeviceTasks::open(plan, std::move(gpu), options));
  if (options.has_tensors) {
    made->copies_ = TRY(HostCopies::open(plan, options.rank, queue, memory));
  }
  options.part = DevicePart::Cpus;
  options.has_tensors = true;
  made->host_ = TRY(DeviceTasks::open(plan, std::move(host), options));
  return std::unique_ptr<RankTasks>(std::move(made));
}

OffloadTasks::~OffloadTasks() {
  copies_.reset();  // uses the queue of gpu_
}

Status OffloadTasks::set_parameter(std::uint32_t codec, std::string_view name, double value) {
  CINCH_TRY(gpu_->set_parameter(codec, name, value));
  return host_->set_parameter(codec, name, value);
}

Status OffloadTasks::begin_step(std::uint64_t step) {
  if (copies_ != nullptr) copies_->begin_step();
  CINCH_TRY(gpu_->begin_step(step));
  return host_->begin_step(step);
}

Status OffloadTasks::run(const Task& task, PieceMemory& memory) {
  if (!task.on_cpus) return gpu_->run(task, memory);
  if (copies_ == nullptr) return host_->run(task, memory);
  if (task.kind == TaskKind::Fetch) return copies_->fetch(task, memory);
  if (task.kind == TaskKind::Deliver) return copies_->deliver(task, memory);
  CINCH_TRY(copies_->wait_before(task));
  return host_->run(task, copies_->memory());
}

Status OffloadTasks::end_step() {
  Status copied = copies_ == nullptr ? Status(Ok{}) : copies_->wait();
  Status on_gpu = gpu_->end_step(), on_host = host_->end_step();
  if (!copied) return copied;
  return on_gpu ? on_host : on_gpu;
}

void OffloadTasks::take_back_step() {
  gpu_->take_back_step();
  host_->take_back_step();
}

void OffloadTasks::take_back(std::uint32_t piece) {
  gpu_->take_back(piece);
  host_->take_back(piece);
}

Status OffloadTasks::reset_states(std::uint32_t piece) {
  CINCH_TRY(gpu_->reset_states(piece));
  return host_->reset_states(piece);
}

SyncMemory OffloadTasks::memory_use() const {
  SyncMemory use = gpu_->memory_use();
  const SyncMemory host = host_->memory_use();
  use.states += host.states;
  use.workspace += host.workspace + (copies_ == nullptr ? 0 : copies_->size_bytes());
  use.sums += host.sums;
  return use;
}

void OffloadTasks::visit_states(const SiteVisitor& visit) {
  gpu_->visit_states(visit);
  host_->visit_states(visit);
}

}  // namespace cinch::rt
