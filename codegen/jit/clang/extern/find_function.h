// Finds the function in a header that a program declares.
#pragma once
#include <clang/AST/ASTContext.h>
#include <clang/AST/DeclTemplate.h>

#include <string>
#include <vector>

#include "codegen/jit/clang_backend.h"

namespace cinch::clang_backend {

/// All functions and templates with the name outside the system's headers, in any namespace, each
/// once.
struct Candidates {
  std::vector<const clang::FunctionDecl*> functions;
  std::vector<const clang::FunctionTemplateDecl*> templates;
};
Candidates find_candidates(clang::ASTContext& context, const std::string& name);

/// Does the function have the types that the program declares?
bool matches(const clang::ASTContext& context, const clang::FunctionDecl& function,
             const CinchExternRequest& request);
/// "takes (float, double) and returns float".
std::string describe(const clang::FunctionDecl& function);

/// Text, after the header, that instantiates a template for the request; and the function that this
/// text selects.
std::string instantiation_text(const clang::FunctionTemplateDecl& wanted,
                               const CinchExternRequest& request);
const clang::FunctionDecl* find_instance(clang::ASTContext& context);

}  // namespace cinch::clang_backend
