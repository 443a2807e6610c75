// The two checkers of the kernel IR. The verifier checks the rules on which every emitter relies.
// check_versions checks the contents of buffers.
#pragma once

#include "codegen/kir/compute_type.h"

namespace cinch::kir {
/// Throws InternalError{Bug} with the kernel's text attached if a kernel breaks a rule: levels of
/// instructions, uses before definitions or out of their section, operand and result types, buffers
/// and tables out of range, attributes, group kinds; steps and entries that name what is not there.
/// `stage` says who made the program.
void verify(const KernelProgram& program, const std::string& stage);

/// The first complaint, or empty. For tests.
std::string first_complaint(const KernelProgram& program);

// ---- check_versions.cpp ----
// Checks the contents of buffers and trusts neither fusion nor the code that assigns buffers. It
// runs the steps of each entry over the contents of all buffers, as versions (kir.h), and compares
// these with what kernels and steps declare.

/// What the caller puts into a buffer before the call; kNothing for workspace and next states.
Version given_version(const rt::BufferInfo& buffer);

/// Throws InternalError{Bug} with the program's text attached if
/// - a kernel or a step may find other contents than it needs;
/// - a kernel's body loads or stores a buffer that it does not declare, or declares one that it
/// does
///   not touch;
/// - one lane of a kernel may load an element that another lane of the same launch stores;
/// - an entry's results are not in their places at its end.
/// `stage` says who made the program. Linear in steps times buffers.
void check_versions(const KernelProgram& program, const std::string& stage);

/// The first complaint, or empty. For tests.
std::string first_version_complaint(const KernelProgram& program);

// The verifier's rules for single instructions: numbers, types and levels of operands and results,
// buffers, attributes.

bool is_builtin_combiner(ScalarOp op);
/// Combiners only compute: constants, scalar operations, conversions, and loads from read-only
/// tables.
bool is_allowed_in_combiner(InstrKind kind);
/// Is the result a group value although the instruction is in an element section?
bool has_group_result(InstrKind kind, std::size_t result);

/// The first complaint about the instruction, or an empty text. Operands and results must be in
/// range. `level_of` gives the level of a defined value.
std::string complaint_about(const KernelProgram& program, const Kernel& kernel, const Instr& instr,
                            std::function<SectionKind(ValueId)> level_of);

}  // namespace cinch::kir
