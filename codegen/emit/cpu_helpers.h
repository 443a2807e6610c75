// Helpers of the CPU prelude that are compiled once, when Cinch is built, and linked with the
// kernels that call them: draws, packing and reductions, which together cost more than most
// kernels. A text that has to stand alone (for people, for sanitizers) holds them instead.
#pragma once
#include <span>
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// CINCH_HELPERS of the prelude.
enum class HelpersMode { InText = 0, Linked = 1, Made = 2 };
/// A text's first line.
std::string helpers_mode(HelpersMode mode);

/// Lines that declare the instances of templates that `kernels` of the program find linked.
std::string linked_instances(const kir::KernelProgram& program,
                             std::span<const kir::Kernel* const> kernels);

/// The translation unit of all helpers that can be linked, for any number of lanes.
std::string cpu_helpers_text();
/// What tells one build's helpers from another's.
const std::string& cpu_helpers_digest();

/// The prelude's name of a reduction's operation: "OpAdd".
const char* operation_struct(ScalarOp op, kir::ComputeType type);

}  // namespace cinch::codegen
