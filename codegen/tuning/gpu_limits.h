// The resources of a multiprocessor of each GPU architecture, and how many blocks of a kernel fit.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cinch::codegen {

/// Limits of one multiprocessor. Source: "Technical Specifications per Compute Capability" of the
/// CUDA C++ Programming Guide.
struct GpuLimits {
  std::uint32_t warps = 0, blocks = 0;
  std::uint32_t registers = 65536;
  std::uint32_t shared_bytes = 0;
};

/// Limits for "sm_90". For an architecture that is not in the table, those of the next lower one.
/// Nothing for an invalid name.
std::optional<GpuLimits> gpu_limits(std::string_view arch);

/// Numbers of the architectures that have a GPU, ascending from 75 (sm_75). Later ones are missing.
std::span<const int> known_gpu_archs();

/// The resources that a kernel needs.
struct KernelNeeds {
  std::uint32_t block_threads = 0;
  std::uint32_t registers = 0;     // per thread
  std::uint32_t shared_bytes = 0;  // per block, including what the system reserves
};

struct Occupancy {
  std::uint32_t blocks = 0;  // at a time on a multiprocessor
  double share = 0;          // of its warps
};
/// How many blocks fit. Warps get registers in units of 256.
Occupancy occupancy(const GpuLimits& limits, const KernelNeeds& needs);

}  // namespace cinch::codegen
