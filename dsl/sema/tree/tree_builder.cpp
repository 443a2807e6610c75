// Nodes, variables and statements of the checked tree, and conditions on sizes.

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/tree/tree.h"

namespace cinch::sema {
using dsl::DiagKind;

// Elements are numbered by u32. Where a size has `n` or a parameter, the call finds out.
bool TreeBuilder::has_too_many(const Type& type) {
  constexpr std::int64_t kMost = std::int64_t{1} << 32;
  std::int64_t num_elems = 1;
  for (int i = 0; i < type.rank; ++i) {
    if (!pool().is_const(type.dims[i])) continue;
    const std::int64_t size = pool().const_value(type.dims[i]).as_int();
    if (size >= kMost || (size > 0 && num_elems >= kMost / size)) return true;
    num_elems *= std::max<std::int64_t>(size, 1);
  }
  return false;
}

Value TreeBuilder::typed(Expr expr) {
  expr.type = sizes_.in_one_form(expr.type);
  const auto has_reported = [&](ExprId arg) {
    return arg && has_too_many(out_.exprs[arg.index()].type);
  };
  if (has_too_many(expr.type) && std::ranges::none_of(expr.args, has_reported)) {
    reporter_.report<DiagKind::DoesNotHold>(expr.span, "an array has fewer than 2^32 elements")
        .note("here " + sizes_.type_text(expr.type));
  }
  Value value{.expr = ExprId(out_.exprs.size()),
              .span = expr.span,
              .type = expr.type,
              .kind = ValueKind::Typed};
  all_.growth.weigh(expr);
  out_.exprs.push_back(std::move(expr));
  return value;
}

VarId TreeBuilder::add_var(std::string name, const Type& type, bool is_mutable, Span span) {
  out_.vars.push_back(Var{.name = std::move(name),
                          .type = sizes_.in_one_form(type),
                          .is_mutable = is_mutable,
                          .span = span});
  return VarId(out_.vars.size() - 1);
}

Value TreeBuilder::read_var(VarId var, Span span) {
  const Value value = typed(
      Expr{.kind = ExprKind::Var, .type = out_.vars[var.index()].type, .span = span, .var = var});
  if (out_.vars[var.index()].is_mutable) all_.numbering.note_read(value.expr, var);
  return value;
}

void TreeBuilder::push(Stmt stmt) {
  if (stmt.kind == StmtKind::Let) all_.numbering.note_let(stmt);
  out_.stmts.push_back(std::move(stmt));
  if (stmts_ != nullptr) stmts_->emplace_back(out_.stmts.size() - 1);
}

Value TreeBuilder::in_block(Span span, const std::function<Value()>& body) {
  Branch made = in_branch(span, body);
  push_all(made);
  return std::move(made.value);
}

Branch TreeBuilder::in_branch(Span span, const std::function<Value()>& body) {
  std::vector<StmtId> own;
  std::vector<StmtId>* const outer = std::exchange(stmts_, &own);
  Value value = body();
  // The statements may be conditional, so they stay with the value that they compute.
  const bool is_number = value.is_host() || value.kind == ValueKind::Table;
  if (is_number && !own.empty()) value = conversions_.materialize(value);
  stmts_ = outer;
  if (own.empty() || value.is_error()) return {std::move(value), {}};
  if (value.kind == ValueKind::Payload || value.kind == ValueKind::Tuple) {
    return {std::move(value), std::move(own)};
  }
  Expr expr{.kind = ExprKind::Block, .type = value.type, .span = span, .stmts = std::move(own)};
  if (value.expr) expr.args = {value.expr};
  Value result = typed(std::move(expr));
  value.expr = result.expr;
  value.remake.reset();  // it may use variables of the block
  return {std::move(value), {}};
}

void TreeBuilder::push_all(const Branch& branch) {
  if (stmts_ != nullptr) stmts_->insert(stmts_->end(), branch.stmts.begin(), branch.stmts.end());
}

void TreeBuilder::into_branch(Branch& branch, const std::function<void()>& body) {
  std::vector<StmtId>* const outer = std::exchange(stmts_, &branch.stmts);
  body();
  stmts_ = outer;
}

bool TreeBuilder::is_leaf(const Value& value) const {
  if (!value.is_typed()) return true;
  const Expr& expr = out_.exprs[value.expr.index()];
  switch (expr.kind) {
    case ExprKind::Var:
      return !out_.vars[expr.var.index()].is_mutable;
    case ExprKind::Literal:
    case ExprKind::HostSize:
    case ExprKind::Param:
    case ExprKind::Gradient:
    case ExprKind::Field:
      return true;
    default:
      return false;
  }
}

Value TreeBuilder::shared(const Value& value, std::string name) {
  if (is_leaf(value)) return value;
  const VarId var = add_var(std::move(name), value.type, false, value.span);
  push(Stmt{.kind = StmtKind::Let, .span = value.span, .var = var, .expr = value.expr});
  Value read = read_var(var, value.span);
  read.facts = value.facts;
  return all_.numbers.as_named(value, read);
}

bool TreeBuilder::has_filter(ExprId id) const {
  const Expr& expr = out_.exprs[id.index()];
  const bool is_filter =
      expr.kind == ExprKind::Builtin && builtin_info(expr.builtin).group == BuiltinGroup::Filter;
  if (is_filter || !expr.stmts.empty()) return true;
  return std::any_of(expr.args.begin(), expr.args.end(),
                     [&](ExprId arg) { return arg && has_filter(arg); });
}

bool TreeBuilder::holds_filter(const Value& value) {
  if (!value.is_typed() || is_leaf(value) || stmts_ == nullptr) return false;
  bool is_counted = false;
  for (int i = 0; i < value.type.rank; ++i) is_counted |= pool().has_count(value.type.dims[i]);
  return is_counted && has_filter(value.expr);
}

Value TreeBuilder::behind_filter(const Value& operand, Span span,
                                 const std::function<Value(const Value&)>& use) {
  if (!holds_filter(operand)) return use(operand);
  return in_block(span, [&] { return use(shared(operand, "counted")); });
}

bool TreeBuilder::require(HostExprId condition, const std::string& what, Span span,
                          const std::string& found) {
  if (pool().is_const(condition)) {
    const bool holds = pool().const_value(condition).as_bool();
    if (!holds) {
      auto& diag = reporter_.report<DiagKind::DoesNotHold>(span, what);
      if (!found.empty()) diag.note("here " + found);
    }
    return holds;
  }
  if (stmts_ == nullptr) return true;
  if (pool().has_count(condition)) {
    // Only the device knows counts.
    Expr holds{ExprKind::HostSize, scalar_type(kBool), span};
    holds.size = condition;
    Stmt check{StmtKind::Assert, span};
    check.expr2 = typed(std::move(holds)).expr;
    check.text = what;
    push(std::move(check));
    return true;
  }
  push(Stmt{.kind = StmtKind::CheckHost, .span = span, .size = condition, .text = what});
  return true;
}

bool TreeBuilder::require_at_most(HostExprId a, HostExprId b, const std::string& what, Span span) {
  if (prover_.proves_less_equal(a, b)) return true;
  return require(pool().make(HostOp::Le, a, b), what, span,
                 sizes_.size_text(a) + " > " + sizes_.size_text(b));
}

bool TreeBuilder::require_nonnegative(HostExprId size, const std::string& what, Span span) {
  if (prover_.proves_nonnegative(size)) return true;
  return require(pool().make(HostOp::Ge, size, pool().const_int(0)), what, span,
                 sizes_.size_text(size) + " < 0");
}

Value TreeBuilder::builtin(BuiltinId id, Type type, std::vector<ExprId> args, Span span,
                           const std::function<void(Expr&)>& set) {
  Expr made{ExprKind::Builtin, type, span};
  made.builtin = id;
  made.args = std::move(args);
  if (set) set(made);
  return typed(std::move(made));
}

// Numbers of values, and the names and versions through which they are found.

void ValueNumbering::note_let(const Stmt& let) {
  const bool is_mutable = out_.vars[let.var.index()].is_mutable;
  if (is_mutable) first_values_[let.var.index()] = {let.expr, loop_};
  if (!is_mutable) definitions_[let.var.index()] = let.expr;
}

std::uint32_t ValueNumbering::version(VarId var) const {
  const auto known = var_versions_.find(var.index());
  return known == var_versions_.end() ? 0 : known->second;
}

// Until its first assignment a variable has its first value, within the loop of its declaration.
void ValueNumbering::note_read(ExprId read, VarId var) {
  const auto first = first_values_.find(var.index());
  const bool is_first =
      first != first_values_.end() && version(var) == 0 && first->second.second == loop_;
  if (is_first) same_values_[read.index()] = first->second.first;
  read_versions_[read.index()] = {version(var), epoch_};
}

// Finds the expression that defines a value. Looks through names that do not change, blocks that
// only name parts of their value, and fields of a payload.
ExprId ValueNumbering::resolved(ExprId id) const {
  while (true) {
    const Expr& e = out_.exprs[id.index()];
    ExprId next;
    if (const auto same = same_values_.find(id.index()); same != same_values_.end()) {
      next = same->second;
    } else if (e.kind == ExprKind::Var) {
      const auto known = definitions_.find(e.var.index());
      if (known != definitions_.end()) next = known->second;
    } else if (e.kind == ExprKind::Field) {
      const auto known = payload_literals_.find(e.var.index());
      if (known != payload_literals_.end()) next = out_.exprs[known->second.index()].args[e.index];
    } else if (e.kind == ExprKind::Block && !e.args.empty() && e.args[0]) {
      const auto names_a_part = [&](StmtId stmt) {
        return out_.stmts[stmt.index()].kind == StmtKind::Let;
      };
      if (std::ranges::all_of(e.stmts, names_a_part)) next = e.args[0];
    }
    if (!next) return id;
    id = next;
  }
}

// The integer before it was widened.
ExprId ValueNumbering::unwidened(ExprId id) const {
  id = resolved(id);
  const Expr& e = out_.exprs[id.index()];
  if (e.kind != ExprKind::Convert) return id;
  const ExprId inner = resolved(e.args[0]);
  const bool is_wider = widens_losslessly(out_.exprs[inner.index()].type.dtype, e.type.dtype);
  return is_wider ? unwidened(inner) : id;
}

// Two expressions with the same text have the same value. Reads of mutable names contain the number
// of the assignment that they see, and parameters of lambdas contain their position.
std::string ValueNumbering::expression_key(ExprId id) {
  const Expr& e = out_.exprs[id.index()];
  std::string key = std::to_string(static_cast<int>(e.kind)) + dtype_name(e.type.dtype) + ":";
  const auto add = [&](std::uint64_t number) { key += std::to_string(number) + ","; };
  const auto param = e.var ? lambda_params_.find(e.var.index()) : lambda_params_.end();
  if (e.kind == ExprKind::Var && param != lambda_params_.end()) return "parameter" + param->second;
  const auto flags = static_cast<std::uint64_t>(e.axis + 1) * 16 + (e.exclusive ? 4u : 0u) +
                     (e.descending ? 2u : 0u) + (e.shared ? 1u : 0u);
  for (const std::uint64_t number :
       {e.bits, std::uint64_t{e.index}, std::uint64_t{e.var.index()}, std::uint64_t{e.size.index()},
        std::uint64_t{e.size2.index()}, std::uint64_t{e.group.index()},
        std::uint64_t{e.stride.index()},
        std::uint64_t{e.travels_in ? std::hash<DType>()(*e.travels_in) : 0},
        static_cast<std::uint64_t>(e.scalar_op), static_cast<std::uint64_t>(e.builtin),
        static_cast<std::uint64_t>(e.keep), flags}) {
    add(number);
  }
  if (const auto version = read_versions_.find(id.index()); version != read_versions_.end()) {
    add(version->second.first);
    add(version->second.second);
  }
  // Draws, and blocks with effects, are equal only to themselves.
  const bool is_alone =
      e.kind == ExprKind::Block || e.kind == ExprKind::WireLiteral ||
      (e.kind == ExprKind::Builtin && builtin_info(e.builtin).group == BuiltinGroup::Random);
  if (is_alone) {
    add(id.index() + 1);
    return key;
  }
  for (std::size_t i = 0; i < e.params.size(); ++i) {
    const DType dtype = out_.vars[e.params[i].index()].type.dtype;
    lambda_params_[e.params[i].index()] =
        std::to_string(key_depth_) + "," + std::to_string(i) + dtype_name(dtype);
    key += dtype_name(dtype) + ";";
  }
  const bool is_lambda = e.kind == ExprKind::Lambda;
  if (is_lambda) ++key_depth_;
  key += "(";
  for (ExprId arg : e.args) {
    if (arg && e.kind == ExprKind::Convert) arg = unwidened(arg);
    key += arg ? std::to_string(value_number(arg)) + ";" : ";";
  }
  if (is_lambda) --key_depth_;
  return key + ")";
}

std::uint32_t ValueNumbering::value_number(ExprId written) {
  // The most names to look through: chains of names can be longer than the stack allows.
  constexpr int kDeepest = 200;
  ExprId id = key_levels_ < kDeepest ? resolved(written) : written;
  if (const Expr& e = out_.exprs[id.index()]; e.kind == ExprKind::Convert) {
    const ExprId from = unwidened(e.args[0]);
    if (out_.exprs[from.index()].type.dtype == e.type.dtype) id = from;
  }
  const auto known = numbers_.find(id.index());
  if (known != numbers_.end()) return known->second;
  ++key_levels_;
  const std::string text = expression_key(id);
  --key_levels_;
  const auto number = static_cast<std::uint32_t>(numbers_by_key_.size());
  return numbers_[id.index()] = numbers_by_key_.try_emplace(text, number).first->second;
}

}  // namespace cinch::sema
