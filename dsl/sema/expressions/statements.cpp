// Dispatch, `let`, loops and assertions.
#include <utility>

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/expressions/expressions.h"

namespace cinch::sema {
using dsl::DiagKind;

void Expressions::statement(ast::StmtId id) {
  const ast::Stmt& node = tree()[id];
  const Span span = node.span;
  if (const auto* s = std::get_if<ast::Let>(&node.node)) return let(*s, span);
  if (const auto* s = std::get_if<ast::LetTuple>(&node.node)) return let_tuple(*s, span);
  if (const auto* s = std::get_if<ast::Assign>(&node.node)) return assign(*s, span);
  if (const auto* s = std::get_if<ast::For>(&node.node)) return for_loop(*s, span);
  if (const auto* s = std::get_if<ast::While>(&node.node)) return while_loop(*s, span);
  if (const auto* s = std::get_if<ast::Assert>(&node.node)) return assertion(*s, span);
  const Value value = expr(std::get<ast::ExprStmt>(node.node).expr);
  // Nobody uses the value that a branch or block may leave; its assignments stay.
  if ((value.kind != ValueKind::Unit && !value.is_typed()) || !value.expr) return;
  const ExprKind kind = out_.exprs[value.expr.index()].kind;
  if (kind != ExprKind::Block && kind != ExprKind::If) return;
  build_.push(Stmt{.kind = StmtKind::Expr, .span = span, .expr = value.expr});
}

void Expressions::let(const ast::Let& node, Span span) {
  bind(node.name, node.is_mutable, expr(node.value), node.value, span);
}

void Expressions::let_tuple(const ast::LetTuple& node, Span span) {
  const Value value = expr(node.value);
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
void Expressions::bind(const ast::Name& name, bool is_mutable, Value value,
                       std::optional<ast::ExprId> written, Span span) {
  Symbol symbol{.span = name.span, .is_let = written.has_value()};
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
    value = all_.bodies.payload_of(*value.owner, value, name.text, span);
  }
  const bool is_number = value.is_host() || value.kind == ValueKind::Table;
  const bool stays =
      value.is_error() || value.kind == ValueKind::Payload || (is_number && !is_mutable);
  if (stays) {
    symbol.value = value;
    declare(name, std::move(symbol));
    return;
  }
  const Value made = is_mutable ? conversions_.unmet(value) : value;
  if (made.is_error()) {
    declare(name, std::move(symbol));
    return;
  }
  all_.counts.name_counts(made.type, name);
  const VarId var = build_.add_var(name.text, made.type, is_mutable, name.span);
  build_.push(Stmt{.kind = StmtKind::Let, .span = span, .var = var, .expr = made.expr});
  symbol.value = build_.read_var(var, name.span);
  symbol.value.facts = made.facts;
  if (!is_mutable) symbol.value = all_.numbers.as_named(made, symbol.value);
  if (symbol.value.is_exact && written) {
    const ModeScope scope(mode_);
    mode_.is_tried = true;
    symbol.leaf = symbolic(*written).value_or(HostExprId());
  }
  if (is_mutable) {
    symbol.kind = SymbolKind::Variable;
    symbol.value.var = var;
    all_.facts.note(var, made.facts);
  }
  declare(name, std::move(symbol));
}

Value Expressions::unused_block(ast::BlockId id) {
  Value value = block(id);
  if (value.is_error() || value.is_typed() || value.kind == ValueKind::Unit) return value;
  value.kind = ValueKind::Unit;
  value.expr = {};
  return value;
}

void Expressions::for_loop(const ast::For& node, Span span) {
  const ast::Interval& bounds = tree()[node.bounds];
  auto begin = all_.numbers.host_size(bounds.lo, "a loop bound");
  auto end = all_.numbers.host_size(bounds.hi, "a loop bound");
  const HostExprId one = pool().const_int(1);
  if (begin && !bounds.includes_lo) begin = pool().add(*begin, one);
  if (end && bounds.includes_hi) end = pool().add(*end, one);
  Symbol symbol{.span = node.variable.span, .noun = kLoopVariable};
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
  Stmt made{.kind = StmtKind::For, .span = span, .index = all_.items.num_methods()};
  const Value body = all_.facts.in_loop([&] {
    return build_.in_block(tree()[node.body].span, [&] {
      env_->scopes.emplace_back();
      declare(node.variable, symbol);
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

void Expressions::while_loop(const ast::While& node, Span span) {
  const auto limit = all_.numbers.host_size(node.limit, "`at_most:`");
  all_.numbering.forget_masks();
  Stmt made{.kind = StmtKind::While, .span = span, .index = all_.items.num_methods()};
  Value test = error_value(span);
  const Value body = all_.facts.in_loop([&] {
    test = build_.in_block(tree()[node.condition].span, [&] {
      const auto outer = std::exchange(condition_vars_, out_.vars.size());
      const auto holds = condition(node.condition);
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

void Expressions::assertion(const ast::Assert& node, Span span) {
  const auto holds = condition(node.condition);
  if (!holds) return;
  build_.push(Stmt{.kind = StmtKind::Assert, .span = span, .expr2 = *holds, .text = node.message});
}

// Assignments to variables and states, whole or at indices.

void Expressions::report_not_mutable(const ast::Name& name, const Symbol& symbol) {
  const char* noun = symbol.noun != nullptr             ? symbol.noun
                     : symbol.kind == SymbolKind::Param ? "a parameter"
                     : symbol.kind == SymbolKind::Inner ? "a wrapped compressor"
                                                        : "not mutable";
  auto& diag = reporter_.report<DiagKind::NotMutable>(name.span, name.text, noun);
  if (symbol.is_let) {
    diag.note(symbol.span, "`let mut` would let it change");
  } else if (symbol.noun == kLoopVariable) {
    diag.note(symbol.span, "the loop alone counts; a `while` counts with a `let mut`");
  } else if (symbol.kind == SymbolKind::Value) {
    diag.note("a copy can change: `let mut copy = " + name.text + "`");
  }
}

const Symbol* Expressions::assignable(const ast::Assign& node) {
  const ast::Name& name = node.target;
  const Symbol* symbol = find_symbol(name.text);
  if (symbol == nullptr) {
    if (is_builtin_name(name.text)) {
      reporter_.report<DiagKind::NotMutable>(name.span, name.text, "a built-in name");
    } else {
      unknown_name(name);
    }
    return nullptr;
  }
  if (symbol->is_input) {
    report_not_mutable(name, *symbol);
    return nullptr;
  }
  if (symbol->kind == SymbolKind::State && mode_.body == BodyKind::Decode) {
    reporter_.report<DiagKind::NotInDecode>(name.span, "the state `" + name.text + "`");
    return nullptr;
  }
  const bool can_change = symbol->kind == SymbolKind::State || symbol->kind == SymbolKind::Variable;
  if (!can_change) {
    if (symbol->value.is_error() && symbol->kind == SymbolKind::Value) return nullptr;
    report_not_mutable(name, *symbol);
    return nullptr;
  }
  if (mode_.lambda_depth > (symbol->kind == SymbolKind::State ? 0 : symbol->lambda_depth)) {
    reporter_.report<DiagKind::NotInLambda>(name.span, "an assignment to `" + name.text + "`");
    return nullptr;
  }
  // The condition of a loop may not change variables outside of itself: the loop's body would not
  // see the change.
  const bool is_outside = condition_vars_ && (symbol->kind == SymbolKind::State ||
                                              symbol->value.var.index() < *condition_vars_);
  if (is_outside) {
    reporter_.report<DiagKind::AssignInCondition>(name.span, name.text);
    return nullptr;
  }
  return symbol;
}

void Expressions::assign(const ast::Assign& node, Span span) {
  const Symbol* symbol = assignable(node);
  if (symbol == nullptr) {
    expr(node.value);
    return;
  }
  const Type type = symbol->kind == SymbolKind::State ? out_.info.states[symbol->index].type
                                                      : out_.vars[symbol->value.var.index()].type;
  IndexFacts facts;
  if (node.indices.is_empty()) {
    facts = assign_whole(node, *symbol, type, span);
  } else {
    assign_indexed(node, *symbol, type, span);
  }
  if (symbol->kind == SymbolKind::State) {
    all_.numbering.note_state_assignment(symbol->index);
  } else {
    all_.numbering.note_assignment(symbol->value.var);
    all_.facts.note(symbol->value.var, facts);
  }
}

// Returns what is known of the new value.
IndexFacts Expressions::assign_whole(const ast::Assign& node, const Symbol& symbol,
                                     const Type& type, Span span) {
  Value whole = expr(node.value);
  if (node.is_update && !whole.is_error()) {
    const Value before = symbol_value(symbol, node.target);
    whole = before.is_error() ? before : update(node.op, before, whole, span);
  }
  const Value value = conversions_.fit_to(whole, type, node.target.text, span);
  const bool is_state = symbol.kind == SymbolKind::State;
  if (value.is_error()) {
    // What was known stays, so that one mistake is not reported at every later use.
    const IndexFacts* known = is_state ? nullptr : all_.facts.of(symbol.value.var);
    return known == nullptr ? IndexFacts() : *known;
  }
  Stmt made{is_state ? StmtKind::AssignState : StmtKind::Assign, span};
  made.is_state = is_state;
  made.index = symbol.index;
  if (!is_state) made.var = symbol.value.var;
  made.expr = value.expr;
  build_.push(std::move(made));
  return value.facts;
}

// If bits of a narrow integer are combined with others of its type, the result stays within the
// type.
Value Expressions::update(ast::BinaryOp op, const Value& before, const Value& value, Span span) {
  const bool is_on_bits =
      op == ast::BinaryOp::BitAnd || op == ast::BinaryOp::BitOr || op == ast::BinaryOp::BitXor;
  const DType type = before.type.dtype;
  const bool is_narrow = is_on_bits && is_int(type) && !(arithmetic_type(type) == type);
  const bool is_constant =
      value.kind == ValueKind::Table || (value.is_host() && pool().is_const(value.host));
  const bool is_made = is_adaptable(value) || ((value.is_host() || value.is_typed()) &&
                                               !is_constant && !types_.own_dtype(value));
  if (!is_narrow || (!is_made && !types_.can_coerce(value, type))) {
    return all_.operators.binary_op(op, before, value, span);
  }
  const Value bits = is_made ? all_.numbers.narrow_bits(value, type)
                             : conversions_.coerce(all_.numbers.as_mask(value, type), type);
  return bits.is_error()
             ? bits
             : conversions_.convert(all_.operators.binary_op(op, before, bits, span), type, span);
}

void Expressions::report_repeats(const ast::Assign& node, Span span) {
  const std::string& name = node.target.text;
  auto& diag = reporter_.report<DiagKind::IndexMayRepeat>(span);
  if (node.is_update && node.op == ast::BinaryOp::Add) {
    diag.note("where it may, `" + name + " += scatter_add(e, at: i, size: len(" + name +
              "))` adds all that meets one place");
  } else {
    diag.note("where it may, `scatter(e, at: i, size: len(" + name +
              "), keep: last)` is a new array with the last value at each place and 0 elsewhere");
  }
}

void Expressions::assign_indexed(const ast::Assign& node, const Symbol& symbol, const Type& type,
                                 Span span) {
  const auto indices = tree().list(node.indices);
  const Value value = expr(node.value);
  const bool is_pair = indices.size() == 2 && type.rank == 2 && !is_by_rows();
  if (type.rank == 0 || (indices.size() != 1 && !is_pair)) {
    auto& diag = reporter_.report<DiagKind::CannotIndex>(node.target.span, sizes_.type_text(type));
    if (type.rank == 1) diag.note("an assignment takes one index, of an element");
    return;
  }
  std::vector<Place> places;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    auto found = place(indices[i], type.dims[i], span);
    if (!found) return;
    if (node.is_update && found->at.is_typed()) found->at = build_.shared(found->at, "place");
    places.push_back(*std::move(found));
  }
  if (value.is_error()) return;
  const bool is_by_element = is_pair && !places[1].is_whole();
  const auto target = is_by_element ? target_of(places[0], places[1], type, span)
                                    : target_of(places[0], type, node.target.text, span);
  if (!target) return;
  const Value& index = target->index;
  const auto report = [this, &node, at = tree()[indices[0]].span] { report_repeats(node, at); };
  if (index.type.rank == 1 && !all_.facts.holds(index.facts.unique, index.facts, report)) return;
  Value given = value;
  if (node.is_update) {
    const Value whole = symbol_value(symbol, node.target);
    const Value before =
        is_pair ? at_places(whole, places[0], places[1], span) : at_place(whole, places[0], span);
    if (before.is_error()) return;
    given = update(node.op, before, value, span);
  }
  Value made = conversions_.fit_to(given, target->stored, node.target.text + "[…]", span);
  if (made.is_error()) return;
  if (is_by_element) {
    Type flat = index.type;
    flat.dtype = type.dtype;
    made = all_.operators.reshaped(made, flat, span);
  }
  Stmt store{StmtKind::AssignIndexed, span};
  store.is_state = symbol.kind == SymbolKind::State;
  store.index = symbol.index;
  if (!store.is_state) store.var = symbol.value.var;
  store.expr = made.expr;
  store.expr2 = index.expr;
  store.is_by_element = is_by_element;
  store.proved_unique = true;
  store.proved_in_bounds =
      target->is_in_bounds ||
      all_.facts.is_in_bounds(index, is_by_element ? sizes_.num_elems(type) : type.dims[0]);
  build_.push(std::move(store));
}

}  // namespace cinch::sema
