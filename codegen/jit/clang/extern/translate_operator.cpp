// Operators and conversions, by the language's own functions where C++ leaves cases undefined.
#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

bool is_float_name(const std::string& type) {
  return type == "f32" || type == "f64";
}

const char* infix(clang::BinaryOperatorKind kind) {
  switch (kind) {
    case clang::BO_LT:
      return " < ";
    case clang::BO_GT:
      return " > ";
    case clang::BO_LE:
      return " <= ";
    case clang::BO_GE:
      return " >= ";
    case clang::BO_EQ:
      return " == ";
    case clang::BO_NE:
      return " != ";
    case clang::BO_And:
      return " & ";
    case clang::BO_Or:
      return " | ";
    case clang::BO_Xor:
      return " ^ ";
    case clang::BO_LAnd:
      return " && ";
    case clang::BO_LOr:
      return " || ";
    default:
      return nullptr;
  }
}

const char* language_function(clang::BinaryOperatorKind kind) {
  switch (kind) {
    case clang::BO_Add:
      return "add";
    case clang::BO_Sub:
      return "sub";
    case clang::BO_Mul:
      return "mul";
    case clang::BO_Div:
      return "div";
    case clang::BO_Rem:
      return "mod";
    case clang::BO_Shl:
      return "shl";
    case clang::BO_Shr:
      return "shr";
    default:
      return nullptr;
  }
}

std::string called(const std::string& function, const std::string& a, const std::string& b) {
  return "lang::" + function + "(" + a + ", " + b + ")";
}

}  // namespace

std::string Translator::binary(const clang::BinaryOperator& op) {
  const clang::SourceLocation where = op.getOperatorLoc();
  if (op.isAssignmentOp() || op.getOpcode() == clang::BO_Comma) {
    throw Refusal{where, "a change of a variable inside an expression"};
  }
  type_text(op.getLHS()->getType(), where);
  type_text(op.getRHS()->getType(), where);
  add_work(1);
  return arithmetic(op.getOpcode(), value(*op.getLHS()), value(*op.getRHS()),
                    op.getLHS()->getType(), where);
}

// Both operands have the type `left`, except counts of shifts.
std::string Translator::arithmetic(clang::BinaryOperatorKind kind, const std::string& a,
                                   const std::string& b, clang::QualType left,
                                   clang::SourceLocation where) {
  const char* type = scalar_name(context_, left);
  if (!type) throw Refusal{where, "arithmetic on something other than a number"};
  if (const char* text = infix(kind)) return "(" + a + text + b + ")";
  const char* function = language_function(kind);
  if (!function) throw Refusal{where, "an operator that kernels do not have"};
  const bool is_shift = kind == clang::BO_Shl || kind == clang::BO_Shr;
  return called(function, a, is_shift ? std::string(type) + "(" + b + ")" : b);
}

std::string Translator::converted(const std::string& text, clang::QualType from_type,
                                  clang::QualType to_type, clang::SourceLocation where) {
  const std::string from = type_text(from_type, where), to = type_text(to_type, where);
  if (from == to) return text;
  if (to == "bool") return "(" + text + " != " + from + "(0))";
  if (!is_float_name(from) || is_float_name(to)) return to + "(" + text + ")";
  // Saturates; NaN becomes 0.
  if (to.ends_with("64") || to.ends_with("32")) {
    return "lang::float_to_int<" + to + ">(" + text + ")";
  }
  const std::string bits = to.substr(1);
  return to + "(lang::float_to_int<" + to.substr(0, 1) + "32>(" + text + ", " + bits + "))";
}

std::string Translator::bits_of(const std::string& text, clang::QualType from_type,
                                clang::QualType to_type, clang::SourceLocation where) {
  const std::string from = type_text(from_type, where), to = type_text(to_type, where);
  if (from == to) return text;
  if (from == "bool" || to == "bool") throw Refusal{where, "the bits of a `bool`"};
  if (is_float_name(from)) {
    return to + "(lang::bits_of(lang::canonical(" + text + ")))";
  }
  if (to == "f32") return "lang::f32_of_bits(u32(" + text + "))";
  if (to == "f64") return "lang::f64_of_bits(u64(" + text + "))";
  return to + "(" + text + ")";
}

std::string Translator::cast(const clang::CastExpr& expr) {
  const clang::Expr& inner = *expr.getSubExpr();
  const clang::SourceLocation where = expr.getBeginLoc();
  switch (expr.getCastKind()) {
    case clang::CK_LValueToRValue:
    case clang::CK_NoOp:
    case clang::CK_ConstructorConversion:
    case clang::CK_UserDefinedConversion:
      type_text(expr.getType(), where);
      return value(inner);
    case clang::CK_IntegralCast:
    case clang::CK_FloatingCast:
    case clang::CK_IntegralToFloating:
    case clang::CK_FloatingToIntegral:
    case clang::CK_IntegralToBoolean:
    case clang::CK_FloatingToBoolean:
      type_text(inner.getType(), where);
      add_work(1);
      return converted(value(inner), inner.getType(), expr.getType(), where);
    case clang::CK_LValueToRValueBitCast:
      type_text(inner.getType(), where);
      return bits_of(value(inner), inner.getType(), expr.getType(), where);
    default:
      // The operand may give a better message than the conversion.
      (void)value(inner);
      type_text(expr.getType(), where);
      throw Refusal{where, std::string("a conversion that kernels do not have (") +
                               expr.getCastKindName() + ")"};
  }
}

}  // namespace cinch::clang_backend
