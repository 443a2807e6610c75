// Changes of variables are statements of their own: inside an expression the compiler would choose
// their order, and results would differ between targets.
#include <clang/AST/DeclCXX.h>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {

std::string Translator::effect(const clang::Expr& given) {
  const clang::Expr& expr = plain(given);
  if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(&expr)) {
    if (op->isAssignmentOp()) return assignment(*op);
    if (op->getOpcode() == clang::BO_Comma) {
      const std::string first = effect(*op->getLHS()), second = effect(*op->getRHS());
      return first + (first.empty() || second.empty() ? "" : ", ") + second;
    }
  }
  if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(&expr)) {
    if (op->isIncrementDecrementOp()) return step(*op);
  }
  if (const auto* op = llvm::dyn_cast<clang::CXXOperatorCallExpr>(&expr)) {
    const auto* method = llvm::dyn_cast_or_null<clang::CXXMethodDecl>(op->getDirectCallee());
    const bool copies = method && method->isTrivial() &&
                        (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator());
    if (copies) return target(*op->getArg(0)) + " = " + value(*op->getArg(1));
  }
  if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(&expr);
      cast && cast->getCastKind() == clang::CK_ToVoid) {
    return effect(*cast->getSubExpr());
  }
  // The value is unused, but its expression must still be supported.
  value(expr);
  return "";
}

std::string Translator::target(const clang::Expr& given) {
  const clang::Expr& expr = plain(given);
  if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(&expr)) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(name->getDecl());
    const auto known = variables_.find(variable);
    if (known != variables_.end()) return known->second;
    throw Refusal{expr.getBeginLoc(), "a change of `" + name->getDecl()->getNameAsString() +
                                          "`, which outlives the call"};
  }
  if (const auto* part = llvm::dyn_cast<clang::MemberExpr>(&expr); part && !part->isArrow()) {
    const auto* field = llvm::dyn_cast<clang::FieldDecl>(part->getMemberDecl());
    if (field && !field->isBitField()) {
      return target(*part->getBase()) + ".m" + std::to_string(field->getFieldIndex());
    }
  }
  if (const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(&expr)) {
    (void)target(undecayed(*element->getBase()));
    return subscript(*element->getBase(), *element->getIdx());
  }
  throw Refusal{expr.getBeginLoc(), "an assignment to something other than a variable of the call"};
}

std::string Translator::assignment(const clang::BinaryOperator& op) {
  add_work(1);
  const std::string to = target(*op.getLHS());
  if (op.getOpcode() == clang::BO_Assign) return to + " = " + value(*op.getRHS());
  const auto& compound = llvm::cast<clang::CompoundAssignOperator>(op);
  const clang::SourceLocation where = op.getOperatorLoc();
  const clang::QualType type = op.getLHS()->getType();
  const std::string left = converted(to, type, compound.getComputationLHSType(), where);
  const std::string made =
      arithmetic(clang::BinaryOperator::getOpForCompoundAssignment(op.getOpcode()), left,
                 value(*op.getRHS()), compound.getComputationLHSType(), where);
  return to + " = " + converted(made, compound.getComputationResultType(), type, where);
}

// In the type in which C++ computes it: at least an int.
std::string Translator::step(const clang::UnaryOperator& op) {
  add_work(1);
  const clang::SourceLocation where = op.getOperatorLoc();
  const std::string to = target(*op.getSubExpr());
  const clang::QualType type = op.getSubExpr()->getType();
  const clang::QualType wide =
      context_.isPromotableIntegerType(type) ? context_.getPromotedIntegerType(type) : type;
  const std::string one = type_text(wide, where) + "(1)";
  const std::string made = arithmetic(op.isIncrementOp() ? clang::BO_Add : clang::BO_Sub,
                                      converted(to, type, wide, where), one, wide, where);
  return to + " = " + converted(made, wide, type, where);
}

}  // namespace cinch::clang_backend
