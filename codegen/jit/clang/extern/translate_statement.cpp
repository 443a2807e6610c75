// Statements except loops.
#include <clang/AST/DeclCXX.h>
#include <clang/AST/StmtObjC.h>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

constexpr std::uint64_t kMostLocalElems = 256;

std::string refused_statement(const clang::Stmt& stmt) {
  switch (stmt.getStmtClass()) {
    case clang::Stmt::GotoStmtClass:
    case clang::Stmt::IndirectGotoStmtClass:
    case clang::Stmt::LabelStmtClass:
      return "`goto`";
    case clang::Stmt::GCCAsmStmtClass:
    case clang::Stmt::MSAsmStmtClass:
      return "inline assembly";
    case clang::Stmt::CXXTryStmtClass:
      return "a handler of exceptions";
    case clang::Stmt::CXXForRangeStmtClass:
      return "a range-based `for`";
    default:
      return std::string("a statement that kernels do not have (") + stmt.getStmtClassName() + ")";
  }
}

}  // namespace

void Translator::statement(const clang::Stmt& stmt) {
  const Level level(*this, stmt.getBeginLoc());
  switch (stmt.getStmtClass()) {
    case clang::Stmt::NullStmtClass:
      return;
    case clang::Stmt::CompoundStmtClass:
      return block(stmt);
    case clang::Stmt::DeclStmtClass:
      return declaration(llvm::cast<clang::DeclStmt>(stmt));
    case clang::Stmt::IfStmtClass:
      return if_statement(llvm::cast<clang::IfStmt>(stmt));
    case clang::Stmt::SwitchStmtClass:
      return switch_statement(llvm::cast<clang::SwitchStmt>(stmt));
    case clang::Stmt::CaseStmtClass:
    case clang::Stmt::DefaultStmtClass:
      return switch_case(llvm::cast<clang::SwitchCase>(stmt));
    case clang::Stmt::ForStmtClass:
      return for_loop(llvm::cast<clang::ForStmt>(stmt));
    case clang::Stmt::WhileStmtClass:
      return while_loop(llvm::cast<clang::WhileStmt>(stmt));
    case clang::Stmt::DoStmtClass:
      return do_loop(llvm::cast<clang::DoStmt>(stmt));
    case clang::Stmt::BreakStmtClass:
      return line("break;");
    case clang::Stmt::ContinueStmtClass:
      return line("continue;");
    case clang::Stmt::AttributedStmtClass:
      return statement(*llvm::cast<clang::AttributedStmt>(stmt).getSubStmt());
    case clang::Stmt::ReturnStmtClass: {
      const clang::Expr* result = llvm::cast<clang::ReturnStmt>(stmt).getRetValue();
      return line(result && !result->getType()->isVoidType() ? "return " + value(*result) + ";"
                                                             : "return;");
    }
    default:
      break;
  }
  const auto* expr = llvm::dyn_cast<clang::Expr>(&stmt);
  if (!expr) throw Refusal{stmt.getBeginLoc(), refused_statement(stmt)};
  if (const std::string text = effect(*expr); !text.empty()) line(text + ";");
}

void Translator::block(const clang::Stmt& stmt) {
  line("{");
  ++indent_;
  if (const auto* compound = llvm::dyn_cast<clang::CompoundStmt>(&stmt)) {
    for (const clang::Stmt* each : compound->body()) statement(*each);
  } else {
    statement(stmt);
  }
  --indent_;
  line("}");
}

void Translator::declaration(const clang::DeclStmt& stmt) {
  for (const clang::Decl* decl : stmt.decls()) {
    if (llvm::isa<clang::DecompositionDecl>(decl)) {
      throw Refusal{decl->getLocation(), "a structured binding"};
    }
    // Types and static assertions need no code.
    if (const auto* made = llvm::dyn_cast<clang::VarDecl>(decl)) variable(*made);
  }
}

