// The IR as text: stable (values are numbered in the order of the text), complete (parse gives the
// program back, spans and formulas of more than 10,000 parts apart), and safe on broken programs,
// which the verifier prints.
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
/// The same by a printer that is used for many; making one takes as long as the program has names.
std::string print_type(const HostPrinter& host, const Type& type);
/// One op on one line without its regions, for messages: "map.add".
std::string op_title(const Op& op);
/// The name of the attribute that Attrs::size is in the text of this kind: "begin", "at_most", …
std::string_view size_attr_name(OpKind kind);

}  // namespace cinch::ir
