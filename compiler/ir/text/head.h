// The head of the IR's text form (facts of the program, constant tables), and host expressions.
#pragma once
#include <string>
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

/// Parses lines until the head ends.
void parse_info(Lexer& lexer, Program& program);
/// Parses a constant of a type to the form of Attrs::bits.
std::uint64_t parse_value(Lexer& lexer, DType dtype);

/// The lines up to the first function.
std::string print_info(const Program& program);
/// A constant of a type from Attrs::bits (f64 bits of floats, i64 of integers), as text.
std::string print_value(DType dtype, std::uint64_t bits);

}  // namespace cinch::ir
