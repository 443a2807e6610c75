#include "codegen/tuning/gpu_limits.h"

#include <algorithm>
#include <charconv>

namespace cinch::codegen {
namespace {

struct Row {
  int arch;
  GpuLimits limits;
};

constexpr std::uint32_t kKiB = 1024;
constexpr Row kRows[] = {
    {75, {32, 16, 65536, 64 * kKiB}},   {80, {64, 32, 65536, 164 * kKiB}},
    {86, {48, 16, 65536, 100 * kKiB}},  {87, {48, 16, 65536, 164 * kKiB}},
    {89, {48, 24, 65536, 100 * kKiB}},  {90, {64, 32, 65536, 228 * kKiB}},
    {100, {64, 32, 65536, 228 * kKiB}}, {120, {48, 24, 65536, 100 * kKiB}},
};

constexpr int kKnown[] = {75, 80, 86, 87, 88, 89, 90, 100, 101, 103, 110, 120, 121};

constexpr std::uint32_t kRegisterUnit = 256;

}  // namespace

std::optional<GpuLimits> gpu_limits(std::string_view arch) {
  constexpr std::string_view kPrefix = "sm_";
  if (!arch.starts_with(kPrefix)) return std::nullopt;
  int number = 0;
  std::from_chars(arch.data() + kPrefix.size(), arch.data() + arch.size(), number);
  std::optional<GpuLimits> found;
  for (const Row& row : kRows) {
    if (row.arch <= number) found = row.limits;
  }
  return found;
}

std::span<const int> known_gpu_archs() {
  return kKnown;
}

Occupancy occupancy(const GpuLimits& limits, const KernelNeeds& needs) {
  const std::uint32_t warps = std::max<std::uint32_t>((needs.block_threads + 31) / 32, 1);
  std::uint32_t blocks = std::min(limits.blocks, limits.warps / warps);
  const std::uint32_t used = 32 * std::max<std::uint32_t>(needs.registers, 1);
  const std::uint32_t warp_registers = (used + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
  blocks = std::min(blocks, limits.registers / warp_registers / warps);
  if (needs.shared_bytes > 0) blocks = std::min(blocks, limits.shared_bytes / needs.shared_bytes);
  return {blocks, static_cast<double>(blocks * warps) / limits.warps};
}

}  // namespace cinch::codegen
