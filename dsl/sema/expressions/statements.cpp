// Dispatch, `let`, loops and assertions.
#include "dsl/sema/expressions/statements.h"

#include <utility>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

void Statements::statement(ast::StmtId id) {
  const ast::Stmt& node = tree()[id];
  const Span span = node.span;
  if (const auto* s = std::get_if<ast::Let>(&node.node)) return let(*s, span);
  if (const auto* s = std::get_if<ast::LetTuple>(&node.node)) return let_tuple(*s, span);
  if (const auto* s = std::get_if<ast::Assign>(&node.node)) return assign(*s, span);
  if (const auto* s = std::get_if<ast::For>(&node.node)) return for_loop(*s, span);
  if (const auto* s = std::get_if<ast::While>(&node.node)) return while_loop(*s, span);
  if (const auto* s = std::get_if<ast::Assert>(&node.node)) return assertion(*s, span);
  const Value value = all_.exprs.expr(std::get<ast::ExprStmt>(node.node).expr);
  // Nobody uses the value that a branch or block may leave; its assignments stay.
  if ((value.kind != ValueKind::Unit && !value.is_typed()) || !value.expr) return;
  const ExprKind kind = out_.exprs[value.expr.index()].kind;
  if (kind != ExprKind::Block && kind != ExprKind::If) return;
  Stmt made{StmtKind::Expr, span};
  made.expr = value.expr;
  build_.push(std::move(made));
}

void Statements::let(const ast::Let& node, Span span) {
  bind(node.name, node.is_mutable, all_.exprs.expr(node.value), node.value, span);
}

void Statements::let_tuple(const ast::LetTuple& node, Span span) {
  const Value value = all_.exprs.expr(node.value);
  const bool fits = value.kind == ValueKind::Tuple && value.elements.size() == node.names.size();
  if (!fits && !value.is_error()) {
    reporter_.report<DiagKind::BadType>(value.span, std::to_string(node.names.size()) + " values",
                                        text_.describe(value));
  }
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    bind(node.names[i], false, fits ? value.elements[i] : error_value(span), std::nullopt, span);
  }
}

// `written`: the expression, which loop variables may make an exact number.
void Statements::bind(const ast::Name& name, bool is_mutable, Value value,
                      std::optional<ast::ExprId> written, Span span) {
  Symbol symbol;
  symbol.span = name.span;
  symbol.is_let = written.has_value();
  if (value.kind == ValueKind::Tuple) {
    reporter_.report<DiagKind::BadType>(value.span, "one value", text_.describe(value))
        .note("`let (a, b) = …` takes several");
    value = error_value(span);
  }
  if (value.kind == ValueKind::Unit) {
    reporter_.report<DiagKind::NoValue>(value.span);
    value = error_value(span);
  }
  if (value.kind == ValueKind::Wire) {
    value = all_.payloads.payload_of(*value.owner, value, name.text, span);
  }
  const bool is_number = value.is_host() || value.kind == ValueKind::Table;
  const bool stays =
      value.is_error() || value.kind == ValueKind::Payload || (is_number && !is_mutable);
  if (stays) {
    symbol.value = value;
    all_.names.declare(name, std::move(symbol));
    return;
  }
  const Value made = is_mutable ? conversions_.unmet(value) : value;
  if (made.is_error()) {
    all_.names.declare(name, std::move(symbol));
    return;
  }
  all_.counts.name_counts(made.type, name);
  const VarId var = build_.add_var(name.text, made.type, is_mutable, name.span);
  Stmt let{StmtKind::Let, span};
  let.var = var;
  let.expr = made.expr;
  build_.push(std::move(let));
  symbol.value = build_.read_var(var, name.span);
  symbol.value.facts = made.facts;
  if (!is_mutable) symbol.value = all_.exact.as_named(made, symbol.value);
  if (symbol.value.is_exact && written) {
    const ModeScope scope(mode_);
    mode_.is_tried = true;
    symbol.leaf = all_.indexing.symbolic(*written).value_or(HostExprId());
  }
  if (is_mutable) {
    symbol.kind = SymbolKind::Variable;
    symbol.value.var = var;
    all_.facts.note(var, made.facts);
  }
  all_.names.declare(name, std::move(symbol));
}

