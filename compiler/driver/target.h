// Where code is made for, as the command line says it.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "codegen/emit/kernel_source.h"
#include "compiler/driver/options.h"
#include "runtime/gpu/device.h"
#include "runtime/image/image.h"

namespace cinch::driver {

// Tells of settings that cannot be used, once: a user's tuning table, the cache's limit. The
// functions below do.
void warn_of_settings();
// Does code run on a GPU, be it an emulated one?
bool is_gpu(const ExecutionOptions& options);
// Opens the device that options name: "cuda" or "emulated". Throws CommandError (Unavailable).
std::shared_ptr<rt::GpuDevice> open_gpu(const ExecutionOptions& options, int ordinal = 0);
// Throws CommandError (Unavailable) for devices and processors that are not here.
codegen::Target find_target(const ExecutionOptions& options, bool must_run);
// "sm_90", and with the letter of code for one architecture ("sm_90a", from 90 on) or for its
// family
// ("sm_100f", from 100 on) alone. The number is that of a known GPU, one that NVRTC here compiles
// for, or a newer one, up to 999.
bool is_cuda_arch(std::string_view arch);
// What is_cuda_arch takes, for messages.
std::string cuda_archs_text();
// "cpu", "cpu:x86-64-v3", "x86-64-v3", "aarch64", "cuda", "cuda:sm_90", "sm_90",
// "emulated". Throws
// CommandError (Usage).
codegen::Target parse_target(const std::string& text);
// "native" and all architectures.
std::vector<std::string> known_cpus();
// Targets that parse_target takes, in their short forms.
std::vector<std::string> known_targets();
// The image, where PROGRAM is the file of one: it needs no compiler. Throws CommandError where it
// is corrupt, or where options ask for another device or processor than it was made for.
std::optional<rt::ProgramImage> find_image(const ProgramOptions& options,
                                           const ExecutionOptions& execution);

}  // namespace cinch::driver
