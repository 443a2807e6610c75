// A check of clang-tidy's plugin: the bodies of functions, methods, constructors and lambdas have
// at most 60 lines, with their braces. A body written by a macro is as long as the macro's use.
// Code that is better in one piece, a table for instance, says so: NOLINT(cinch-function-length).
#include <clang-tidy/ClangTidyCheck.h>
#include <clang-tidy/ClangTidyModule.h>
#include <clang-tidy/ClangTidyModuleRegistry.h>
#include <clang/ASTMatchers/ASTMatchers.h>

namespace {

using clang::ast_matchers::functionDecl;
using clang::ast_matchers::isDefinition;
using clang::ast_matchers::isInstantiated;
using clang::ast_matchers::MatchFinder;
using clang::ast_matchers::unless;

constexpr unsigned kMaxLines = 60;

class FunctionLength : public clang::tidy::ClangTidyCheck {
 public:
  using ClangTidyCheck::ClangTidyCheck;

  // A lambda's body is that of its call operator.
  void registerMatchers(MatchFinder* finder) override {
    finder->addMatcher(functionDecl(isDefinition(), unless(isInstantiated())).bind("function"),
                       this);
  }

  void check(const MatchFinder::MatchResult& result) override {
    const auto* function = result.Nodes.getNodeAs<clang::FunctionDecl>("function");
    const clang::Stmt* body = function->getBody();
    if (!body) return;
    const unsigned first = result.SourceManager->getExpansionLineNumber(body->getBeginLoc());
    const unsigned last = result.SourceManager->getExpansionLineNumber(body->getEndLoc());
    const unsigned lines = last - first + 1;
    if (lines > kMaxLines)
      diag(function->getLocation(), "the body of %0 has %1 lines; at most %2 are allowed")
          << function << lines << kMaxLines;
  }
};

class Module : public clang::tidy::ClangTidyModule {
 public:
  void addCheckFactories(clang::tidy::ClangTidyCheckFactories& checks) override {
    checks.registerCheck<FunctionLength>("cinch-function-length");
  }
};

const clang::tidy::ClangTidyModuleRegistry::Add<Module> kModule("cinch-module", "");

}  // namespace