Value Statements::unused_block(ast::BlockId id) {
  Value value = all_.exprs.block(id);
  if (value.is_error() || value.is_typed() || value.kind == ValueKind::Unit) return value;
  value.kind = ValueKind::Unit;
  value.expr = {};
  return value;
}

void Statements::for_loop(const ast::For& node, Span span) {
  const ast::Interval& bounds = tree()[node.bounds];
  auto begin = all_.constants.host_size(bounds.lo, "a loop bound");
  auto end = all_.constants.host_size(bounds.hi, "a loop bound");
  const HostExprId one = pool().const_int(1);
  if (begin && !bounds.includes_lo) begin = pool().add(*begin, one);
  if (end && bounds.includes_hi) end = pool().add(*end, one);
  Symbol symbol;
  symbol.span = node.variable.span;
  symbol.noun = kLoopVariable;
  const VarId var =
      build_.add_var(node.variable.text, scalar_type(kI64), false, node.variable.span);
  if (begin && end) {
    symbol.value = build_.read_var(var, node.variable.span);
    symbol.value.is_exact = true;
    symbol.leaf = pool().param((1u << 24) + var.index(), HostType::Int);
    sizes_.name(symbol.leaf, node.variable.text, node.variable.span);
    if (prover_.proves_nonnegative(*begin)) {
      symbol.value.facts.limit = *end;
      prover_.set_nonnegative(symbol.leaf);
    }
  }
  all_.numbering.forget_masks();
  Stmt made{StmtKind::For, span};
  made.index = all_.instances.num_methods();
  const Value body = all_.facts.in_loop([&] {
    return build_.in_block(tree()[node.body].span, [&] {
      env_->scopes.emplace_back();
      all_.names.declare(node.variable, symbol);
      const Value value = unused_block(node.body);
      env_->scopes.pop_back();
      return value;
    });
  });
  all_.numbering.forget_masks();
  if (!begin || !end || body.is_error()) return;
  made.var = var;
  made.size = *begin;
  made.size2 = *end;
  made.expr = body.expr;
  if (body.expr) build_.push(std::move(made));
}

void Statements::while_loop(const ast::While& node, Span span) {
  const auto limit = all_.constants.host_size(node.limit, "`at_most:`");
  all_.numbering.forget_masks();
  Stmt made{StmtKind::While, span};
  made.index = all_.instances.num_methods();
  Value test = error_value(span);
  const Value body = all_.facts.in_loop([&] {
    test = build_.in_block(tree()[node.condition].span, [&] {
      const auto outer = std::exchange(condition_vars_, out_.vars.size());
      const auto holds = all_.exprs.condition(node.condition);
      condition_vars_ = outer;
      Value value = error_value(span);
      if (!holds) return value;
      value.kind = ValueKind::Typed;
      value.expr = *holds;
      value.type = scalar_type(kBool);
      return value;
    });
    return build_.in_block(tree()[node.body].span, [&] { return unused_block(node.body); });
  });
  all_.numbering.forget_masks();
  if (!limit || test.is_error() || body.is_error() || !body.expr) return;
  made.expr2 = test.expr;
  made.size = *limit;
  made.expr = body.expr;
  build_.push(std::move(made));
}

void Statements::assertion(const ast::Assert& node, Span span) {
  const auto holds = all_.exprs.condition(node.condition);
  if (!holds) return;
  Stmt made{StmtKind::Assert, span};
  made.expr2 = *holds;
  made.text = node.message;
  build_.push(std::move(made));
}

}  // namespace cinch::sema
