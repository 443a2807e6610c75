// One tensor of f16 or bf16 on both devices; see gpu_list.h.
#include "tests/programs/harness/gpu_list.h"

#include <cstring>
#include <vector>

#include "runtime/core/check.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/inputs.h"

namespace cinch::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint64_t kStep = 1;

rt::GpuMemory memory_on(const rt::GpuProgram& program, std::size_t size_bytes) {
  auto made = rt::GpuMemory::allocate(program.device(), std::max<std::size_t>(size_bytes, 1));
  CINCH_CHECK(made, "no memory on the device");
  return std::move(*made);
}

// An element behind the beginning: callers' tensors lie at any multiple of their elements.
rt::GpuMemory copy_on(const rt::GpuProgram& program, const std::vector<std::uint16_t>& values) {
  rt::GpuMemory memory = memory_on(program, 2 * values.size() + 2);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
  CINCH_CHECK(program.device()->write(memory.address() + 2, {bytes, 2 * values.size()}, nullptr),
              "copying");
  return memory;
}

Bytes bytes_at(const rt::GpuProgram& program, const rt::GpuMemory& memory, std::size_t size) {
  Bytes bytes(size);
  CINCH_CHECK(program.device()->read(bytes, memory.address(), nullptr), "copying");
  return bytes;
}

// The high halves of f32 are bf16 and, taken as f16, numbers too; infinities are masked away.
std::vector<std::uint16_t> halves(std::int64_t num_elems) {
  std::vector<std::uint16_t> values;
  for (const float x : make_gradient(DataKind::Normal, num_elems, 5)) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &x, sizeof bits);
    values.push_back(static_cast<std::uint16_t>((bits >> 16) & 0xbfff));
  }
  return values;
}

rt::GpuSessionOptions gpu_options(const rt::SessionOptions& options, DType dtype) {
  rt::GpuSessionOptions on_gpu;
  on_gpu.dtype = dtype;
  on_gpu.world = options.world;
  on_gpu.worker = options.worker;
  on_gpu.seed = options.seed;
  on_gpu.tensors = {{options.rows, options.cols, options.tensor, options.piece}};
  return on_gpu;
}

std::string compare_decoded(rt::Session& cpu, rt::GpuSession& gpu, const rt::GpuProgram& program,
                            const Bytes& payload, const rt::GpuPayload& on_gpu, DType dtype) {
  std::vector<std::uint16_t> decoded(static_cast<std::size_t>(cpu.num_elems()));
  if (!cpu.decode(payload, {decoded.data(), dtype, cpu.num_elems()}, kStep)) return "decode";
  const rt::GpuMemory out = memory_on(program, 2 * decoded.size());
  const rt::GpuAddress to = out.address();
  if (!gpu.decode({&on_gpu, 1}, {&to, 1}, kStep, nullptr)) return "decode on the GPU";
  const auto outcome = gpu.collect(nullptr);
  if (!outcome || !(*outcome)[0].status) return "decode on the GPU";
  const Bytes found = bytes_at(program, out, 2 * decoded.size());
  const bool is_same = std::memcmp(found.data(), decoded.data(), found.size()) == 0;
  return is_same ? std::string() : "decoded tensors differ";
}

}  // namespace

std::string compare_types(const std::shared_ptr<const rt::LoadedProgram>& on_cpu,
                          const std::shared_ptr<const rt::GpuProgram>& on_gpu,
                          const rt::SessionOptions& options, DType dtype) {
  auto cpu = rt::Session::open(on_cpu, options);
  if (!cpu) return "CPU: " + cpu.error().message;
  auto gpu = rt::GpuSession::open(on_gpu, gpu_options(options, dtype));
  if (!gpu) return "GPU: " + gpu.error().message;
  const std::vector<std::uint16_t> values = halves(cpu->num_elems());
  const rt::GpuMemory held = copy_on(*on_gpu, values);
  const rt::GpuAddress from = held.address() + 2;
  const std::int64_t bound = *gpu->payload_bound(0, kStep);
  const rt::GpuMemory room = memory_on(*on_gpu, static_cast<std::size_t>(bound));
  const rt::GpuPayload to{room.address(), bound};
  CINCH_CHECK(give_inputs(*cpu), "giving inputs");
  const std::vector<float>& weights = made_up_weights(cpu->num_elems());
  const rt::GpuMemory there = memory_on(*on_gpu, 4 * std::max<std::size_t>(weights.size(), 1));
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(weights.data());
  CINCH_CHECK(on_gpu->device()->write(there.address(), {bytes, 4 * weights.size()}, nullptr),
              "copying");
  const void* const at =
      reinterpret_cast<void*>(there.address());  // NOLINT(performance-no-int-to-ptr)
  CINCH_CHECK(gpu->make_up_inputs(0, {at, kF32, cpu->num_elems()}), "giving inputs");
  const auto expected = cpu->encode({values.data(), dtype, cpu->num_elems()}, kStep);
  if (!gpu->encode({&from, 1}, {&to, 1}, kStep, nullptr)) return "encode on the GPU";
  const auto outcome = gpu->collect(nullptr);
  if (!outcome) return outcome.error().message;
  if (expected.has_value() != (*outcome)[0].status.has_value()) return "one device fails to encode";
  if (!expected) return {};
  const Bytes payload(expected->begin(), expected->end());
  if (static_cast<std::size_t>((*outcome)[0].payload_bytes) != payload.size() ||
      bytes_at(*on_gpu, room, payload.size()) != payload) {
    return "payloads differ";
  }
  return compare_decoded(*cpu, *gpu, *on_gpu, payload, to, dtype);
}

}  // namespace cinch::testing
