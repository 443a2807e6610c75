// Loops. A loop whose number of rounds follows from constants is accepted. Any other needs the
// attribute [[clang::annotate("cinch::at_most", N)]] at its function, and then ends after N rounds,
// whatever its condition: the attribute is a limit, not an assumption.
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

// An integer of a C++ type, which wraps.
struct Whole {
  __int128 value = 0;
  unsigned bits = 0;
  bool is_signed = false;

  Whole in(unsigned new_bits, bool new_signed) const {
    const __int128 size = __int128{1} << new_bits;
    __int128 rest = value & (size - 1);
    if (new_signed && (rest >> (new_bits - 1)) != 0) rest -= size;
    return {rest, new_bits, new_signed};
  }
};

std::optional<Whole> known_number(const clang::Expr& expr, const clang::ASTContext& context) {
  clang::Expr::EvalResult result;
  const bool is_known = expr.getType()->isIntegerType() && !expr.isValueDependent() &&
                        expr.EvaluateAsRValue(result, context) && result.Val.isInt() &&
                        result.Val.getInt().getBitWidth() <= 64;
  if (!is_known) return std::nullopt;
  const llvm::APSInt& found = result.Val.getInt();
  const auto low = static_cast<__int128>(found.getRawData()[0]);
  return Whole{low, 64, false}.in(found.getBitWidth(), found.isSigned());
}

// A counter with its condition and step, simulated with the numbers that the compiler knows.
class Counter {
 public:
  Counter(const clang::ASTContext& context, const clang::VarDecl& variable, const Whole& first)
      : context_(context), variable_(variable), value_(first) {}

  std::optional<bool> holds(const clang::Expr& condition) const {
    const auto* op = llvm::dyn_cast<clang::BinaryOperator>(condition.IgnoreParenImpCasts());
    if (!op || !op->isComparisonOp() || op->getOpcode() == clang::BO_Cmp) return std::nullopt;
    const auto a = number(*op->getLHS()), b = number(*op->getRHS());
    if (!a || !b) return std::nullopt;
    return compare(op->getOpcode(), a->value, b->value);
  }

  bool step(const clang::Expr& change) {
    if (const auto* op = llvm::dyn_cast<clang::UnaryOperator>(change.IgnoreParens())) {
      const bool counts =
          op->isIncrementDecrementOp() && variable_of(*op->getSubExpr()) == &variable_;
      if (counts) set(value_.value + (op->isIncrementOp() ? 1 : -1));
      return counts;
    }
    const auto* op = llvm::dyn_cast<clang::CompoundAssignOperator>(change.IgnoreParens());
    if (!op || variable_of(*op->getLHS()) != &variable_) return false;
    const auto by = number(*op->getRHS());
    return by && apply(op->getOpcode(), by->value);
  }

 private:
  static bool compare(clang::BinaryOperatorKind kind, __int128 a, __int128 b) {
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

  void set(__int128 value) { value_ = Whole{value}.in(value_.bits, value_.is_signed); }

  // Only small positive factors, and no division of negative numbers: a wider type in which C++ may
  // compute then gives the same result.
  bool apply(clang::BinaryOperatorKind kind, __int128 by) {
    constexpr __int128 kMostFactor = 1 << 16;
    const bool is_factor = by > 0 && by < kMostFactor;
    const bool is_shift = by >= 0 && by < value_.bits;
    switch (kind) {
      case clang::BO_AddAssign:
        set(value_.value + by);
        return true;
      case clang::BO_SubAssign:
        set(value_.value - by);
        return true;
      case clang::BO_MulAssign:
        if (is_factor) set(value_.value * by);
        return is_factor;
      case clang::BO_DivAssign:
        if (is_factor && value_.value >= 0) set(value_.value / by);
        return is_factor && value_.value >= 0;
      case clang::BO_ShlAssign:
        if (is_shift) set(value_.value * (__int128{1} << static_cast<int>(by)));
        return is_shift;
      case clang::BO_ShrAssign:
        if (is_shift) set(value_.value >> static_cast<int>(by));
        return is_shift;
      default:
        return false;
    }
  }

  // The value of the variable or of a constant, through integer conversions.
  std::optional<Whole> number(const clang::Expr& given) const {
    const clang::Expr& expr = *given.IgnoreParens();
    const auto* cast = llvm::dyn_cast<clang::ImplicitCastExpr>(&expr);
    if (cast && cast->getCastKind() == clang::CK_LValueToRValue) return number(*cast->getSubExpr());
    if (cast && cast->getCastKind() == clang::CK_IntegralCast) {
      const auto inner = number(*cast->getSubExpr());
      if (!inner) return std::nullopt;
      const clang::QualType type = cast->getType();
      return inner->in(static_cast<unsigned>(context_.getTypeSize(type)),
                       type->isSignedIntegerType());
    }
    return variable_of(expr) == &variable_ ? value_ : known_number(expr, context_);
  }

  const clang::ASTContext& context_;
  const clang::VarDecl& variable_;
  Whole value_;
};

}  // namespace

std::uint64_t Translator::vouched_rounds(clang::SourceLocation where) const {
  for (const auto* attribute : current_->specific_attrs<clang::AnnotateAttr>()) {
    if (attribute->getAnnotation() != kAttribute || attribute->args_size() != 1) continue;
    const auto limit = known_number(**attribute->args_begin(), context_);
    const __int128 rounds = limit ? limit->value : 0;
    if (rounds > 0 && rounds <= static_cast<__int128>(kMostRounds)) {
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
  if (!is_counter || changes(*stmt.getCond(), *variable)) return std::nullopt;
  const auto first = known_number(*variable->getInit(), context_);
  if (!first) return std::nullopt;
  Counter counter(context_, *variable, *first);
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
  const auto repeats = known_number(*stmt.getCond(), context_);
  const bool is_once = repeats && repeats->value == 0;
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
