// Functions: which ones may be called, their signatures, and their bodies in the order of
// dependence.
#include <clang/AST/DeclCXX.h>

#include <limits>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

constexpr std::uint64_t kMostWork = 1u << 20;  // operations of a call
constexpr std::uint64_t kMostSize = 1u << 13;  // operations in the text, as calls are inlined
constexpr int kMostLevels = 200;               // of nested nodes, over all calls together
constexpr std::size_t kMostText = 1u << 20;    // bytes

// An index outside an array means the nearest element, as C++ gives it no meaning.
constexpr const char* kNearest =
    "CINCH_LANG_FN u32 nearest(i64 index, u32 size) {\n"
    "  return index < 0 ? 0u : index >= i64(size) ? size - 1u : u32(index);\n"
    "}\n";

// The depth of a tree, computed without recursion: Clang's own evaluation recurses.
bool is_deeper(const clang::Stmt& root, int most) {
  std::vector<std::pair<const clang::Stmt*, int>> open = {{&root, 1}};
  while (!open.empty()) {
    const auto [stmt, depth] = open.back();
    open.pop_back();
    if (depth > most) return true;
    for (const clang::Stmt* child : stmt->children()) {
      if (child) open.emplace_back(child, depth + 1);
    }
  }
  return false;
}

}  // namespace

Translator::Level::Level(Translator& in, clang::SourceLocation where) : in_(in) {
  if (in_.depth_ >= kMostLevels) throw Refusal{where, "code that is nested too deeply"};
  ++in_.depth_;
}

std::string Translator::run(const clang::FunctionDecl& given) {
  const Function& made = function(given, given.getLocation());
  total_work_ = made.work;
  std::string parameters, arguments;
  for (unsigned i = 0; i < given.getNumParams(); ++i) {
    const clang::ParmVarDecl& parameter = *given.getParamDecl(i);
    const std::string name = "a" + std::to_string(i);
    const clang::QualType type = value_type(parameter.getType(), parameter.getLocation());
    parameters += (i ? ", " : "") + type_text(type, parameter.getLocation()) + " " + name;
    arguments += (i ? ", " : "") + name;
  }
  const clang::QualType result = value_type(given.getReturnType(), given.getLocation());
  return kNearest + definitions_ + "CINCH_LANG_FN " + type_text(result, given.getLocation()) +
         " call(" + parameters + ") {\n  return " + made.name + "(" + arguments + ");\n}\n";
}

void Translator::add_work(std::uint64_t operations, std::uint64_t size) {
  work_ += operations > kMostWork / rounds_ ? kMostWork : operations * rounds_;
  size_ += size;
  if (size_ > kMostSize) {
    throw Refusal{current_->getLocation(),
                  "more than " + std::to_string(kMostSize) + " operations, with all that it calls"};
  }
  if (work_ >= kMostWork) {
    throw Refusal{current_->getLocation(),
                  "more than " + std::to_string(kMostWork) + " operations in a call"};
  }
}

void Translator::line(const std::string& text) {
  text_ += std::string(2 * static_cast<std::size_t>(indent_), ' ') + text + '\n';
  if (text_.size() + definitions_.size() > kMostText) {
    throw Refusal{current_->getLocation(), "more code than a kernel should hold"};
  }
}

void Translator::check_function(const clang::FunctionDecl& callee, clang::SourceLocation use) {
  const std::string name = "`" + callee.getNameAsString() + "`";
  if (callee.isVariadic()) throw Refusal{use, "a call of " + name + ", which takes any arguments"};
  const auto* method = llvm::dyn_cast<clang::CXXMethodDecl>(&callee);
  if (method && method->isVirtual()) throw Refusal{use, "a call of the virtual function " + name};
  if (method && method->getParent()->isLambda()) throw Refusal{use, "a lambda"};
  if (method && method->isInstance()) throw Refusal{use, "a call of the member function " + name};
  const bool has_body = callee.getDefinition() && callee.getDefinition()->getBody();
  if (!has_body && !current_) throw Refusal{use, "no body in the header"};
  if (!has_body) {
    throw Refusal{use, "a call of " + name + ", which has no body in the headers"};
  }
}

const Translator::Function& Translator::function(const clang::FunctionDecl& callee,
                                                 clang::SourceLocation use) {
  check_function(callee, use);
  const clang::FunctionDecl* definition = callee.getDefinition();
  if (const auto known = functions_.find(definition); known != functions_.end()) {
    if (!known->second.is_open) return known->second;
    throw Refusal{use, "recursion: `" + callee.getNameAsString() + "` is being called already"};
  }
  const Level level(*this, use);
  if (is_deeper(*definition->getBody(), kMostLevels)) {
    throw Refusal{definition->getLocation(), "code that is nested too deeply"};
  }
  Function& made = functions_[definition];
  made.name = new_name('f');
  const auto outer =
      std::make_tuple(std::exchange(text_, {}), current_, work_, size_, rounds_, indent_);
  current_ = definition;
  work_ = size_ = 0;
  rounds_ = 1;
  indent_ = 0;
  body(*definition);
  made.work = work_;
  made.size = size_;
  made.is_open = false;
  definitions_ += text_;
  std::tie(text_, current_, work_, size_, rounds_, indent_) = outer;
  return made;
}

std::string Translator::signature(const clang::FunctionDecl& callee, const std::string& name) {
  std::string parameters;
  for (const clang::ParmVarDecl* parameter : callee.parameters()) {
    const std::string variable = new_name('a');
    const clang::QualType type = value_type(parameter->getType(), parameter->getLocation());
    parameters += (parameters.empty() ? "" : ", ") + type_text(type, parameter->getLocation()) +
                  " " + variable;
    variables_.emplace(parameter, variable);
  }
  const clang::QualType result = callee.getReturnType();
  const std::string type =
      result->isVoidType()
          ? "void"
          : type_text(value_type(result, callee.getLocation()), callee.getLocation());
  return "CINCH_LANG_FN " + type + " " + name + "(" + parameters + ")";
}

void Translator::body(const clang::FunctionDecl& callee) {
  line(signature(callee, functions_[&callee].name) + " {");
  ++indent_;
  const clang::Stmt& stmts = *callee.getBody();
  const auto* compound = llvm::dyn_cast<clang::CompoundStmt>(&stmts);
  if (!compound) throw Refusal{stmts.getBeginLoc(), "a function body with handlers of exceptions"};
  for (const clang::Stmt* stmt : compound->body()) statement(*stmt);
  const clang::QualType result = callee.getReturnType();
  const bool returns =
      !compound->body_empty() && llvm::isa<clang::ReturnStmt>(compound->body_back());
  if (!result->isVoidType() && !returns) {
    line("return " + zero_of(value_type(result, callee.getLocation()), callee.getLocation()) + ";");
  }
  --indent_;
  line("}");
}

}  // namespace cinch::clang_backend
