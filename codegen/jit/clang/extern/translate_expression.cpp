// Expressions by kind, operators and conversions, and elements of arrays. Their text has no side
// effects, so that the order of operands does not matter. Every index means an element that exists.
#include <clang/AST/DeclCXX.h>

#include <algorithm>
#include <span>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

std::string refused_expression(const clang::Expr& expr) {
  switch (expr.getStmtClass()) {
    case clang::Stmt::CXXThrowExprClass:
      return "an exception that is thrown";
    case clang::Stmt::CXXNewExprClass:
    case clang::Stmt::CXXDeleteExprClass:
      return "allocated memory";
    case clang::Stmt::LambdaExprClass:
      return "a lambda";
    case clang::Stmt::CXXThisExprClass:
      return "`this`";
    case clang::Stmt::StringLiteralClass:
      return "a string";
    case clang::Stmt::StmtExprClass:
      return "statements inside an expression";
    case clang::Stmt::CXXTypeidExprClass:
    case clang::Stmt::CXXDynamicCastExprClass:
      return "information on types at run time";
    case clang::Stmt::AtomicExprClass:
      return "an atomic access";
    default:
      return std::string("an expression that kernels do not have (") + expr.getStmtClassName() +
             ")";
  }
}

// The size of an array, or of the one in a std::array; 0 if it is neither.
std::uint64_t size_of(const clang::ASTContext& context, clang::QualType type) {
  if (const auto* record = type->getAsCXXRecordDecl();
      record && record->isInStdNamespace() && !record->field_empty()) {
    type = record->field_begin()->getType();
  }
  const clang::ConstantArrayType* array = context.getAsConstantArrayType(type);
  return array ? array->getSize().getLimitedValue() : 0;
}

}  // namespace

const clang::Expr& plain(const clang::Expr& given) {
  const clang::Expr* expr = &given;
  while (true) {
    const clang::Expr* inner = expr->IgnoreParens();
    if (const auto* full = llvm::dyn_cast<clang::FullExpr>(inner)) inner = full->getSubExpr();
    if (const auto* made = llvm::dyn_cast<clang::MaterializeTemporaryExpr>(inner)) {
      inner = made->getSubExpr();
    }
    if (const auto* by_template = llvm::dyn_cast<clang::SubstNonTypeTemplateParmExpr>(inner)) {
      inner = by_template->getReplacement();
    }
    if (const auto* argument = llvm::dyn_cast<clang::CXXDefaultArgExpr>(inner)) {
      inner = argument->getExpr();
    }
    if (const auto* init = llvm::dyn_cast<clang::CXXDefaultInitExpr>(inner))
      inner = init->getExpr();
    if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(inner);
        cast && cast->getCastKind() == clang::CK_NoOp) {
      inner = cast->getSubExpr();
    }
    if (inner == expr) return *expr;
    expr = inner;
  }
}

const clang::Expr& undecayed(const clang::Expr& expr) {
  const auto* cast = llvm::dyn_cast<clang::CastExpr>(&plain(expr));
  const bool decays = cast && cast->getCastKind() == clang::CK_ArrayToPointerDecay;
  return decays ? plain(*cast->getSubExpr()) : plain(expr);
}

std::string Translator::value(const clang::Expr& given) {
  const Level level(*this, given.getBeginLoc());
  const clang::Expr& expr = plain(given);
  if (const auto known = constant(expr)) return *known;
  return value_of(expr);
}

