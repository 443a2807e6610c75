// Programs of the C API: their handles, made from images and from libraries; GPUs, and programs on
// them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "runtime/c_api/cinch.h"
#include "runtime/c_api/support.h"
#include "runtime/gpu/driver.h"
#include "runtime/gpu/program.h"
#include "runtime/image/image.h"
#include "runtime/session/loaded_program.h"

namespace cinch::c_api {

/// Makes a handle for the caller. Errors: CORRUPT_FILE, UNAVAILABLE (made for another processor).
/// `find_better`: for a CPU, see LoadedProgram::load.
CallStatus give_program(rt::ProgramImage image, cinch_program** to,
                        rt::FindBetterCode find_better = {});
/// The same from a loaded program; passes on the error if loading failed.
CallStatus give_program(rt::Result<std::shared_ptr<const rt::LoadedProgram>> loaded,
                        cinch_program** to);

/// Loads the CPU code of compressor `name`, or of the only compressor, from the shared library at
/// `path`. Errors: see cinch_library_load and cinch_library_find.
CallStatus load_from_library(const std::string& path, const std::string& name,
                             cinch_program** program);

/// The program that carries sums of this one (rt::CarrierKind::Program); lives as long as it.
/// Compiles it when it is first asked for. Errors: those of compiling; UNAVAILABLE (it was loaded
/// without one).
CallResult<const cinch_program*> carrier_of(const cinch_program& program);

/// Returns NVIDIA's driver. Tests that link the C API statically define another function in its
/// place. Errors: Unavailable.
rt::Result<const rt::GpuDriver*> gpu_driver();

/// Opens the GPU with this number. Errors: UNAVAILABLE (no driver, no such GPU), DEVICE.
CallResult<std::shared_ptr<rt::GpuDevice>> open_gpu(std::int32_t device_number);

/// Loads the program on a GPU. Sessions share the loaded program while any of them lives. Errors:
/// as above, INVALID_ARGUMENT (a program for CPUs), those of GpuProgram::load.
CallResult<std::shared_ptr<const rt::GpuProgram>> load_on_gpu(const cinch_program& program,
                                                              std::int32_t device_number);

}  // namespace cinch::c_api
