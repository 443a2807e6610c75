// Compiles a program's text to what the harness compares: the IR as lowered, before any pass (the
// interpreter runs this), and the kernels of the optimised program; images for a target on demand.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/kir/kir.h"
#include "codegen/passes/passes.h"
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

/// Runs only the front end. Returns the program, or the diagnostics.
tl::expected<ir::Program, std::string> lower_program(const ProgramFile& program);

using Loaded = std::shared_ptr<const rt::LoadedProgram>;

/// After a level: the code that serves while better code is made.
inline constexpr std::string_view kQuickly = ", compiled quickly";
/// Kernels for "x86-64", "x86-64-v3" or "x86-64-v4", perhaps compiled quickly; with
/// `count_accesses` they count the bytes that they move.
tl::expected<Loaded, std::string> load_for(const kir::KernelProgram& kernels,
                                           const std::string& arch, bool count_accesses = false);

/// The levels of x86-64 that this machine runs, lowest first (in a sample run only the highest);
/// `missing` has the others.
struct Architectures {
  std::vector<std::string> present, missing;
};
Architectures architectures();

/// Kernels for each of these levels of the CPU; errors name it.
tl::expected<std::vector<Loaded>, std::string> load_for_all(const kir::KernelProgram& kernels,
                                                            const std::vector<std::string>& levels);
/// The levels on which a program is compared: all levels of this machine with CINCH_LONG=1.
/// Otherwise the highest one, for every third program, by its name, all of them, and for every
/// fourth program the highest one compiled quickly, too.
std::vector<std::string> levels_of(std::string_view program);

/// The number of different sweeping kernels (KernelRole::Sweep) that an entry launches.
int count_sweeps(const rt::ProgramImage& image, rt::EntryKind entry);

}  // namespace cinch::testing
