// Reads host expressions of the IR's text form into the pool of a program.
#pragma once

#include <string_view>

#include "compiler/ir/ir.h"
#include "compiler/ir/text/lexer.h"

namespace cinch::ir {

/// Looks up names of sizes, parameters and counts in `info` as it is when they are read.
class HostParser {
 public:
  HostParser(Lexer& lexer, rt::ProgramInfo& info) : lexer_(lexer), info_(info) {}

  HostExprId parse_expr();
  /// Parses "f32", "[f32; n]", "[f32; r, c]".
  Type parse_type();

 private:
  HostExprId parse_term();
  HostExprId parse_primary();
  HostExprId parse_number();
  HostExprId parse_name();
  HostExprId parse_call(std::string_view callee);
  HostExprId parse_indexed(std::string_view callee);
  HostExprId parse_bits();
  HostExprId named(std::string_view name);
  HostExprId make(HostOp op, HostExprId a, HostExprId b = {}, HostExprId c = {});

  Lexer& lexer_;
  rt::ProgramInfo& info_;
  int depth_ = 0;
};

}  // namespace cinch::ir
