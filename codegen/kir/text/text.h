// The text form of kernel programs. `--emit=kir` prints it, as do the head of emitted sources and
// tests. It parses back to the same program.
//
// The text holds the whole program but for its documentation and its path. The grammar is in
// text.cpp.
#pragma once
#include <string_view>

#include "codegen/kir/kir.h"
#include "runtime/core/error.h"

namespace cinch::kir {

std::string print(const KernelProgram& program);
/// One kernel: the head of its emitted function, and the dump of a verifier's complaint.
std::string print(const KernelProgram& program, const Kernel& kernel);
/// One instruction without a line end.
std::string print(const KernelProgram& program, const Kernel& kernel, const Instr& instr);
/// The inverse of print. Errors (InvalidArgument) start with "line N, column M: ".
/// Checks the form alone; verify() checks the rest.
rt::Result<KernelProgram> parse(std::string_view text);

}  // namespace cinch::kir
