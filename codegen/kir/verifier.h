// Verifier of the kernel IR: what every emitter may rely on.
#pragma once
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::kir {

/// Throws InternalError{Bug} with the kernel's text attached if a kernel breaks a rule: levels of
/// instructions, uses before definitions or out of their section, operand and result types, buffers
/// and tables out of range, attributes, group kinds; steps and entries that name what is not there.
/// `stage` says who made the program.
void verify(const KernelProgram& program, const std::string& stage);

/// The first complaint, or empty. For tests.
std::string first_complaint(const KernelProgram& program);

}  // namespace cinch::kir
