// Expressions by kind. Their text has no side effects, so that the order of operands does not
// matter.
#include <clang/AST/DeclCXX.h>

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

}  // namespace cinch::clang_backend
