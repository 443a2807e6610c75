// Calls of functions with a body, and of the C library functions that the language has itself. The
// latter have the language's bits on every target, which may differ from those of a C library.
#include <clang/AST/DeclCXX.h>
#include <clang/Basic/Builtins.h>

#include <algorithm>
#include <iterator>
#include <string_view>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

struct Known {
  std::string_view name;  // without __builtin_, and without the f of float
  const char* function;   // of namespace cinch::lang
};

constexpr Known kKnown[] = {
    {"fabs", "abs"},   {"abs", "abs"},         {"labs", "abs"},        {"llabs", "abs"},
    {"sqrt", "sqrt"},  {"floor", "floor"},     {"ceil", "ceil"},       {"trunc", "trunc"},
    {"rint", "round"}, {"nearbyint", "round"}, {"roundeven", "round"}, {"exp", "exp"},
    {"exp2", "exp2"},  {"log", "log"},         {"log2", "log2"},       {"pow", "pow"},
    {"sin", "sin"},    {"cos", "cos"},         {"isnan", "isnan"},     {"isfinite", "isfinite"},
};

std::string_view without_prefix(std::string_view name) {
  constexpr std::string_view kPrefix = "__builtin_";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

const Known* find_known(std::string_view name) {
  const auto find = [](std::string_view wanted) {
    return std::find_if(std::begin(kKnown), std::end(kKnown),
                        [&](const Known& each) { return each.name == wanted; });
  };
  const Known* found = find(name);
  if (found == std::end(kKnown) && name.ends_with("f")) {
    found = find(name.substr(0, name.size() - 1));
  }
  return found == std::end(kKnown) ? nullptr : found;
}

// Why a function of the compiler or the C library is rejected.
std::string refused_builtin(std::string_view name) {
  if (name == "fma" || name == "fmaf" || name == "fmal") {
    return "the fused multiply-add `" + std::string(name) + "`: kernels round every operation";
  }
  for (const std::string_view memory : {"malloc", "calloc", "realloc", "free", "alloca"}) {
    if (name == memory) return "allocated memory";
  }
  for (const std::string_view output : {"printf", "puts", "putchar", "fprintf", "fwrite"}) {
    if (name == output) return "output (`" + std::string(name) + "`)";
  }
  if (name.starts_with("ia32_")) return "the intrinsic `__builtin_" + std::string(name) + "`";
  return "a call of `" + std::string(name) + "`";
}

bool is_array_element(const clang::CallExpr& expr, const clang::FunctionDecl& callee) {
  const auto* op = llvm::dyn_cast<clang::CXXOperatorCallExpr>(&expr);
  const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&callee);
  return op && op->getOperator() == clang::OO_Subscript && method &&
         method->getParent()->getQualifiedNameAsString() == "std::array";
}

}  // namespace

std::string Translator::call(const clang::CallExpr& expr) {
  const clang::FunctionDecl* callee = expr.getDirectCallee();
  const clang::SourceLocation where = expr.getBeginLoc();
  if (!callee) throw Refusal{where, "a call through a pointer"};
  if (is_array_element(expr, *callee)) return subscript(*expr.getArg(0), *expr.getArg(1));
  if (callee->getBuiltinID() != 0 && !callee->getDefinition()) return builtin_call(expr, *callee);
  if (callee->isReplaceableGlobalAllocationFunction()) throw Refusal{where, "allocated memory"};
  check_function(*callee, where);
  const std::string given = arguments(expr, *callee);
  const Function& made = function(*callee, where);
  add_work(made.work + 1, made.size + 1);
  return made.name + "(" + given + ")";
}

std::string Translator::arguments(const clang::CallExpr& expr, const clang::FunctionDecl& callee) {
  std::string text;
  for (unsigned i = 0; i < expr.getNumArgs(); ++i) {
    if (i < callee.getNumParams()) {
      const clang::ParmVarDecl& parameter = *callee.getParamDecl(i);
      type_text(value_type(parameter.getType(), parameter.getLocation()), parameter.getLocation());
    }
    text += (i ? ", " : "") + value(*expr.getArg(i));
  }
  return text;
}

std::string Translator::builtin_call(const clang::CallExpr& expr,
                                     const clang::FunctionDecl& callee) {
  constexpr std::uint64_t kWork = 16;
  const std::string full = context_.BuiltinInfo.getName(callee.getBuiltinID()).str();
  const std::string_view name = without_prefix(full);
  if (name == "expect" || name == "expect_with_probability") return value(*expr.getArg(0));
  if (name == "is_constant_evaluated") return "false";
  const clang::SourceLocation where = expr.getBeginLoc();
  const Known* known = find_known(name);
  if (!known) throw Refusal{where, refused_builtin(name)};
  std::string text;
  std::string first;
  for (const clang::Expr* argument : expr.arguments()) {
    const std::string type = type_text(argument->getType(), where);
    if (first.empty()) first = type;
    if (type != first) throw Refusal{where, "arguments of several types for `" + full + "`"};
    text += (text.empty() ? "" : ", ") + value(*argument);
  }
  add_work(kWork);
  const std::string made = "lang::" + std::string(known->function) + "(" + text + ")";
  // Predicates return an int in C.
  const std::string result = type_text(expr.getType(), where);
  return result == first ? made : result + "(" + made + ")";
}

}  // namespace cinch::clang_backend
