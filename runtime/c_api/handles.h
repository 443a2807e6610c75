// The structs behind the C API's opaque types.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/c_api/support.h"
#include "runtime/call/list_session.h"
#include "runtime/gpu/driver.h"
#include "runtime/gpu/program.h"
#include "runtime/image/image.h"
#include "runtime/session/loaded_program.h"

// Named as the C API names them.
// NOLINTBEGIN(readability-identifier-naming)
namespace cinch::c_api {
class CompileJob;
}

struct cinch_program {
  cinch_program();
  ~cinch_program();
  const cinch::rt::ProgramImage& image() const {
    return loaded != nullptr ? loaded->image() : gpu_image;
  }

  std::shared_ptr<const cinch::rt::LoadedProgram> loaded;  // null for GPU code
  cinch::rt::ProgramImage gpu_image;
  // Loaded programs by GPU number; the first session on a GPU loads one.
  mutable std::mutex mutex;
  mutable std::map<std::int32_t, std::weak_ptr<const cinch::rt::GpuProgram>> on_gpus;
  std::string cpu;
  std::unique_ptr<const cinch::c_api::CompileJob> job;  // null: it was loaded
  cinch::rt::FindBetterCode find_better;                // for quickly compiled code; or empty
  // What carries its sums, once a plan has needed it.
  mutable std::mutex carrier_mutex;
  mutable std::unique_ptr<cinch_program> carrier;
  // Of code for a GPU, once a plan has needed them: the same for the CPUs beside it.
  mutable std::unique_ptr<cinch_program> on_cpus, carrier_on_cpus;
  // Texts that infos point to.
  std::string carrier_text, warnings;
  // By index of the API: places in the image's lists. An input's place counts parameters, then
  // states.
  std::vector<std::size_t> parameters, states, inputs;
  std::vector<std::string> parameter_types, parameter_ranges, parameter_words, state_types;
};

struct cinch_session {
  mutable cinch::rt::UseFlag in_use;  // guards everything that calls change
  // The size when it was last asked for.
  mutable std::atomic<std::size_t> workspace_bytes{0};
  std::atomic<bool> cancelled{false};
  std::unique_ptr<cinch::rt::ListSession> list;
  // The device of its tensors.
  cinch_device device = CINCH_CPU;
  std::int32_t device_number = 0;

  // Arrays of the running call. They are kept, so that calls allocate nothing.
  std::vector<cinch::rt::TensorView> tensors;
  std::vector<cinch::rt::ConstTensorView> gradients;
  std::vector<std::span<float>> floats;
  std::vector<cinch::rt::PayloadSlot> slots;
  std::vector<cinch::rt::PayloadBytes> payloads;
  void* stream = nullptr;
  std::vector<std::int64_t> num_elems;
  std::vector<std::size_t> bounds;
  std::vector<std::span<std::uint8_t>> rooms;
  std::vector<std::string> messages;  // of the last cinch_collect
};
// NOLINTEND(readability-identifier-naming)

namespace cinch::c_api {
// Programs of the C API: their handles, made from images and from libraries; GPUs, and programs on
// them.

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

/// Code for this machine's CPUs of a program for a GPU, or of what carries its sums; lives as long
/// as the program. Compiles it when it is first asked for. Errors: those of compiling; UNAVAILABLE
/// (it was loaded, and the text is not known).
CallResult<const cinch_program*> cpu_code_of(const cinch_program& program, bool is_carrier);

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
