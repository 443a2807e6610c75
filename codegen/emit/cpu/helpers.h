// Helpers of the CPU prelude that are compiled once, when Cinch is built, and linked with the
// kernels that call them: draws, packing and reductions, which together cost more than most
// kernels. A text that has to stand alone (for people, for sanitizers) holds them instead.
#pragma once
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

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
