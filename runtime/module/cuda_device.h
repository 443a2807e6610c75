// The GPU that this machine has, asked of NVIDIA's driver, which is opened when it is first needed.
#pragma once
#include <string>

#include "runtime/core/error.h"

namespace cinch::rt {

struct CudaDevice {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string arch;  // "sm_90"
};

/// The first of the devices that the driver lists. Errors: Unavailable (no driver, or it has no
/// device), Device (the driver's own, by number).
Result<CudaDevice> find_cuda_device();

}  // namespace cinch::rt
