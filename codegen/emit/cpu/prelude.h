// The prelude of CPU programs: which parts a stand-alone text needs, and helpers that are compiled
// once, when Cinch is built. To parse all of the prelude would take a good part of the compile
// time. Draws, packing and reductions take longer to compile than most kernels.
#pragma once
#include <span>
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// The parts that `kernels` of the program need, in the order of their dependence.
std::string cpu_prelude(const kir::KernelProgram& program,
                        std::span<const kir::Kernel* const> kernels);

/// Values of the prelude's CINCH_HELPERS.
enum class HelpersMode { InText = 0, Linked = 1, Made = 2 };

/// The whole prelude for any kernel. Made: with the helpers that can be linked. Linked: with
/// declarations of these helpers. Both are compiled when Cinch is built; a text that links helpers
/// contains no prelude.
std::string cpu_helpers_text(HelpersMode mode);
/// Differs between builds whose prelude or helpers differ.
const std::string& cpu_helpers_digest();

/// The prelude's name of a reduction's operation: "OpAdd".
const char* operation_struct(ScalarOp op, kir::ComputeType type);

}  // namespace cinch::codegen
