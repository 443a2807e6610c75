// A plugin for clang-tidy: checks visit our own declarations only. Most of a unit is declarations
// of system headers; clang-tidy 19 shows nothing about them and still spends four fifths of its
// time there.
#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/FrontendPluginRegistry.h>

#include <memory>
#include <string>
#include <vector>

namespace {

class OwnDeclarations : public clang::ASTConsumer {
 public:
  void HandleTranslationUnit(clang::ASTContext& context) override {
    std::vector<clang::Decl*> own;
    for (clang::Decl* decl : context.getTranslationUnitDecl()->decls()) {
      if (!context.getSourceManager().isInSystemHeader(decl->getLocation())) own.push_back(decl);
    }
    context.setTraversalScope(own);
  }
};

// Clang's naming and declarations: it runs before clang-tidy's own action.
class Plugin : public clang::PluginASTAction {
 protected:
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance& /*instance*/,
                                                        llvm::StringRef /*file*/) override {
    return std::make_unique<OwnDeclarations>();
  }
  bool ParseArgs(const clang::CompilerInstance& /*instance*/,
                 const std::vector<std::string>& /*args*/) override {
    return true;
  }
  ActionType getActionType() override { return AddBeforeMainAction; }
};

const clang::FrontendPluginRegistry::Add<Plugin> kPlugin("own-declarations", "");

}  // namespace
