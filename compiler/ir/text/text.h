// The IR as text: printed and parsed.
#pragma once
#include <string>
#include <string_view>

#include "codegen/text/formulas.h"
#include "compiler/ir/ir.h"
#include "runtime/core/error.h"

namespace cinch::ir {

using text::HostPrinter;

// Printing. The text is stable (values are numbered in its order) and complete: parse returns the
// same program, except for spans and for formulas of more than 10,000 parts. It is safe on broken
// programs, which the verifier prints.

/// The whole program: facts, tables, initial values of states, functions.
std::string print(const Program& program);
/// One function of it.
std::string print(const Program& program, const Function& function);
/// "[f32; n]", "u32".
inline std::string print_type(const rt::ProgramInfo& info, const Type& type) {
  return type.rank == 0 ? dtype_name(type.dtype) : HostPrinter(info).print(type);
}
/// A short title of an op for messages, without its regions: "map.add".
std::string op_title(const Op& op);
/// The name of Attrs::size in the text of this kind: "begin", "at_most", …
std::string_view size_attr_name(OpKind kind);

// Parsing. The text may be untrusted: a fault is an error with line and column, never a crash.

/// Returns the program, not yet verified. Errors (InvalidArgument): "line 3, column 7: expected
/// ':'".
rt::Result<Program> parse(std::string_view text);

}  // namespace cinch::ir
