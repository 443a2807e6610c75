// Loops. One whose rounds follow from constants is taken as it is; any other needs the attribute
// [[clang::annotate("cinch::at_most", N)]] at its function, and then ends after N rounds, whatever
// its condition says: the attribute is a limit, not a belief.
#include <clang/AST/Attr.h>

#include "codegen/jit/clang/extern/translator.h"

namespace cinch::clang_backend {
namespace {

constexpr std::uint64_t kMostRounds = 1u << 20;
constexpr const char* kAttribute = "cinch::at_most";

const clang::VarDecl* variable_of(const clang::Expr& expr) {
  const auto* name = llvm::dyn_cast<clang::DeclRefExpr>(expr.IgnoreParenImpCasts());
  return name ? llvm::dyn_cast<clang::VarDecl>(name->getDecl()) : nullptr;
}

// Does anything under `root` change the variable?
bool changes(const clang::Stmt& root, const clang::VarDecl& variable) {
  std::vector<const clang::Stmt*> open = {&root};
  while (!open.empty()) {
    const clang::Stmt* stmt = open.back();
    open.pop_back();
    if (const auto* op = llvm::dyn_cast<clang::BinaryOperator>(stmt)) {
      if (op->isAssignmentOp() && variable_of(*op->getLHS()) == &variable) return true;
    }
    if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(stmt)) {
      if (op->isIncrementDecrementOp() && variable_of(*op->getSubExpr()) == &variable) return true;
    }
    for (const clang::Stmt* child : stmt->children()) {
      if (child) open.push_back(child);
    }
  }
  return false;
}

// A counter with its condition and step, run through with the numbers that the compiler knows.
class Counter {
 public:
  Counter(const clang::ASTContext& context, const clang::VarDecl& variable, llvm::APSInt first)
      : context_(context), variable_(variable), value_(std::move(first)) {}

  std::optional<bool> holds(const clang::Expr& condition) const {
    const auto* op = llvm::dyn_cast<clang::BinaryOperator>(condition.IgnoreParenImpCasts());
    if (!op || !op->isComparisonOp() || op->getOpcode() == clang::BO_Cmp) return std::nullopt;
    const auto a = number(*op->getLHS()), b = number(*op->getRHS());
    if (!a || !b || a->getBitWidth() != b->getBitWidth() || a->isSigned() != b->isSigned()) {
      return std::nullopt;
    }
    return compare(op->getOpcode(), *a, *b);
  }

  bool step(const clang::Expr& change) {
    if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(change.IgnoreParens())) {
      if (!op->isIncrementDecrementOp() || variable_of(*op->getSubExpr()) != &variable_)
        return false;
      op->isIncrementOp() ? ++value_ : --value_;
      return true;
    }
    const auto* op = llvm::dyn_cast<clang::CompoundAssignOperator>(change.IgnoreParens());
    if (!op || variable_of(*op->getLHS()) != &variable_) return false;
    const auto by = number(*op->getRHS());
    return by && apply(op->getOpcode(), by->getExtValue());
  }

 private:
  static bool compare(clang::BinaryOperatorKind kind, const llvm::APSInt& a,
                      const llvm::APSInt& b) {
    switch (kind) {
      case clang::BO_LT:
        return a < b;
      case clang::BO_LE:
        return a <= b;
      case clang::BO_GT:
        return a > b;
      case clang::BO_GE:
        return a >= b;
      case clang::BO_EQ:
        return a == b;
      default:
        return a != b;
    }
  }

  // In the variable's own type, which wraps; as the emitted text does where no wider type is used.
  bool apply(clang::BinaryOperatorKind kind, std::int64_t by) {
    const llvm::APSInt operand(
        llvm::APInt(value_.getBitWidth(), static_cast<std::uint64_t>(by), true),
        value_.isUnsigned());
    const bool is_shift = by >= 0 && by < value_.getBitWidth();
    switch (kind) {
      case clang::BO_AddAssign:
        value_ += operand;
        return true;
      case clang::BO_SubAssign:
        value_ -= operand;
        return true;
      case clang::BO_MulAssign:
        value_ *= operand;
        return true;
      case clang::BO_DivAssign:
        if (by <= 1) return false;
        value_ = value_ / operand;
        return true;
      case clang::BO_ShlAssign:
        if (!is_shift) return false;
        value_ = value_ << static_cast<unsigned>(by);
        return true;
      case clang::BO_ShrAssign:
        if (!is_shift) return false;
        value_ = value_ >> static_cast<unsigned>(by);
        return true;
      default:
        return false;
    }
  }

  // The variable or a constant, through conversions of integers.
  std::optional<llvm::APSInt> number(const clang::Expr& given) const {
    const clang::Expr& expr = *given.IgnoreParens();
    if (const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(&expr)) {
      auto inner = number(*cast->getSubExpr());
      if (!inner || cast->getCastKind() == clang::CK_LValueToRValue) return inner;
      if (cast->getCastKind() != clang::CK_IntegralCast) return std::nullopt;
      llvm::APSInt made =
          inner->extOrTrunc(static_cast<unsigned>(context_.getTypeSize(cast->getType())));
      made.setIsSigned(cast->getType()->isSignedIntegerType());
      return made;
    }
    if (variable_of(expr) == &variable_) return value_;
    clang::Expr::EvalResult result;
    const bool is_known = !expr.isValueDependent() && expr.getType()->isIntegerType() &&
                          expr.EvaluateAsRValue(result, context_) && result.Val.isInt();
    return is_known ? std::optional(result.Val.getInt()) : std::nullopt;
  }

