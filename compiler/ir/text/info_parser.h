// Parses the head of the IR's text form: facts of the program and constant tables.
#pragma once

#include "compiler/ir/ir.h"
#include "compiler/ir/text/host_parser.h"
#include "compiler/ir/text/lexer.h"

namespace cinch::ir {

/// Parses lines until the head ends.
void parse_info(Lexer& lexer, Program& program);
/// Parses a constant of a type to the form of Attrs::bits.
std::uint64_t parse_value(Lexer& lexer, DType dtype);

}  // namespace cinch::ir
