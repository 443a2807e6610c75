#include "tests/unit/codegen/emit/kernel_runner.h"

#include <atomic>
#include <cmath>
#include <random>
#include <stdexcept>
#include <thread>

#include "codegen/emit/cpu.h"
#include "codegen/jit/clang_jit.h"
#include "codegen/kir/verifier.h"
#include "runtime/core/sanitizer.h"
#include "runtime/core/sizes/host_expr.h"
#include "tests/environment.h"

namespace cinch::codegen {
namespace {

// AddressSanitizer watches exact allocations better than guard bytes could.
constexpr std::size_t kGuard = kAddressSanitizer ? 0 : 64;
constexpr std::uint8_t kGuardByte = 0xa5;
}  // namespace

std::vector<std::string> runnable_arches() {
  std::vector<std::string> arches;
  for (const char* arch : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
    if (rt::host_supports(arch)) arches.emplace_back(arch);
  }
  if (is_sample_run()) arches.erase(arches.begin(), arches.end() - 1);
  if (!is_long_run() && arches.size() > 2) arches.erase(arches.begin() + 1, arches.end() - 1);
  return arches;
}

std::vector<Split> splits() {
  return {{}, {1, 1}, {5, 1}, {3, 2}};
}

KernelRun::KernelRun(const kir::KernelProgram& program, const rt::CpuModule& module,
                     const HostEnv& env)
    : program_(program), module_(module), env_(env), params_(program.info.params.size()) {
  const HostExprPool& pool = *program.info.exprs;
  for (HostExprId size : program.size_exprs) sizes_.push_back(pool.eval(size, env).value().bits);
  for (const rt::BufferInfo& buffer : program.buffers) {
    const auto size = static_cast<std::size_t>(pool.eval_int(buffer.size_bytes, env).value());
    sizes_bytes_.push_back(size);
    std::vector<std::uint8_t> bytes(size + 2 * kGuard, 0xcd);
    std::fill_n(bytes.begin(), kGuard, kGuardByte);
    std::fill_n(bytes.end() - kGuard, kGuard, kGuardByte);
    memory_.push_back(std::move(bytes));
  }
}

void KernelRun::set_bytes(rt::BufferIndex buffer, const void* bytes, std::size_t size) {
  if (size > sizes_bytes_.at(buffer)) throw std::runtime_error("test data beyond the buffer");
  if (size) std::memcpy(memory_[buffer].data() + kGuard, bytes, size);
}

void KernelRun::zero(rt::BufferIndex buffer) {
  std::fill_n(memory_.at(buffer).begin() + kGuard, sizes_bytes_[buffer], std::uint8_t{0});
}

std::vector<std::uint8_t> KernelRun::get_bytes(rt::BufferIndex buffer) const {
  const auto begin = memory_.at(buffer).begin() + kGuard;
  return {begin, begin + static_cast<std::ptrdiff_t>(sizes_bytes_[buffer])};
}

bool KernelRun::guards_are_whole() const {
  for (const auto& bytes : memory_) {
    for (std::size_t i = 0; i < kGuard; ++i) {
      if (bytes[i] != kGuardByte || bytes[bytes.size() - 1 - i] != kGuardByte) return false;
    }
  }
  return true;
}

void KernelRun::run(std::size_t index, Split split) {
  const rt::KernelInfo& info = program_.kernels.at(index).info;
  const auto groups =
      static_cast<std::uint64_t>(program_.info.exprs->eval_int(info.num_groups, env_).value());
  std::vector<void*> pointers;
  for (auto& bytes : memory_) pointers.push_back(bytes.data() + kGuard);
  const rt::KernelArgs args{pointers.data(), sizes_.data(), params_.data(), draw, status, counters};
  const rt::KernelFunction kernel = module_.find(info.symbol);
  const std::uint64_t multiple = info.group_multiple;
  std::uint64_t per_task = info.is_sequential ? UINT64_MAX : split.groups_per_task;
  if (per_task < groups) per_task = (per_task + multiple - 1) / multiple * multiple;
  std::atomic<std::uint64_t> next = 0;
  const auto work = [&] {
    for (;;) {
      const std::uint64_t begin =
          per_task >= groups ? (next++ == 0 ? 0 : groups) : next.fetch_add(per_task);
      if (begin >= groups) return;
      kernel(&args, begin, per_task >= groups ? groups : std::min(groups, begin + per_task));
    }
  };
  std::vector<std::thread> threads;
  for (int t = 1; t < split.threads; ++t) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

void KernelRun::run_all(Split split) {
  for (std::size_t k = 0; k < program_.kernels.size(); ++k) run(k, split);
}

std::unique_ptr<rt::CpuModule> compile_for_test(const kir::KernelProgram& program,
                                                const std::string& arch, bool count_accesses) {
  kir::verify(program, "test");
  const KernelSource source = emit_cpu(program, {arch, count_accesses});
  const auto binary = compile_cpu(source);
  if (!binary) throw std::runtime_error(binary.error().message);
  auto module = rt::CpuModule::load(*binary);
  if (!module) throw std::runtime_error(module.error().message);
  return std::make_unique<rt::CpuModule>(std::move(*module));
}

std::vector<float> test_floats(std::size_t count, std::uint64_t seed, bool specials) {
  std::mt19937_64 random(seed);
  std::vector<float> values(count);
  for (float& value : values) {
    const std::uint64_t word = random();
    const int exponent = static_cast<int>(word >> 60) - 8;
    value = std::ldexp(static_cast<float>(static_cast<std::int32_t>(word)) * 0x1p-31f, exponent);
    const auto kind = (word >> 40) % 64;
    if (kind == 0) value = 0.0f;
    if (kind == 1) value = -0.0f;
    if (specials && kind == 2) value = std::nanf("");
    if (specials && kind == 3) value = INFINITY;
    if (specials && kind == 4) value = -INFINITY;
  }
  return values;
}

std::vector<std::uint64_t> test_words(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> values(count);
  for (std::uint64_t& value : values) value = random();
  return values;
}

std::vector<std::uint8_t> pack_reference(const std::vector<std::uint64_t>& values, int bits) {
  std::vector<std::uint8_t> bytes((values.size() * static_cast<std::size_t>(bits) + 7) / 8);
  std::size_t at = 0;
  for (std::uint64_t value : values) {
    for (int b = 0; b < bits; ++b, ++at) {
      bytes[at / 8] = static_cast<std::uint8_t>(bytes[at / 8] | ((value >> b) & 1) << (at % 8));
    }
  }
  return bytes;
}

HostExprId num_tiles(kir::KernelProgram& program) {
  HostExprPool& pool = *program.info.exprs;
  return pool.ceil_div(pool.n(), pool.const_int(1024));
}

rt::BufferIndex add_test_buffer(kir::KernelProgram& program, const char* name, DType dtype,
                                HostExprId num_elems, int bits) {
  rt::BufferInfo info;
  info.name = name;
  info.dtype = dtype;
  info.storage_bits = bits ? static_cast<std::uint8_t>(bits) : kir::whole_element_bits(dtype);
  info.num_elems = num_elems;
  info.role = rt::BufferRole::Workspace;
  return kir::add_buffer(program, std::move(info));
}

}  // namespace cinch::codegen
