// Nodes, variables and statements of the checked tree, and conditions on sizes.
#include "dsl/sema/tree/tree_builder.h"

#include <algorithm>
#include <utility>

#include "dsl/sema/elaboration/elaboration.h"

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
  Value value;
  value.kind = ValueKind::Typed;
  value.span = expr.span;
  value.type = expr.type;
  value.expr = ExprId(out_.exprs.size());
  all_.growth.weigh(expr);
  out_.exprs.push_back(std::move(expr));
  return value;
}

VarId TreeBuilder::add_var(std::string name, const Type& type, bool is_mutable, Span span) {
  Var var;
  var.name = std::move(name);
  var.type = sizes_.in_one_form(type);
  var.is_mutable = is_mutable;
  var.span = span;
  out_.vars.push_back(std::move(var));
  return VarId(out_.vars.size() - 1);
}

Value TreeBuilder::read_var(VarId var, Span span) {
  Expr expr{ExprKind::Var, out_.vars[var.index()].type, span};
  expr.var = var;
  const Value value = typed(std::move(expr));
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
  Expr expr{ExprKind::Block, value.type, span};
  expr.stmts = std::move(own);
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
  Stmt let{StmtKind::Let, value.span};
  let.var = var;
  let.expr = value.expr;
  push(std::move(let));
  Value read = read_var(var, value.span);
  read.facts = value.facts;
  return all_.exact.as_named(value, read);
}

namespace {

bool is_filter(const Expr& expr) {
  return expr.kind == ExprKind::Builtin && builtin_info(expr.builtin).group == BuiltinGroup::Filter;
}

}  // namespace

bool TreeBuilder::has_filter(ExprId id) const {
  const Expr& expr = out_.exprs[id.index()];
  if (is_filter(expr) || !expr.stmts.empty()) return true;
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
  Stmt check{StmtKind::CheckHost, span};
  check.size = condition;
  check.text = what;
  push(std::move(check));
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

}  // namespace cinch::sema
