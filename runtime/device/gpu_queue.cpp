// A stream of a GPU as a device; see compute_device.h.
#include "runtime/device/compute_device.h"

#include "runtime/gpu/session/session.h"

namespace cinch::rt {
namespace {

GpuAddress address_of(const void* data) {
  return reinterpret_cast<GpuAddress>(data);
}

class GpuQueueDevice : public ComputeDevice {
 public:
  explicit GpuQueueDevice(const GpuQueueOptions& options)
      : options_(options),
        queue_{options.plain->device(), options.stream, nullptr, options.turns} {}
  ~GpuQueueDevice() override {
    const auto turn = take_turn(*this);
    const GpuDevice::Scope scope(device());
    // After a failed call, work may still use memory that is freed now.
    (void)driver().stream_synchronize(queue_.stream);
    arrays_.reset();
    if (owns_stream_) (void)driver().stream_destroy(queue_.stream);
  }

  Status start() {
    const auto turn = take_turn(*this);
    if (queue_.stream == nullptr) {
      const GpuDevice::Scope scope(device());
      const GpuCode code = driver().stream_create(&queue_.stream, kGpuStreamNonBlocking);
      CINCH_TRY(device().status(code, "creating a stream"));
      owns_stream_ = true;
    }
    auto arrays = TRY(GpuArrays::make(options_.plain, queue_.stream));
    arrays_ = std::make_unique<GpuArrays>(std::move(arrays));
    queue_.arrays = arrays_.get();
    return Ok{};
  }

  bool is_host() const override { return false; }
  const GpuQueue* gpu() const override { return &queue_; }
  std::mutex* turns() const override {
    return options_.turns == nullptr ? &own_turns_ : options_.turns;
  }
  std::uint32_t num_programs() const override {
    return static_cast<std::uint32_t>(options_.programs.size());
  }
  const ProgramInfo& info(std::uint32_t program) const override {
    return options_.programs[program]->info();
  }
  ListResult<std::unique_ptr<ListSession>> open(std::uint32_t program, const ListOptions& options,
                                                std::span<const ListTensor> tensors) override {
    GpuSessionOptions common{.world = options.world,
                             .worker = options.worker,
                             .machine_ranks = options.machine_ranks,
                             .seed = options.seed,
                             .parameters = options.parameters,
                             .only_decodes = options.only_decodes,
                             .keeps_states = options.keeps_states};
    common.tensors.assign(tensors.begin(), tensors.end());
    auto session = GpuSession::open(options_.programs[program], common, queue_.stream);
    if (session) return std::make_unique<GpuSession>(std::move(*session));
    // If there is only one tensor, it is the one at fault.
    const std::size_t place = tensors.size() == 1 ? 0 : kNoPlace;
    return tl::unexpected<ListError>(ListError{std::move(session.error()), place});
  }

  Result<MemoryPieces> allocate(std::span<const std::size_t> sizes) override {
    auto arena = std::make_shared<GpuArena>();
    for (const std::size_t size : sizes) arena->add(size);
    const GpuDevice::Scope scope(device());
    CINCH_TRY(arena->allocate(queue_.device, queue_.stream));
    MemoryPieces memory;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      memory.pieces.push_back(
          reinterpret_cast<std::uint8_t*>(arena->address(i)));  // NOLINT(performance-no-int-to-ptr)
    }
    memory.owner = std::move(arena);
    return memory;
  }

  Status check_memory(const void* data) const override {
    return device().check_memory(address_of(data));
  }
  Status clear(void* to, std::size_t size) override {
    if (size == 0) return Ok{};
    const GpuDevice::Scope scope(device());
    return device().status(driver().fill(address_of(to), 0, size, queue_.stream),
                           "clearing memory");
  }

  Status add(std::span<const ArrayPair> pairs) override { return arrays_->add(found(pairs)); }
  Status divide(std::span<const ArrayPair> pairs, float divisor) override {
    return arrays_->divide(found(pairs), divisor);
  }
  Status multiply(std::span<const ArrayPair> pairs, float factor) override {
    return arrays_->multiply(found(pairs), factor);
  }
  Status widen(std::span<const ArrayPair> pairs, DType from) override {
    return arrays_->widen(found(pairs), from);
  }
  Status narrow(std::span<const ArrayPair> pairs, DType to) override {
    return arrays_->narrow(found(pairs), to);
  }
  Status look_for_non_finite(const ConstTensorView& array) override {
    const GpuArrayPair pair{0, address_of(array.data), array.num_elems};
    return arrays_->look_for_non_finite({&pair, 1});
  }
  Result<bool> take_non_finite() override { return arrays_->take_non_finite(); }
  Status wait() override {
    const GpuDevice::Scope scope(device());
    return device().status(driver().stream_synchronize(queue_.stream), "waiting for the device");
  }

 private:
  Status move(Way way, void* to, const void* from, std::size_t size) override {
    if (size == 0) return Ok{};
    const GpuDevice::Scope scope(device());
    GpuStream stream = queue_.stream;
    if (way == Way::In) {
      return device().status(driver().copy_to_device(address_of(to), from, size, stream),
                             "copying to the device");
    }
    if (way == Way::Out) {
      return device().status(driver().copy_to_host(to, address_of(from), size, stream),
                             "copying from the device");
    }
    return device().status(driver().copy_on_device(address_of(to), address_of(from), size, stream),
                           "copying on the device");
  }

  const GpuDevice& device() const { return *queue_.device; }
  const GpuDriver& driver() const { return device().driver(); }
  std::span<const GpuArrayPair> found(std::span<const ArrayPair> pairs) {
    pairs_.clear();
    for (const ArrayPair& pair : pairs) {
      pairs_.push_back({address_of(pair.to), address_of(pair.from), pair.num_elems});
    }
    return pairs_;
  }

  GpuQueueOptions options_;
  mutable std::mutex own_turns_;
  GpuQueue queue_;
  bool owns_stream_ = false;
  std::unique_ptr<GpuArrays> arrays_;
  std::vector<GpuArrayPair> pairs_;  // of the running call; keeps its memory
};
}  // namespace

Result<std::unique_ptr<ComputeDevice>> open_gpu_queue(const GpuQueueOptions& options) {
  GpuQueueOptions complete = options;
  if (complete.plain == nullptr && !complete.programs.empty()) {
    complete.plain = complete.programs[0];
  }
  if (complete.plain == nullptr) {
    return fail(ErrorKind::InvalidArgument,
                "a rank on a GPU needs some program for it, also where no tensor has one");
  }
  for (const auto& program : complete.programs) {
    if (program->device() == complete.plain->device()) continue;
    return fail(ErrorKind::InvalidArgument, "programs of one rank for different devices");
  }
  auto queue = std::make_unique<GpuQueueDevice>(complete);
  CINCH_TRY(queue->start());
  return queue;
}

}  // namespace cinch::rt
