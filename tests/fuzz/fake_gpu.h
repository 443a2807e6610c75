// A GPU of memory and tables: copies and fills are done and held to the allocations, kernels are
// not run. A launch is looked at instead: every buffer of every tensor lies within an allocation.
#pragma once
#include "runtime/gpu/driver.h"
#include "runtime/image/image.h"

namespace cinch::fuzz {

/// Memory that it gives in all.
inline constexpr std::size_t kFakeGpuBytes = std::size_t{16} << 20;

/// The driver of a GPU that images for the image's target are for. One at a time; the image
/// outlives it. What is out of bounds ends the process.
const rt::GpuDriver& fake_gpu_driver(const rt::ProgramImage& image);

}  // namespace cinch::fuzz
