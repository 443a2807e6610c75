// The prelude of CPU programs: which parts a text needs that stands alone, and helpers that are
// compiled once, when Cinch is built. Parsing all of the prelude would take a good part of the
// compile time; draws, packing and reductions cost more to compile than most kernels.
#pragma once
#include <span>
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// What `kernels` of the program need, in the order of their dependence.
std::string cpu_prelude(const kir::KernelProgram& program,
                        std::span<const kir::Kernel* const> kernels);

/// CINCH_HELPERS of the prelude.
enum class HelpersMode { InText = 0, Linked = 1, Made = 2 };
/// A text's first line.
std::string helpers_mode(HelpersMode mode);

/// The whole prelude for any kernel: with the helpers that can be linked (Made), or declaring them
/// (Linked). Both are compiled when Cinch is built; a text that links helpers goes without prelude.
std::string cpu_helpers_text(HelpersMode mode);
/// What tells one build's prelude and helpers from another's.
const std::string& cpu_helpers_digest();

/// The prelude's name of a reduction's operation: "OpAdd".
const char* operation_struct(ScalarOp op, kir::ComputeType type);

}  // namespace cinch::codegen
