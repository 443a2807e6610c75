// Translator: turns Clang's tree of a function into self-contained text that CPU kernels, CUDA
// kernels and the interpreter compile. The text uses the language's own functions for everything
// that C++ leaves undefined or to the target: integers wrap, divisions by zero give 0, conversions
// saturate, an index outside an array means its nearest element. So every call ends, stays in
// bounds and gives the same bits everywhere; functions for which that is not possible are rejected.
#pragma once
#include <clang/AST/ASTContext.h>
#include <clang/AST/Decl.h>
#include <clang/AST/Expr.h>
#include <clang/AST/ExprCXX.h>
#include <clang/AST/Stmt.h>
#include <clang/AST/StmtCXX.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace cinch::clang_backend {

/// Thrown by the translator, caught by its caller; never crosses a frame of Clang's.
struct Refusal {
  clang::SourceLocation where;
  std::string why;  // what was found: "a global variable", "`goto`"
};

/// "f32", "i8", "bool" …; null for types that Cinch does not have.
const char* scalar_name(const clang::ASTContext& context, clang::QualType given);

/// Translates one function and everything that it calls, reads and uses as types.
class Translator {
 public:
  explicit Translator(clang::ASTContext& context) : context_(context) {}

  /// Returns text that ends in a function `call`. Throws Refusal.
  std::string run(const clang::FunctionDecl& given);
  /// The most operations of one call.
  std::uint64_t work() const { return total_work_; }

 private:
  // A function whose text exists or is being made; in the second case a call of it is a recursion.
  struct Function {
    std::string name;
    std::uint64_t work = 0, size = 0;
    bool is_open = true;
  };

  // ---- translate_function.cpp
  const Function& function(const clang::FunctionDecl& callee, clang::SourceLocation use);
  void check_function(const clang::FunctionDecl& callee, clang::SourceLocation use);
  std::string signature(const clang::FunctionDecl& callee, const std::string& name);
  void body(const clang::FunctionDecl& callee);
  // Never f32 or u8, which are types in the text.
  std::string new_name(char letter) {
    return std::string(1, letter) + "_" + std::to_string(next_name_++);
  }
  /// Adds the work of one round of the enclosing loops, and the operations in the text.
  void add_work(std::uint64_t operations, std::uint64_t size = 1);
  void line(const std::string& text);

  // ---- translate_function.cpp
  /// The text of a variable's type. Rejects other types, at `where`.
  std::string type_text(clang::QualType type, clang::SourceLocation where);
  std::string struct_name(const clang::RecordDecl& given, clang::SourceLocation where);
  /// A parameter's or result's type, without the reference of a `const T&`.
  clang::QualType value_type(clang::QualType type, clang::SourceLocation where) const;
  std::string zero_of(clang::QualType type, clang::SourceLocation where);

  // ---- translate_statement.cpp
  /// The literal of an expression whose value the compiler knows.
  std::optional<std::string> constant(const clang::Expr& expr);
  std::string literal(const clang::APValue& value, clang::QualType type,
                      clang::SourceLocation where);
  /// The constant value of a variable that lives outside of calls.
  const clang::APValue& constant_value(const clang::VarDecl& variable, clang::SourceLocation use);
  std::string table_name(const clang::VarDecl& variable, clang::SourceLocation use);

  // ---- translate_statement.cpp
  void statement(const clang::Stmt& stmt);
  void block(const clang::Stmt& stmt);  // between braces
  void declaration(const clang::DeclStmt& stmt);
  void variable(const clang::VarDecl& made);
  void if_statement(const clang::IfStmt& stmt);
  void switch_statement(const clang::SwitchStmt& stmt);
  void switch_case(const clang::SwitchCase& stmt);

  // ---- translate_loop.cpp
  void for_loop(const clang::ForStmt& stmt);
  void while_loop(const clang::WhileStmt& stmt);
  void do_loop(const clang::DoStmt& stmt);
  std::uint64_t vouched_rounds(clang::SourceLocation where) const;
  std::optional<std::uint64_t> proved_rounds(const clang::ForStmt& stmt) const;
  void loop_body(const clang::Stmt& stmt, std::uint64_t rounds);

  // ---- translate_statement.cpp
  /// An expression that is evaluated for its effect, as text without a semicolon; empty if it has
  /// none.
  std::string effect(const clang::Expr& given);
  std::string assignment(const clang::BinaryOperator& op);
  std::string step(const clang::UnaryOperator& op);
  /// The target of an assignment: a variable of the call, or a part of one.
  std::string target(const clang::Expr& given);

  // ---- translate_expression.cpp
  std::string value(const clang::Expr& given);
  std::string value_of(const clang::Expr& expr);
  std::string reference(const clang::DeclRefExpr& expr);
  std::string member(const clang::MemberExpr& expr);
  std::string cast(const clang::CastExpr& expr);
  std::string unary(const clang::UnaryOperator& op);
  std::string initializer(const clang::InitListExpr& given);
  std::string construction(const clang::CXXConstructExpr& expr);

  // ---- translate_expression.cpp
  std::string binary(const clang::BinaryOperator& op);
  std::string arithmetic(clang::BinaryOperatorKind kind, const std::string& a, const std::string& b,
                         clang::QualType left, clang::SourceLocation where);
  std::string converted(const std::string& text, clang::QualType from, clang::QualType to,
                        clang::SourceLocation where);
  std::string bits_of(const std::string& text, clang::QualType from, clang::QualType to,
                      clang::SourceLocation where);

  // ---- translate_function.cpp
  std::string call(const clang::CallExpr& expr);
  std::string builtin_call(const clang::CallExpr& expr, const clang::FunctionDecl& callee);
  std::string arguments(const clang::CallExpr& expr, const clang::FunctionDecl& callee);

  // ---- translate_expression.cpp
  std::string subscript(const clang::Expr& array, const clang::Expr& index);
  /// The element of an array: the array's name, its sizes, and the text of the index so far.
  struct Element {
    std::string array, index;
    std::uint64_t size = 1;
  };
  Element element(const clang::Expr& given, const clang::Expr& index);
  std::string array_name(const clang::Expr& array);

  /// Counts nested nodes. Deeper nesting than the stack can hold is rejected.
  class Level {
   public:
    Level(Translator& in, clang::SourceLocation where);
    ~Level() { --in_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Translator& in_;
  };

  clang::ASTContext& context_;
  std::map<const clang::FunctionDecl*, Function> functions_;
  std::map<const clang::VarDecl*, std::string> variables_, tables_;
  std::map<const clang::RecordDecl*, std::string> structs_;
  std::string definitions_;  // structs, tables and finished functions
  std::string text_;         // of the current function
  const clang::FunctionDecl* current_ = nullptr;
  std::uint64_t work_ = 0, rounds_ = 1;  // of the current function; of the enclosing loops
  // Size of the current function with the calls that are inlined into it.
  std::uint64_t size_ = 0;
  std::uint64_t total_work_ = 0;
  int depth_ = 0, indent_ = 0, next_name_ = 0;
};

/// The array under an expression that decays to a pointer, or the expression itself.
const clang::Expr& undecayed(const clang::Expr& expr);
/// The expression without parentheses and nodes that change nothing.
const clang::Expr& plain(const clang::Expr& given);

}  // namespace cinch::clang_backend