std::string Translator::value_of(const clang::Expr& expr) {
  if (const auto* reference_to = llvm::dyn_cast<clang::DeclRefExpr>(&expr)) {
    return reference(*reference_to);
  }
  if (const auto* part = llvm::dyn_cast<clang::MemberExpr>(&expr)) return member(*part);
  if (const auto* conversion = llvm::dyn_cast<clang::CastExpr>(&expr)) return cast(*conversion);
  if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(&expr)) return binary(*op);
  if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(&expr)) return unary(*op);
  if (const auto* called = llvm::dyn_cast<clang::CallExpr>(&expr)) return call(*called);
  if (const auto* list = llvm::dyn_cast<clang::InitListExpr>(&expr)) return initializer(*list);
  if (const auto* made = llvm::dyn_cast<clang::CXXConstructExpr>(&expr)) return construction(*made);
  if (const auto* element_of = llvm::dyn_cast<clang::ArraySubscriptExpr>(&expr)) {
    return subscript(*element_of->getBase(), *element_of->getIdx());
  }
  if (const auto* choice = llvm::dyn_cast<clang::ConditionalOperator>(&expr)) {
    add_work(1);
    return "(" + value(*choice->getCond()) + " ? " + value(*choice->getTrueExpr()) + " : " +
           value(*choice->getFalseExpr()) + ")";
  }
  if (llvm::isa<clang::ImplicitValueInitExpr, clang::CXXScalarValueInitExpr>(expr)) {
    return zero_of(expr.getType(), expr.getBeginLoc());
  }
  throw Refusal{expr.getBeginLoc(), refused_expression(expr)};
}

std::string Translator::reference(const clang::DeclRefExpr& expr) {
  const auto* variable = llvm::dyn_cast<clang::VarDecl>(expr.getDecl());
  if (!variable) throw Refusal{expr.getBeginLoc(), "a pointer to a function"};
  type_text(expr.getType(), expr.getBeginLoc());
  const auto known = variables_.find(variable);
  if (known != variables_.end()) return known->second;
  return literal(constant_value(*variable, expr.getBeginLoc()), expr.getType(), expr.getBeginLoc());
}

std::string Translator::member(const clang::MemberExpr& expr) {
  if (const auto* shared = llvm::dyn_cast<clang::VarDecl>(expr.getMemberDecl())) {
    return literal(constant_value(*shared, expr.getBeginLoc()), expr.getType(), expr.getBeginLoc());
  }
  const auto* field = llvm::dyn_cast<clang::FieldDecl>(expr.getMemberDecl());
  if (expr.isArrow() || !field) throw Refusal{expr.getBeginLoc(), "a pointer"};
  type_text(expr.getBase()->getType(), expr.getBeginLoc());
  return value(*expr.getBase()) + ".m" + std::to_string(field->getFieldIndex());
}

std::string Translator::unary(const clang::UnaryOperator& op) {
  if (op.isIncrementDecrementOp()) {
    throw Refusal{op.getOperatorLoc(), "a change of a variable inside an expression"};
  }
  const clang::SourceLocation where = op.getOperatorLoc();
  if (!scalar_name(context_, op.getType())) type_text(op.getType(), where);
  if (op.getOpcode() == clang::UO_Deref || op.getOpcode() == clang::UO_AddrOf) {
    throw Refusal{where, "a pointer"};
  }
  add_work(1);
  std::string x = value(*op.getSubExpr());
  switch (op.getOpcode()) {
    case clang::UO_Plus:
    case clang::UO_Extension:
      return x;
    case clang::UO_Minus:
      return "lang::neg(" + x + ")";
    case clang::UO_Not:
      return "lang::bit_not(" + x + ")";
    case clang::UO_LNot:
      return "(!" + x + ")";
    default:
      throw Refusal{where, refused_expression(op)};
  }
}

std::string Translator::initializer(const clang::InitListExpr& given) {
  const clang::InitListExpr* semantic = given.isSemanticForm() ? &given : given.getSemanticForm();
  const clang::InitListExpr& list = semantic ? *semantic : given;
  const bool is_scalar = scalar_name(context_, list.getType()) != nullptr;
  if (is_scalar) {
    return list.getNumInits() ? value(*list.getInit(0))
                              : zero_of(list.getType(), list.getBeginLoc());
  }
  std::string parts;
  for (const clang::Expr* each : list.inits()) {
    parts += (parts.empty() ? "" : ", ") + value(*each);
  }
  const bool is_array = list.getType()->isArrayType();
  return (is_array ? "" : type_text(list.getType(), list.getBeginLoc())) + "{" + parts + "}";
}