  const clang::ASTContext& context_;
  const clang::VarDecl& variable_;
  llvm::APSInt value_;
};

}  // namespace

std::uint64_t Translator::vouched_rounds(clang::SourceLocation where) const {
  for (const auto* attribute : current_->specific_attrs<clang::AnnotateAttr>()) {
    if (attribute->getAnnotation() != kAttribute || attribute->args_size() != 1) continue;
    clang::Expr::EvalResult result;
    const clang::Expr* limit = *attribute->args_begin();
    const bool is_known = limit->EvaluateAsRValue(result, context_) && result.Val.isInt();
    const std::int64_t rounds = is_known ? result.Val.getInt().getExtValue() : 0;
    if (rounds > 0 && rounds <= static_cast<std::int64_t>(kMostRounds)) {
      return static_cast<std::uint64_t>(rounds);
    }
    throw Refusal{attribute->getLocation(),
                  "a limit of rounds that is not 1 to " + std::to_string(kMostRounds)};
  }
  throw Refusal{where,
                "a loop whose rounds do not follow from constants; "
                "[[clang::annotate(\"cinch::at_most\", N)]] at the function limits them"};
}

std::optional<std::uint64_t> Translator::proved_rounds(const clang::ForStmt& stmt) const {
  const auto* init = llvm::dyn_cast_or_null<clang::DeclStmt>(stmt.getInit());
  if (!init || !init->isSingleDecl() || !stmt.getCond() || !stmt.getInc()) return std::nullopt;
  const auto* variable = llvm::dyn_cast<clang::VarDecl>(init->getSingleDecl());
  const bool is_counter = variable && variable->getInit() && variable->getType()->isIntegerType() &&
                          !variable->hasGlobalStorage() && !changes(*stmt.getBody(), *variable);
  clang::Expr::EvalResult first;
  if (!is_counter || changes(*stmt.getCond(), *variable) ||
      !variable->getInit()->EvaluateAsRValue(first, context_) || !first.Val.isInt()) {
    return std::nullopt;
  }
  Counter counter(context_, *variable, first.Val.getInt());
  for (std::uint64_t rounds = 0; rounds <= kMostRounds; ++rounds) {
    const auto holds = counter.holds(*stmt.getCond());
    if (!holds) return std::nullopt;
    if (!*holds) return rounds;
    if (!counter.step(*stmt.getInc())) return std::nullopt;
  }
  return std::nullopt;
}

void Translator::loop_body(const clang::Stmt& stmt, std::uint64_t rounds) {
  add_work(rounds);
  const std::uint64_t outer = rounds_;
  rounds_ *= std::max<std::uint64_t>(rounds, 1);
  block(stmt);
  rounds_ = outer;
}

void Translator::for_loop(const clang::ForStmt& stmt) {
  if (stmt.getConditionVariable()) {
    throw Refusal{stmt.getBeginLoc(), "a variable that is declared in a condition"};
  }
  const auto proved = proved_rounds(stmt);
  const std::uint64_t rounds = proved ? *proved : vouched_rounds(stmt.getBeginLoc());
  line("{");
  ++indent_;
  if (stmt.getInit()) statement(*stmt.getInit());
  const std::string condition = stmt.getCond() ? value(*stmt.getCond()) : "true";
  const std::string change = stmt.getInc() ? effect(*stmt.getInc()) : "";
  if (proved) {
    line("for (; " + condition + "; " + change + ")");
  } else {
    const std::string count = new_name('n');
    line("for (u32 " + count + " = 0; " + count + " < " + std::to_string(rounds) + "u && (" +
         condition + "); ++" + count + (change.empty() ? "" : ", " + change) + ")");
  }
  loop_body(*stmt.getBody(), rounds);
  --indent_;
  line("}");
}

void Translator::while_loop(const clang::WhileStmt& stmt) {
  if (stmt.getConditionVariable()) {
    throw Refusal{stmt.getBeginLoc(), "a variable that is declared in a condition"};
  }
  const std::uint64_t rounds = vouched_rounds(stmt.getBeginLoc());
  const std::string count = new_name('n');
  line("for (u32 " + count + " = 0; " + count + " < " + std::to_string(rounds) + "u && (" +
       value(*stmt.getCond()) + "); ++" + count + ")");
  loop_body(*stmt.getBody(), rounds);
}

void Translator::do_loop(const clang::DoStmt& stmt) {
  clang::Expr::EvalResult result;
  const bool is_once = stmt.getCond()->EvaluateAsRValue(result, context_) && result.Val.isInt() &&
                       result.Val.getInt() == 0;
  const std::uint64_t rounds = is_once ? 1 : vouched_rounds(stmt.getBeginLoc());
  const std::string count = new_name('n');
  line("{");
  ++indent_;
  line("u32 " + count + " = 0;");
  line("do");
  loop_body(*stmt.getBody(), rounds);
  line("while (++" + count + " < " + std::to_string(rounds) + "u && (" + value(*stmt.getCond()) +
       "));");
  --indent_;
  line("}");
}

}  // namespace cinch::clang_backend
