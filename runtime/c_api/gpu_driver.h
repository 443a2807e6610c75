// The driver that sessions on a GPU run through.
#pragma once
#include "runtime/gpu/driver.h"

namespace cinch::c_api {

/// Returns NVIDIA's driver. Tests that link the C API statically define another function in its
/// place. Errors: Unavailable.
rt::Result<const rt::GpuDriver*> gpu_driver();

}  // namespace cinch::c_api
