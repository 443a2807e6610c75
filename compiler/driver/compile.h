// The stages joined: from a PROGRAM of the command line to any of them.
#pragma once
#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/options.h"
#include "compiler/ir/ir.h"
#include "runtime/image/image.h"

namespace cinch::driver {

// Verified IR; `with_passes` false: as lowering left it.
ir::Program make_ir(const ProgramOptions& options, bool with_passes = true);
ir::Program lower_program(const sema::CheckedProgram& checked, bool with_passes);
// Verified kernels with their costs.
kir::KernelProgram make_kernels(const ir::Program& program);
// How passes evaluate constant functions: by the interpreter.
std::optional<std::vector<std::uint64_t>> evaluate_constant(const ir::Program& program,
                                                            const ir::Function& function);
// Where code is made for. Throws CommandError (Unavailable) for devices and processors that are not
// here.
codegen::Target find_target(const ExecutionOptions& options, bool must_run);
rt::ProgramImage make_program_image(const ProgramOptions& options,
                                    const ExecutionOptions& execution);
// The image, where PROGRAM is the file of one: it needs no compiler. Throws CommandError where it
// is corrupt, or where options ask for another device or processor than it was made for.
std::optional<rt::ProgramImage> find_image(const ProgramOptions& options,
                                           const ExecutionOptions& execution);
// For a CPU of any level, run or not on this machine. Kept in and taken from the cache.
rt::ProgramImage make_program_image(const ProgramOptions& options, const codegen::Target& target);
// "cpu", "cpu:x86-64-v3", "x86-64-v3", "cuda", "cuda:sm_90", "sm_90". Throws CommandError (Usage).
codegen::Target parse_target(const std::string& text);

}  // namespace cinch::driver
