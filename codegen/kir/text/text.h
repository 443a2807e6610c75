// The text form of kernel programs. `--emit=kir` prints it, as do the head of emitted sources and
// tests. It parses back to the same program.
//
// The text holds name, parameters, states, counts, wire, host sizes, messages, constants, buffers,
// kernels with all sections, and entries with their steps. It leaves out the documentation, ranges
// and named sizes of ProgramInfo. The grammar is in text_parser.h.
#pragma once
#include <string>
#include <string_view>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"

namespace cinch::kir {

std::string print(const KernelProgram& program);
/// One kernel: the head of its emitted function, and the dump of a verifier's complaint.
std::string print(const KernelProgram& program, const Kernel& kernel);
/// One instruction without a line end.
std::string print(const KernelProgram& program, const Kernel& kernel, const Instr& instr);
/// A host expression in the exact prefix form of the text: "add(mul(n, 4), 8)". Prints 10000 parts
/// at most.
std::string print_host_expr(const HostExprPool& pool, HostExprId id);

/// The inverse of print. Errors (InvalidArgument) start with "line N: ". Checks the form alone;
/// verify() checks the rest.
rt::Result<KernelProgram> parse(std::string_view text);

}  // namespace cinch::kir
