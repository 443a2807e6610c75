// Bodies of gpu_programs.h.
#include "runtime/c_api/gpu_programs.h"

#include "runtime/c_api/gpu_driver.h"
#include "runtime/c_api/handles.h"

namespace cinch::c_api {

CallResult<std::shared_ptr<rt::GpuDevice>> open_gpu(std::int32_t device_number) {
  const auto driver = gpu_driver();
  if (!driver) return fail(driver.error());
  if (device_number < 0) {
    return fail(CINCH_UNAVAILABLE, "device " + std::to_string(device_number));
  }
  auto device = rt::GpuDevice::open(**driver, device_number);
  if (!device) return fail(device.error());
  return std::move(*device);
}

CallResult<std::shared_ptr<const rt::GpuProgram>> load_on_gpu(const cinch_program& program,
                                                              std::int32_t device_number) {
  if (program.loaded != nullptr) {
    return fail(CINCH_INVALID_ARGUMENT, "a program for CPUs, not for a GPU");
  }
  const std::lock_guard lock(program.mutex);
  std::weak_ptr<const rt::GpuProgram>& known = program.on_gpus[device_number];
  if (auto loaded = known.lock()) return loaded;
  const auto device = open_gpu(device_number);
  CINCH_TRY(device);
  auto loaded = rt::GpuProgram::load(*device, program.image());
  if (!loaded) return fail(loaded.error());
  known = *loaded;
  return std::move(*loaded);
}

}  // namespace cinch::c_api