void Translator::variable(const clang::VarDecl& made) {
  if (made.hasGlobalStorage()) {
    constant_value(made, made.getLocation());
    return;
  }
  const std::string name = new_name('v');
  variables_.emplace(&made, name);
  const clang::Expr* init = made.getInit();
  const clang::ConstantArrayType* array = context_.getAsConstantArrayType(made.getType());
  if (!array) {
    // The initial value may give a better message than the unsupported type.
    if (init && !made.getType()->isRecordType() && !scalar_name(context_, made.getType())) {
      (void)value(*init);
    }
    const std::string type = type_text(made.getType(), made.getLocation());
    const std::string first = init ? value(*init) : zero_of(made.getType(), made.getLocation());
    return line(type + " " + name + " = " + first + ";");
  }
  const std::uint64_t size = array->getSize().getLimitedValue();
  const char* element = scalar_name(context_, array->getElementType());
  if (!element || size == 0 || size > kMostLocalElems) {
    throw Refusal{made.getLocation(), "a local array that is not of 1 to " +
                                          std::to_string(kMostLocalElems) + " numbers"};
  }
  const clang::Expr* list = init ? &plain(*init) : nullptr;
  if (list && !llvm::isa<clang::InitListExpr>(list)) {
    throw Refusal{list->getBeginLoc(), "an array that is not made from a list"};
  }
  add_work(size);
  line(std::string(element) + " " + name + "[" + std::to_string(size) +
       "] = " + (list ? initializer(llvm::cast<clang::InitListExpr>(*list)) : "{}") + ";");
}

void Translator::if_statement(const clang::IfStmt& stmt) {
  if (stmt.isConsteval()) throw Refusal{stmt.getBeginLoc(), "`if consteval`"};
  if (stmt.getConditionVariable()) {
    throw Refusal{stmt.getBeginLoc(), "a variable that is declared in a condition"};
  }
  line("{");
  ++indent_;
  if (stmt.getInit()) statement(*stmt.getInit());
  if (stmt.isConstexpr()) {
    const auto chosen = stmt.getNondiscardedCase(context_);
    if (chosen && *chosen) statement(**chosen);
  } else {
    line("if (" + value(*stmt.getCond()) + ")");
    block(*stmt.getThen());
    if (stmt.getElse()) {
      line("else");
      block(*stmt.getElse());
    }
  }
  --indent_;
  line("}");
}

void Translator::switch_statement(const clang::SwitchStmt& stmt) {
  const auto* cases = llvm::dyn_cast<clang::CompoundStmt>(stmt.getBody());
  if (stmt.getInit() || stmt.getConditionVariable() || !cases) {
    throw Refusal{stmt.getBeginLoc(), "a `switch` of this form"};
  }
  line("switch (" + value(*stmt.getCond()) + ") {");
  ++indent_;
  for (const clang::Stmt* each : cases->body()) {
    if (llvm::isa<clang::DeclStmt>(each)) {
      throw Refusal{each->getBeginLoc(), "a declaration among the cases of a `switch`"};
    }
    statement(*each);
  }
  --indent_;
  line("}");
}

// A label must be followed by a statement.
void Translator::switch_case(const clang::SwitchCase& stmt) {
  if (const auto* one = llvm::dyn_cast<clang::CaseStmt>(&stmt)) {
    if (one->caseStmtIsGNURange()) throw Refusal{one->getBeginLoc(), "a range of cases"};
    const auto text = constant(*one->getLHS());
    if (!text) throw Refusal{one->getBeginLoc(), "a case that is not a constant"};
    line("case " + *text + ":;");
  } else {
    line("default:;");
  }
  const clang::Stmt* first = stmt.getSubStmt();
  if (!first) return;
  if (llvm::isa<clang::DeclStmt>(first)) {
    throw Refusal{first->getBeginLoc(), "a declaration among the cases of a `switch`"};
  }
  statement(*first);
}

}  // namespace cinch::clang_backend
