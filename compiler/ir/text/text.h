// The IR as text: printed and parsed.
#pragma once
#include <string>
#include <string_view>

#include "compiler/ir/ir.h"
#include "runtime/core/error.h"

namespace cinch::ir {

class HostPrinter;

/// The whole program: facts, tables, initial values of states, functions.
std::string print(const Program& program);
/// One function of it.
std::string print(const Program& program, const Function& function);
/// "[f32; n]", "u32".
std::string print_type(const rt::ProgramInfo& info, const Type& type);
/// The same by a printer that serves many calls; making one takes as long as the program has names.
std::string print_type(const HostPrinter& host, const Type& type);
/// A short title of an op for messages, without its regions: "map.add".
std::string op_title(const Op& op);
/// The name of Attrs::size in the text of this kind: "begin", "at_most", …
std::string_view size_attr_name(OpKind kind);

// Parses the text form of the IR (text.h). The text may be untrusted: a fault is an error with
// line and column, never a crash.

/// Returns the program, not yet verified. Errors (InvalidArgument): "line 3, column 7: expected
/// ':'".
rt::Result<Program> parse(std::string_view text);

}  // namespace cinch::ir
