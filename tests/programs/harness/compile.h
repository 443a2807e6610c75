// From a program's text to what the harness compares: the IR as lowered (what the interpreter runs,
// no pass has touched it) and the kernels of the optimised program; images for a target on demand.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kir/kir.h"
#include "codegen/passes/state_update.h"
#include "compiler/ir/ir.h"
#include "runtime/core/error.h"
#include "runtime/session/loaded_program.h"
#include "tests/programs/harness/program_file.h"

namespace cinch::testing {

struct Compiled {
  ir::Program oracle;
  kir::KernelProgram kernels;
};

/// The diagnostics or the internal error as text on failure.
tl::expected<Compiled, std::string> compile(
    const ProgramFile& program, codegen::StateUpdate states = codegen::StateUpdate::SecondBuffer);

/// Only the front end: nothing, or the diagnostics.
tl::expected<ir::Program, std::string> lower_program(const ProgramFile& program);

using Loaded = std::shared_ptr<const rt::LoadedProgram>;

/// Kernels for "x86-64", "x86-64-v3" or "x86-64-v4"; with `count_accesses`, such that count the
/// bytes they move.
tl::expected<Loaded, std::string> load_for(const kir::KernelProgram& kernels,
                                           const std::string& arch, bool count_accesses = false);

/// The levels of x86-64 that this machine runs, lowest first (in a sample run the highest alone);
/// those it lacks are in `missing`.
struct Architectures {
  std::vector<std::string> present, missing;
};
Architectures architectures();

/// Kernels for each of these levels of the CPU; errors name it.
tl::expected<std::vector<Loaded>, std::string> load_for_all(const kir::KernelProgram& kernels,
                                                            const std::vector<std::string>& levels);
/// The levels that a program is compared on: all that this machine runs with CINCH_LONG=1, else the
/// highest one, and of every third program all, by its name.
std::vector<std::string> levels_of(std::string_view program);

/// Kernels that an entry launches and that sweep over memory (KernelRole::Sweep), each counted
/// once.
int count_sweeps(const rt::ProgramImage& image, rt::EntryKind entry);

}  // namespace cinch::testing
