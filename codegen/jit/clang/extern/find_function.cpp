// Finds a function by name in all namespaces, then by type. A template is instantiated by a
// conversion to a pointer of the wanted type, as C++ itself selects from overloads.
#include "codegen/jit/clang/extern/find_function.h"

#include <clang/AST/DeclCXX.h>
#include <clang/Basic/SourceManager.h>

#include <set>
#include <string_view>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

constexpr const char* kChosen = "cinch_chosen_instance";

class Search {
 public:
  Search(clang::ASTContext& context, const std::string& name) : context_(context), name_(name) {}

  void visit(const clang::DeclContext& in) {
    for (const clang::Decl* decl : in.decls()) {
      if (const auto* inner = llvm::dyn_cast<clang::NamespaceDecl>(decl)) {
        visit(*inner);
      } else if (const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(decl)) {
        visit(*linkage);
      } else if (const auto* made = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl)) {
        if (is_wanted(*made)) found.templates.push_back(made);
      } else if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(decl)) {
        if (is_wanted(*function)) found.functions.push_back(function);
      }
    }
  }

  Candidates found;

 private:
  bool is_wanted(const clang::NamedDecl& decl) {
    const bool is_named = decl.getDeclName().isIdentifier() && decl.getName() == name_;
    if (!is_named || context_.getSourceManager().isInSystemHeader(decl.getLocation())) return false;
    return seen_.insert(decl.getCanonicalDecl()).second;
  }

  clang::ASTContext& context_;
  const std::string& name_;
  std::set<const clang::Decl*> seen_;
};

// A parameter or result by value, or by a const reference.
const char* passed_name(const clang::ASTContext& context, clang::QualType type) {
  const auto* reference = type->getAs<clang::LValueReferenceType>();
  if (reference && !reference->getPointeeType().isConstQualified()) return nullptr;
  return scalar_name(context, type.getNonReferenceType());
}

const char* c_name(std::string_view type) {
  constexpr std::pair<std::string_view, const char*> kNames[] = {
      {"bool", "bool"},          {"i8", "signed char"}, {"u8", "unsigned char"}, {"i16", "short"},
      {"u16", "unsigned short"}, {"i32", "int"},        {"u32", "unsigned int"}, {"i64", "long"},
      {"u64", "unsigned long"},  {"f32", "float"},      {"f64", "double"}};
  for (const auto& [name, text] : kNames) {
    if (name == type) return text;
  }
  return "void";
}

}  // namespace

Candidates find_candidates(clang::ASTContext& context, const std::string& name) {
  Search search(context, name);
  search.visit(*context.getTranslationUnitDecl());
  return std::move(search.found);
}

bool matches(const clang::ASTContext& context, const clang::FunctionDecl& function,
             const CinchExternRequest& request) {
  const auto is = [&](clang::QualType type, const char* wanted) {
    const char* name = passed_name(context, type);
    return name && std::string_view(name) == wanted;
  };
  if (function.getNumParams() != request.num_params || function.isVariadic()) return false;
  for (unsigned i = 0; i < function.getNumParams(); ++i) {
    if (!is(function.getParamDecl(i)->getType(), request.params[i])) return false;
  }
  return is(function.getReturnType(), request.result);
}

std::string describe(const clang::FunctionDecl& function) {
  std::string types;
  for (const clang::ParmVarDecl* parameter : function.parameters()) {
    types += (types.empty() ? "" : ", ") + parameter->getType().getAsString();
  }
  return "takes (" + types + ") and returns " + function.getReturnType().getAsString();
}

std::string instantiation_text(const clang::FunctionTemplateDecl& wanted,
                               const CinchExternRequest& request) {
  std::string types;
  for (std::size_t i = 0; i < request.num_params; ++i) {
    types += (i ? ", " : "") + std::string(c_name(request.params[i]));
  }
  return "static const auto " + std::string(kChosen) + " = static_cast<" + c_name(request.result) +
         " (*)(" + types + ")>(&::" + wanted.getQualifiedNameAsString() + ");\n";
}

const clang::FunctionDecl* find_instance(clang::ASTContext& context) {
  for (const clang::Decl* decl : context.getTranslationUnitDecl()->decls()) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(decl);
    if (!variable || variable->getName() != kChosen || !variable->getInit()) continue;
    const clang::Expr* expr = variable->getInit();
    while (true) {
      const clang::Expr* inner = expr->IgnoreParenCasts()->IgnoreImplicit();
      if (const auto* address = llvm::dyn_cast<clang::UnaryOperator>(inner)) {
        inner = address->getSubExpr();
      }
      if (inner == expr) break;
      expr = inner;
    }
    const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(expr);
    return name ? llvm::dyn_cast<clang::FunctionDecl>(name->getDecl()) : nullptr;
  }
  return nullptr;
}

}  // namespace cinch::clang_backend
