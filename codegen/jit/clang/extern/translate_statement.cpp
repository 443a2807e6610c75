// Statements except loops.
#include <clang/AST/APValue.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/StmtObjC.h>
#include <llvm/ADT/SmallString.h>

#include <cstdio>

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

// Changes of variables are statements of their own: inside an expression the compiler would choose
// their order, and results would differ between targets.

std::string Translator::effect(const clang::Expr& given) {
  const clang::Expr& expr = plain(given);
  if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(&expr)) {
    if (op->isAssignmentOp()) return assignment(*op);
    if (op->getOpcode() == clang::BO_Comma) {
      const std::string first = effect(*op->getLHS()), second = effect(*op->getRHS());
      return first + (first.empty() || second.empty() ? "" : ", ") + second;
    }
  }
  if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(&expr)) {
    if (op->isIncrementDecrementOp()) return step(*op);
  }
  if (const auto* op = llvm::dyn_cast<clang::CXXOperatorCallExpr>(&expr)) {
    const auto* method = llvm::dyn_cast_or_null<clang::CXXMethodDecl>(op->getDirectCallee());
    const bool copies = method && method->isTrivial() &&
                        (method->isCopyAssignmentOperator() || method->isMoveAssignmentOperator());
    if (copies) return target(*op->getArg(0)) + " = " + value(*op->getArg(1));
  }
  if (const auto* cast = llvm::dyn_cast<clang::CastExpr>(&expr);
      cast && cast->getCastKind() == clang::CK_ToVoid) {
    return effect(*cast->getSubExpr());
  }
  // The value is unused, but its expression must still be supported.
  value(expr);
  return "";
}

std::string Translator::target(const clang::Expr& given) {
  const clang::Expr& expr = plain(given);
  if (const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(&expr)) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(name->getDecl());
    const auto known = variables_.find(variable);
    if (known != variables_.end()) return known->second;
    throw Refusal{expr.getBeginLoc(), "a change of `" + name->getDecl()->getNameAsString() +
                                          "`, which outlives the call"};
  }
  if (const auto* part = llvm::dyn_cast<clang::MemberExpr>(&expr); part && !part->isArrow()) {
    const auto* field = llvm::dyn_cast<clang::FieldDecl>(part->getMemberDecl());
    if (field && !field->isBitField()) {
      return target(*part->getBase()) + ".m" + std::to_string(field->getFieldIndex());
    }
  }
  if (const auto* element = llvm::dyn_cast<clang::ArraySubscriptExpr>(&expr)) {
    (void)target(undecayed(*element->getBase()));
    return subscript(*element->getBase(), *element->getIdx());
  }
  throw Refusal{expr.getBeginLoc(), "an assignment to something other than a variable of the call"};
}

std::string Translator::assignment(const clang::BinaryOperator& op) {
  add_work(1);
  const std::string to = target(*op.getLHS());
  if (op.getOpcode() == clang::BO_Assign) return to + " = " + value(*op.getRHS());
  const auto& compound = llvm::cast<clang::CompoundAssignOperator>(op);
  const clang::SourceLocation where = op.getOperatorLoc();
  const clang::QualType type = op.getLHS()->getType();
  const std::string left = converted(to, type, compound.getComputationLHSType(), where);
  const std::string made =
      arithmetic(clang::BinaryOperator::getOpForCompoundAssignment(op.getOpcode()), left,
                 value(*op.getRHS()), compound.getComputationLHSType(), where);
  return to + " = " + converted(made, compound.getComputationResultType(), type, where);
}

// In the type in which C++ computes it: at least an int.
std::string Translator::step(const clang::UnaryOperator& op) {
  add_work(1);
  const clang::SourceLocation where = op.getOperatorLoc();
  const std::string to = target(*op.getSubExpr());
  const clang::QualType type = op.getSubExpr()->getType();
  const clang::QualType wide =
      context_.isPromotableIntegerType(type) ? context_.getPromotedIntegerType(type) : type;
  const std::string one = type_text(wide, where) + "(1)";
  const std::string made = arithmetic(op.isIncrementOp() ? clang::BO_Add : clang::BO_Sub,
                                      converted(to, type, wide, where), one, wide, where);
  return to + " = " + converted(made, wide, type, where);
}

// Values that the compiler knows: literals, and the tables of constant arrays.

