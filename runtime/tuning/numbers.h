// Numbers that decide how work is divided on one kind of machine; they never change a bit of a
// result. Each has a name, a range and values that `cinch tune` tries. tuning.h tells where values
// come from.
#pragma once
#include <cstdint>
#include <span>

namespace cinch::rt {

/// For a level of x86-64, or aarch64.
struct CpuTuning {
  std::int64_t task_bytes = 1 << 18;
  std::int64_t tasks_per_thread = 8;
  std::int64_t single_task_bytes = 1 << 18;
  friend bool operator==(const CpuTuning&, const CpuTuning&) = default;
};

/// For an architecture of GPUs.
struct GpuTuning {
  std::int64_t block_warps = 8;
  std::int64_t blocks_per_multiprocessor = 0;
  std::int64_t service_elements = 4096;
  std::int64_t most_service_blocks = 4096;
  std::int64_t one_launch_elements = 8192;
  std::int64_t fold_elements = std::int64_t{1} << 24;
  friend bool operator==(const GpuTuning&, const GpuTuning&) = default;
};

template <typename Tuning>
struct TuningNumber {
  const char* name;
  const char* meaning;
  std::int64_t Tuning::* member;
  std::int64_t least, most;
  bool is_power_of_two;
  std::span<const std::int64_t> candidates;
};

template <typename Tuning>
std::span<const TuningNumber<Tuning>> tuning_numbers();
template <>
std::span<const TuningNumber<CpuTuning>> tuning_numbers();
template <>
std::span<const TuningNumber<GpuTuning>> tuning_numbers();

}  // namespace cinch::rt
