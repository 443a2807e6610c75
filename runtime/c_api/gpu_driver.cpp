// The driver in libcinch.so.
#include "runtime/c_api/handles.h"

namespace cinch::c_api {

rt::Result<const rt::GpuDriver*> gpu_driver() {
  return rt::open_cuda_driver();
}

}  // namespace cinch::c_api
