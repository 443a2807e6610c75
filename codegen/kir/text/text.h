// Text form of kernel programs: printed by `--emit=kir`, at the head of emitted sources and in
// tests; parses back to the same program.
//
// What the text holds: name, parameters, states, counts, wire, host sizes, messages, constants,
// buffers, kernels with all sections, entries with their steps. Documentation, ranges and named
// sizes of ProgramInfo stay outside. Grammar: docs in text_parser.h.
#pragma once
#include <string>
#include <string_view>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"

namespace cinch::kir {

std::string print(const KernelProgram& program);
/// One kernel alone: the head of its emitted function, and the dump of a verifier's complaint.
std::string print(const KernelProgram& program, const Kernel& kernel);
/// One instruction without a line end.
std::string print(const KernelProgram& program, const Kernel& kernel, const Instr& instr);
/// A host expression in the exact prefix form of the text: "add(mul(n, 4), 8)"; of more than 10000
/// parts only so many.
std::string print_host_expr(const HostExprPool& pool, HostExprId id);

/// The inverse of print. Errors (InvalidArgument) start with "line N: ". Only the form is checked
/// here: verify() does the rest.
rt::Result<KernelProgram> parse(std::string_view text);

}  // namespace cinch::kir
