// Runs hand-written kernel programs on the CPU target for tests: compiles them for one x86 level,
// gives every buffer exactly its size between guard bytes, and runs kernels in any task split.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "codegen/kir/builder.h"
#include "codegen/kir/kir.h"
#include "runtime/core/sizes/host_value.h"
#include "runtime/module/cpu_module.h"

namespace cinch::codegen {

/// The x86 levels that this machine can run; ArchTest skips the others by name.
std::vector<std::string> runnable_arches();

inline std::string arch_test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

/// The lengths with which every kernel is tested.
inline constexpr std::int64_t kLengths[] = {0,   1,    31,   32,   33,   127,  128,
                                            129, 1023, 1024, 1025, 2048, 5000, 100003};

struct Split {
  std::uint64_t groups_per_task = UINT64_MAX;  // rounded up to the kernel's group_multiple
  int threads = 1;
};
/// One task; a group (or group_multiple) each; five each; two threads of three each.
std::vector<Split> splits();

/// One run: memory and arguments. Buffers start as 0xcd bytes unless set.
class KernelRun {
 public:
  KernelRun(const kir::KernelProgram& program, const rt::CpuModule& module, const HostEnv& env);

  template <typename T>
  void set(rt::BufferIndex buffer, const std::vector<T>& values) {
    set_bytes(buffer, values.data(), values.size() * sizeof(T));
  }
  void zero(rt::BufferIndex buffer);
  void set_param(std::size_t index, std::uint64_t bits) { params_.at(index) = bits; }

  /// Runs kernel `index` over all its groups. False if guard bytes changed.
  void run(std::size_t index, Split split = {});
  /// All kernels in order.
  void run_all(Split split = {});

  /// The first `count` elements of a buffer of whole elements.
  template <typename T>
  std::vector<T> get(rt::BufferIndex buffer, std::size_t count) const {
    std::vector<T> values(count);
    const auto bytes = get_bytes(buffer);
    const std::size_t size = std::min(bytes.size(), count * sizeof(T));
    if (size) std::memcpy(values.data(), bytes.data(), size);
    return values;
  }
  std::vector<std::uint8_t> get_bytes(rt::BufferIndex buffer) const;
  /// Are all guard bytes unchanged?
  bool guards_are_whole() const;

  std::uint32_t status[rt::kStatusWords] = {};
  std::uint64_t counters[2] = {};
  std::uint32_t draw[8] = {11, 22, 33, 44, 55, 66, 77, 0};

 private:
  void set_bytes(rt::BufferIndex buffer, const void* bytes, std::size_t size);

  const kir::KernelProgram& program_;
  const rt::CpuModule& module_;
  HostEnv env_;
  std::vector<std::size_t> sizes_bytes_;
  std::vector<std::vector<std::uint8_t>> memory_;
  std::vector<std::uint64_t> sizes_, params_;
};

/// Verifies, emits, compiles and loads.
std::unique_ptr<rt::CpuModule> compile_for_test(const kir::KernelProgram& program,
                                                const std::string& arch,
                                                bool count_accesses = false);

/// Reproducible values: numbers of many magnitudes, zeros of both signs, and on request some NaN
/// and infinities.
std::vector<float> test_floats(std::size_t count, std::uint64_t seed, bool specials = false);
std::vector<std::uint64_t> test_words(std::size_t count, std::uint64_t seed);

/// Packs the low `bits` of each value, least significant first.
std::vector<std::uint8_t> pack_reference(const std::vector<std::uint64_t>& values, int bits);

/// The number of groups of 1024 elements for n elements.
HostExprId num_tiles(kir::KernelProgram& program);

/// Buffer helpers: a field of `dtype` in `bits` storage bits (0: whole elements).
rt::BufferIndex add_test_buffer(kir::KernelProgram& program, const char* name, DType dtype,
                                HostExprId num_elems, int bits = 0);

}  // namespace cinch::codegen

/// A test suite that runs once for each x86 level of this machine.
#define CINCH_ARCH_SUITE(Suite)                                \
  class Suite : public testing::TestWithParam<std::string> {}; \
  INSTANTIATE_TEST_SUITE_P(Arches, Suite, testing::ValuesIn(runnable_arches()), arch_test_name)
