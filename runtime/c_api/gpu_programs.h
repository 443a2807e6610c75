// GPUs of the C API, and its programs on them.
#pragma once
#include <cstdint>
#include <memory>

#include "runtime/c_api/cinch.h"
#include "runtime/c_api/support.h"
#include "runtime/gpu/program.h"

namespace cinch::c_api {

/// Opens the GPU with this number. Errors: UNAVAILABLE (no driver, no such GPU), DEVICE.
CallResult<std::shared_ptr<rt::GpuDevice>> open_gpu(std::int32_t device_number);

/// Loads the program on a GPU. Sessions share the loaded program while any of them lives. Errors:
/// as above, INVALID_ARGUMENT (a program for CPUs), those of GpuProgram::load.
CallResult<std::shared_ptr<const rt::GpuProgram>> load_on_gpu(const cinch_program& program,
                                                              std::int32_t device_number);

}  // namespace cinch::c_api
