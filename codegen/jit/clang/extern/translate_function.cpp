// Functions, their calls and their types.
#include <clang/AST/DeclCXX.h>
#include <clang/Basic/Builtins.h>

#include <algorithm>
#include <iterator>
#include <string_view>

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

const char* integer_name(std::uint64_t bits, bool is_signed) {
  switch (bits) {
    case 8:
      return is_signed ? "i8" : "u8";
    case 16:
      return is_signed ? "i16" : "u16";
    case 32:
      return is_signed ? "i32" : "u32";
    case 64:
      return is_signed ? "i64" : "u64";
    default:
      return nullptr;
  }
}

// A name for a type that kernels do not support.
std::string refused_type(clang::QualType type) {
  if (type->isReferenceType()) return "a reference";
  if (type->isFunctionPointerType() || type->isMemberPointerType()) return "a function pointer";
  if (type->isPointerType() || type->isNullPtrType()) return "a pointer";
  if (type->isSpecificBuiltinType(clang::BuiltinType::LongDouble)) return "`long double`";
  if (type->isVectorType()) return "a vector type, which intrinsics compute with";
  if (type->isUnionType()) return "a union";
  if (const auto* record = type->getAsCXXRecordDecl(); record && record->isLambda()) {
    return "a lambda";
  }
  if (const auto* record = type->getAsCXXRecordDecl();
      record && record->hasDefinition() && record->isPolymorphic()) {
    return "virtual functions (`" + record->getNameAsString() + "`)";
  }
  return "the type `" + type.getAsString() + "`";
}

bool is_plain_struct(const clang::CXXRecordDecl& record) {
  return record.hasDefinition() && !record.isUnion() && !record.isLambda() &&
         record.getNumBases() == 0 && !record.isPolymorphic() && record.isTriviallyCopyable() &&
         record.hasTrivialDestructor();
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

// Calls of functions with a body, and of the C library functions that the language has itself. The
// latter have the language's bits on every target, which may differ from those of a C library.

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
    {"tanh", "tanh"},  {"log1p", "log1p"},
};

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
  constexpr std::string_view kPrefix = "__builtin_";
  std::string_view name = full;
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
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

// Types of parameters, variables and results. All have the width and sign of x86-64, on all
// targets.

const char* scalar_name(const clang::ASTContext& context, clang::QualType given) {
  clang::QualType type = given.getCanonicalType();
  if (type.isVolatileQualified() || type->isAtomicType()) return nullptr;
  if (const auto* as_enum = type->getAs<clang::EnumType>()) {
    type = as_enum->getDecl()->getIntegerType();
    if (type.isNull()) return nullptr;
    type = type.getCanonicalType();
  }
  const auto* builtin = type->getAs<clang::BuiltinType>();
  if (!builtin) return nullptr;
  if (builtin->getKind() == clang::BuiltinType::Bool) return "bool";
  if (builtin->getKind() == clang::BuiltinType::Float) return "f32";
  if (builtin->getKind() == clang::BuiltinType::Double) return "f64";
  if (!builtin->isInteger()) return nullptr;
  return integer_name(context.getTypeSize(type), builtin->isSignedInteger());
}

clang::QualType Translator::value_type(clang::QualType type, clang::SourceLocation where) const {
  const auto* reference = type->getAs<clang::LValueReferenceType>();
  if (!reference) return type;
  const clang::QualType inner = reference->getPointeeType();
  // Nothing can change the value between the call and its use: there are no other references.
  const bool is_value = inner.isConstQualified() && !inner.isVolatileQualified();
  if (!is_value) throw Refusal{where, "a reference through which a variable may change"};
  return inner;
}

std::string Translator::type_text(clang::QualType type, clang::SourceLocation where) {
  if (type.isVolatileQualified()) throw Refusal{where, "a `volatile` variable"};
  if (const char* name = scalar_name(context_, type)) return name;
  if (const auto* record = type->getAs<clang::RecordType>()) {
    return struct_name(*record->getDecl(), where);
  }
  throw Refusal{where, refused_type(type.getCanonicalType())};
}

std::string Translator::struct_name(const clang::RecordDecl& given, clang::SourceLocation where) {
  const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(given.getDefinition());
  if (!record || !is_plain_struct(*record)) {
    throw Refusal{where, refused_type(context_.getRecordType(&given))};
  }
  if (const auto known = structs_.find(record); known != structs_.end()) return known->second;
  const std::string name = new_name('S');
  std::string fields;
  for (const clang::FieldDecl* field : record->fields()) {
    if (field->isBitField()) throw Refusal{field->getLocation(), "a bit-field"};
    const char* type = scalar_name(context_, field->getType());
    if (!type) {
      throw Refusal{field->getLocation(),
                    "a member of a struct that is " + refused_type(field->getType())};
    }
    fields += std::string(" ") + type + " m" + std::to_string(field->getFieldIndex()) + ";";
  }
  definitions_ += "struct " + name + " {" + fields + " };\n";
  structs_.emplace(record, name);
  return name;
}

std::string Translator::zero_of(clang::QualType type, clang::SourceLocation where) {
  const std::string text = type_text(type, where);
  return scalar_name(context_, type) ? text + "(0)" : text + "{}";
}

}  // namespace cinch::clang_backend
