// Reads the head of the IR's text form: facts of the program and constant tables.
#pragma once

#include "compiler/ir/ir.h"
#include "compiler/ir/text/host_parser.h"
#include "compiler/ir/text/lexer.h"

namespace cinch::ir {

/// Reads lines as long as they are the head's.
void parse_info(Lexer& lexer, Program& program);
/// A constant of a type, as Attrs::bits holds it.
std::uint64_t parse_value(Lexer& lexer, DType dtype);

}  // namespace cinch::ir
