// Elements of arrays: variables of the call, and constant tables. Every index means an element that
// exists.
#include <clang/AST/DeclCXX.h>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {

std::string Translator::subscript(const clang::Expr& array, const clang::Expr& index) {
  add_work(2);
  const Element found = element(array, index);
  return found.array + "[" + found.index + "]";
}

namespace {

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
