// Programs of the C API: their handles, made from images and from libraries; GPUs, and programs on
// them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/c_api/cinch.h"
#include "runtime/c_api/support.h"
#include "runtime/gpu/driver.h"
#include "runtime/gpu/program.h"
#include "runtime/image/image.h"
#include "runtime/session/loaded_program.h"

namespace cinch::c_api {

/// Makes a handle for the caller. Errors: CORRUPT_FILE, UNAVAILABLE (made for another processor).
CallStatus give_program(rt::ProgramImage image, cinch_program** to);
/// The same from a loaded program; passes on the error if loading failed.
CallStatus give_program(rt::Result<std::shared_ptr<const rt::LoadedProgram>> loaded,
                        cinch_program** to);

/// Loads the CPU code of compressor `name`, or of the only compressor, from the shared library at
/// `path`. Errors: see cinch_library_load and cinch_library_find.
CallStatus load_from_library(const std::string& path, const std::string& name,
                             cinch_program** program);

/// Returns NVIDIA's driver. Tests that link the C API statically define another function in its
/// place. Errors: Unavailable.
rt::Result<const rt::GpuDriver*> gpu_driver();

/// Opens the GPU with this number. Errors: UNAVAILABLE (no driver, no such GPU), DEVICE.
CallResult<std::shared_ptr<rt::GpuDevice>> open_gpu(std::int32_t device_number);

/// Loads the program on a GPU. Sessions share the loaded program while any of them lives. Errors:
/// as above, INVALID_ARGUMENT (a program for CPUs), those of GpuProgram::load.
CallResult<std::shared_ptr<const rt::GpuProgram>> load_on_gpu(const cinch_program& program,
                                                              std::int32_t device_number);

// Finds and opens the compiler library, and calls it.

/// The target of code: a level of CPUs that this machine runs, or a GPU's architecture.
struct CompileTarget {
  std::string cpu, arch;  // one of the two is set
};

/// Compiles, and returns the bytes of an image. `options` is the caller's struct, already read.
/// Looks for the library at options.compiler, else CINCH_COMPILER, else in this library's folder,
/// in ../lib and ../../lib, else by the loader's own search. The library is opened once per process
/// and stays. Errors: UNAVAILABLE, PROGRAM, …
CallResult<std::vector<std::uint8_t>> compile(const cinch_compile_options& options,
                                              const CompileTarget& target);

/// Returns the list of the standard library, as JSON. Errors: UNAVAILABLE, those of the compiler
/// library.
CallResult<std::vector<std::uint8_t>> list_programs(const char* compiler);

}  // namespace cinch::c_api
