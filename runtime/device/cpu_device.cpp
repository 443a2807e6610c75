// The CPUs of this process as a device; see compute_device.h.
#include "runtime/device/compute_device.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "runtime/exec/program_buffers.h"
#include "runtime/exec/task_runner.h"
#include "runtime/session/session.h"
#include "runtime/session/tensor_convert.h"

namespace cinch::rt {
namespace {

std::span<float> floats_to(const ArrayPair& pair) {
  return {reinterpret_cast<float*>(pair.to), static_cast<std::size_t>(pair.num_elems)};
}

std::span<const float> floats_from(const ArrayPair& pair) {
  return {reinterpret_cast<const float*>(pair.from), static_cast<std::size_t>(pair.num_elems)};
}

class CpuDevice : public ComputeDevice {
 public:
  explicit CpuDevice(CpuDeviceOptions options) : options_(std::move(options)) {}

  bool is_host() const override { return true; }
  std::uint32_t num_programs() const override {
    return static_cast<std::uint32_t>(options_.programs.size());
  }
  const ProgramInfo& info(std::uint32_t program) const override {
    return options_.programs[program]->info();
  }
  ListResult<std::unique_ptr<ListSession>> open(std::uint32_t program, const ListOptions& options,
                                                std::span<const ListTensor> tensors) override {
    SessionOptions common{.threads = options_.threads,
                          .world = options.world,
                          .worker = options.worker,
                          .machine_ranks = options.machine_ranks,
                          .seed = options.seed,
                          .only_decodes = options.only_decodes,
                          .cancelled = options_.cancelled};
    auto opened = TRY(SessionList::open(options_.programs[program], common, tensors));
    auto list = std::make_unique<SessionList>(std::move(opened));
    for (const auto& [name, value] : options.parameters) {
      Status status = list->set_parameter(name, value);
      if (!status) return tl::unexpected<ListError>(ListError{std::move(status.error())});
    }
    return list;
  }

  Result<MemoryPieces> allocate(std::span<const std::size_t> sizes) override {
    MemoryPieces memory;
    auto buffers = std::make_shared<std::vector<AlignedBuffer>>(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      AlignedBuffer& buffer = (*buffers)[i];
      CINCH_TRY(buffer.resize(static_cast<std::int64_t>(sizes[i])));
      memory.pieces.push_back(buffer.data());
    }
    memory.owner = std::move(buffers);
    return memory;
  }

  Status check_memory(const void* /*data*/) const override { return Ok{}; }
  Status wait() override { return Ok{}; }

  Status clear(void* to, std::size_t size) override {
    if (size > 0) std::memset(to, 0, size);
    return Ok{};
  }
  Status add(std::span<const ArrayPair> pairs) override {
    return for_pairs(pairs, [this](const ArrayPair& pair) {
      return add_f32(floats_to(pair), floats_from(pair), runner(), options_.cancelled);
    });
  }
  Status divide(std::span<const ArrayPair> pairs, float divisor) override {
    return for_pairs(pairs, [&](const ArrayPair& pair) {
      return divide_f32(floats_from(pair), divisor, floats_to(pair), runner(), options_.cancelled);
    });
  }
  Status multiply(std::span<const ArrayPair> pairs, float factor) override {
    return for_pairs(pairs, [&](const ArrayPair& pair) {
      return multiply_f32(floats_from(pair), factor, floats_to(pair), runner(), options_.cancelled);
    });
  }
  Status widen(std::span<const ArrayPair> pairs, DType from) override {
    return for_pairs(pairs, [&](const ArrayPair& pair) {
      return convert_to_f32({pair.from, from, pair.num_elems}, floats_to(pair), runner(),
                            options_.cancelled);
    });
  }
  Status narrow(std::span<const ArrayPair> pairs, DType to) override {
    return for_pairs(pairs, [&](const ArrayPair& pair) {
      return convert_from_f32(floats_from(pair), {pair.to, to, pair.num_elems}, runner(),
                              options_.cancelled);
    });
  }
  Status look_for_non_finite(const ConstTensorView& array) override {
    const auto is_finite = TRY(all_finite(array, runner(), options_.cancelled));
    has_non_finite_ = has_non_finite_ || !is_finite;
    return Ok{};
  }
  Result<bool> take_non_finite() override { return std::exchange(has_non_finite_, false); }

 private:
  Status move(Way /*way*/, void* to, const void* from, std::size_t size) override {
    constexpr std::size_t kChunk = std::size_t{256} << 10;
    const std::size_t num_chunks = (size + kChunk - 1) / kChunk;
    return runner().run(num_chunks, options_.cancelled, [&](std::uint64_t chunk) {
      const std::size_t begin = chunk * kChunk;
      std::memcpy(static_cast<std::uint8_t*>(to) + begin,
                  static_cast<const std::uint8_t*>(from) + begin, std::min(kChunk, size - begin));
    });
  }

  TaskRunner& runner() { return runner_ ? *runner_ : runner_.emplace(options_.threads); }
  // Handles one pair after the other until one fails.
  template <typename OnPair>
  static Status for_pairs(std::span<const ArrayPair> pairs, const OnPair& on_pair) {
    for (const ArrayPair& pair : pairs) {
      CINCH_TRY(on_pair(pair));
    }
    return Ok{};
  }

  CpuDeviceOptions options_;
  std::optional<TaskRunner> runner_;  // for work that no program does
  bool has_non_finite_ = false;
};
}  // namespace

std::unique_ptr<ComputeDevice> open_cpu_device(CpuDeviceOptions options) {
  return std::make_unique<CpuDevice>(std::move(options));
}

}  // namespace cinch::rt
