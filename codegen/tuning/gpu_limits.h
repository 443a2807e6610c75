// What a multiprocessor of each GPU architecture holds, and how many blocks of a kernel fit.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace cinch::codegen {

/// Of one multiprocessor. Source: "Technical Specifications per Compute Capability" of the CUDA C++
/// Programming Guide.
struct GpuLimits {
  std::uint32_t warps = 0, blocks = 0;
  std::uint32_t registers = 65536;
  std::uint32_t shared_bytes = 0;
};

/// Of "sm_90"; of an architecture that is not in the table, the highest one below it. Nothing for
/// what is no architecture.
std::optional<GpuLimits> gpu_limits(std::string_view arch);

/// Numbers of the architectures that have a GPU, ascending from 75 (sm_75). Later ones are missing.
std::span<const int> known_gpu_archs();

/// What a kernel takes.
struct KernelNeeds {
  std::uint32_t block_threads = 0;
  std::uint32_t registers = 0;     // per thread
  std::uint32_t shared_bytes = 0;  // per block, with what the system reserves
};

struct Occupancy {
  std::uint32_t blocks = 0;  // on a multiprocessor at a time
  double share = 0;          // of its warps
};
/// Registers are given to warps in units of 256.
Occupancy occupancy(const GpuLimits& limits, const KernelNeeds& needs);

}  // namespace cinch::codegen
