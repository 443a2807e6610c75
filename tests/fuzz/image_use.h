// Uses an image as a host does, without running its code: opens sessions on CPUs and GPUs and calls
// them with kernels that only count. Tables with any contents must lead to an error, or to memory
// that is used within its bounds.
#pragma once
#include "runtime/gpu/driver.h"
#include "runtime/image/image.h"

namespace cinch::fuzz {

/// Aborts if a promise is broken.
void use_image(const rt::ProgramImage& image);

// A fake GPU of memory and tables: it does copies and fills within allocations, and does not run
// kernels. Instead it checks each launch: every buffer of every tensor must lie within an
// allocation.

/// Total memory of the device.
inline constexpr std::size_t kFakeGpuBytes = std::size_t{16} << 20;

/// The driver of a GPU that fits the image's target. One at a time; the image outlives it. An
/// access out of bounds ends the process.
const rt::GpuDriver& fake_gpu_driver(const rt::ProgramImage& image);

}  // namespace cinch::fuzz
