// Prints the IR as text. The text is stable (values are numbered in its order) and complete: parse
// returns the same program, except for spans and for formulas of more than 10,000 parts. It is safe
// on broken programs, which the verifier prints.
#pragma once

#include <string>

#include "compiler/ir/ir.h"

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

}  // namespace cinch::ir