namespace {

constexpr std::uint64_t kMostTableElems = 1u << 14;

std::string float_text(const llvm::APFloat& value, bool is_f64) {
  char text[64];
  if (value.isFinite()) {
    value.convertToHexString(text, 0, false, llvm::APFloat::rmNearestTiesToEven);
    return std::string("f") + (is_f64 ? "64(" : "32(") + text + (is_f64 ? ")" : "f)");
  }
  const std::uint64_t nan = is_f64 ? 0x7ff8000000000000 : 0x7fc00000;
  const std::uint64_t bits = value.isNaN() ? nan : value.bitcastToAPInt().getZExtValue();
  std::snprintf(text, sizeof text, "f%d_bits(0x%llx%s)", is_f64 ? 64 : 32,
                static_cast<unsigned long long>(bits), is_f64 ? "ull" : "u");
  return text;
}

std::string integer_text(const llvm::APSInt& value, const std::string& type) {
  if (type == "bool") return value.getBoolValue() ? "true" : "false";
  llvm::SmallString<32> digits;
  value.toString(digits, 10);
  if (value.isUnsigned()) return type + "(" + digits.str().str() + "ull)";
  // The smallest 64-bit integer has no literal of its own.
  if (value.getBitWidth() == 64 && value.isMinSignedValue())
    return "i64(-9223372036854775807ll - 1)";
  return type + "(" + digits.str().str() + "ll)";
}

clang::QualType element_type(const clang::ASTContext& context, clang::QualType type) {
  while (const clang::ArrayType* array = context.getAsArrayType(type)) {
    type = array->getElementType();
  }
  return type;
}

// std::array holds one array.
const clang::APValue& inner_array(const clang::APValue& value) {
  const bool wraps = value.isStruct() && value.getStructNumBases() == 0 &&
                     value.getStructNumFields() == 1 && value.getStructField(0).isArray();
  return wraps ? value.getStructField(0) : value;
}

void flatten(const clang::APValue& value, std::vector<const clang::APValue*>& elements) {
  if (!value.isArray()) return elements.push_back(&value);
  const unsigned size = value.getArraySize();
  for (unsigned i = 0; i < size && elements.size() <= kMostTableElems; ++i) {
    flatten(i < value.getArrayInitializedElts() ? value.getArrayInitializedElt(i)
                                                : value.getArrayFiller(),
            elements);
  }
}

}  // namespace

std::string Translator::literal(const clang::APValue& value, clang::QualType type,
                                clang::SourceLocation where) {
  const char* name = scalar_name(context_, type);
  if (name && value.isInt()) return integer_text(value.getInt(), name);
  if (name && value.isFloat()) return float_text(value.getFloat(), std::string(name) == "f64");
  throw Refusal{where, "a constant that is not a number"};
}

std::optional<std::string> Translator::constant(const clang::Expr& expr) {
  if (expr.isGLValue() || !scalar_name(context_, expr.getType())) return std::nullopt;
  clang::Expr::EvalResult result;
  if (!expr.EvaluateAsRValue(result, context_)) return std::nullopt;
  if (result.HasSideEffects || result.HasUndefinedBehavior) return std::nullopt;
  if (!result.Val.isInt() && !result.Val.isFloat()) return std::nullopt;
  return literal(result.Val, expr.getType(), expr.getBeginLoc());
}

const clang::APValue& Translator::constant_value(const clang::VarDecl& variable,
                                                 clang::SourceLocation use) {
  const std::string name = "`" + variable.getNameAsString() + "`";
  if (variable.getTLSKind() != clang::VarDecl::TLS_None) {
    throw Refusal{use, "the thread-local variable " + name};
  }
  const clang::QualType type = variable.getType();
  if (element_type(context_, type).isVolatileQualified()) {
    throw Refusal{use, "the `volatile` variable " + name};
  }
  const bool is_fixed = variable.isConstexpr() || type.isConstant(context_);
  if (!is_fixed) {
    throw Refusal{
        use,
        (variable.isStaticLocal() ? "the static local variable " : "the global variable ") + name};
  }
  const clang::VarDecl* definition = variable.getInitializingDeclaration();
  const clang::APValue* value = definition ? definition->evaluateValue() : nullptr;
  if (!value) throw Refusal{use, "the constant " + name + ", whose value is not known"};
  return *value;
}

std::string Translator::table_name(const clang::VarDecl& variable, clang::SourceLocation use) {
  const clang::VarDecl* key = variable.getCanonicalDecl();
  if (const auto known = tables_.find(key); known != tables_.end()) return known->second;
  const clang::APValue& value = inner_array(constant_value(variable, use));
  std::vector<const clang::APValue*> elements;
  flatten(value, elements);
  if (elements.size() > kMostTableElems) {
    throw Refusal{use, "a table of more than " + std::to_string(kMostTableElems) + " elements"};
  }
  clang::QualType type = variable.getType();
  if (const auto* record = type->getAsCXXRecordDecl(); record && !record->field_empty()) {
    type = record->field_begin()->getType();
  }
  type = element_type(context_, type);
  const char* element = scalar_name(context_, type);
  if (!element) throw Refusal{use, "a table of elements that are not numbers"};
  const std::string name = new_name('t');
  std::string text;
  for (const clang::APValue* each : elements) {
    text += (text.empty() ? "" : ", ") + literal(*each, type, use);
  }
  definitions_ += "CINCH_LANG_TABLE " + std::string(element) + " " + name + "[" +
                  std::to_string(elements.size()) + "] = {" + text + "};\n";
  tables_.emplace(key, name);
  return name;
}

}  // namespace cinch::clang_backend