std::string Translator::construction(const clang::CXXConstructExpr& expr) {
  const clang::CXXConstructorDecl& made = *expr.getConstructor();
  const std::string type = type_text(expr.getType(), expr.getBeginLoc());
  if (made.isCopyOrMoveConstructor() && made.isTrivial() && expr.getNumArgs() == 1) {
    return value(*expr.getArg(0));
  }
  if (made.isDefaultConstructor() && made.isTrivial()) return type + "{}";
  throw Refusal{expr.getBeginLoc(), "a constructor"};
}

// Operators and conversions, by the language's own functions where C++ leaves cases undefined.

namespace {

bool is_float_name(const std::string& type) {
  return type == "f32" || type == "f64";
}

using Operator = std::pair<clang::BinaryOperatorKind, const char*>;
constexpr Operator kInfix[] = {
    {clang::BO_LT, " < "},    {clang::BO_GT, " > "},  {clang::BO_LE, " <= "},
    {clang::BO_GE, " >= "},   {clang::BO_EQ, " == "}, {clang::BO_NE, " != "},
    {clang::BO_And, " & "},   {clang::BO_Or, " | "},  {clang::BO_Xor, " ^ "},
    {clang::BO_LAnd, " && "}, {clang::BO_LOr, " || "}};
constexpr Operator kLanguageFunctions[] = {
    {clang::BO_Add, "add"}, {clang::BO_Sub, "sub"}, {clang::BO_Mul, "mul"}, {clang::BO_Div, "div"},
    {clang::BO_Rem, "mod"}, {clang::BO_Shl, "shl"}, {clang::BO_Shr, "shr"}};

// Null if the operator is none of these.
const char* name_of(clang::BinaryOperatorKind kind, std::span<const Operator> operators) {
  const auto found = std::ranges::find(operators, kind, &Operator::first);
  return found == operators.end() ? nullptr : found->second;
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
  if (const char* text = name_of(kind, kInfix)) return "(" + a + text + b + ")";
  const char* function = name_of(kind, kLanguageFunctions);
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

// Elements of arrays: variables of the call, and constant tables. Every index means an element that
// exists.

std::string Translator::subscript(const clang::Expr& array, const clang::Expr& index) {
  add_work(2);
  const Element found = element(array, index);
  return found.array + "[" + found.index + "]";
}

// For nested arrays, row by row.
Translator::Element Translator::element(const clang::Expr& given, const clang::Expr& index) {
  const clang::Expr& array = undecayed(given);
  const std::uint64_t size = size_of(context_, array.getType());
  if (size == 0 || size > UINT32_MAX) throw Refusal{array.getBeginLoc(), "a pointer"};
  type_text(index.getType(), index.getBeginLoc());
  const std::string at = "nearest(i64(" + value(index) + "), " + std::to_string(size) + "u)";
  if (const auto* outer = llvm::dyn_cast<clang::ArraySubscriptExpr>(&array)) {
    Element found = element(*outer->getBase(), *outer->getIdx());
    return {found.array, found.index + " * " + std::to_string(size) + "u + " + at, size};
  }
  return {array_name(array), at, size};
}

std::string Translator::array_name(const clang::Expr& array) {
  const clang::VarDecl* variable = nullptr;
  if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(&array)) {
    variable = llvm::dyn_cast<clang::VarDecl>(name->getDecl());
  } else if (const auto* part = llvm::dyn_cast<clang::MemberExpr>(&array)) {
    variable = llvm::dyn_cast<clang::VarDecl>(part->getMemberDecl());
  }
  if (!variable) throw Refusal{array.getBeginLoc(), "an array that is not a variable"};
  const auto known = variables_.find(variable);
  if (known != variables_.end()) return known->second;
  return table_name(*variable, array.getBeginLoc());
}

}  // namespace cinch::clang_backend
