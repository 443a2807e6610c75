// Statements: let, assignments, loops and assertions.
#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

constexpr const char* kLoopVariable = "a loop variable";

}  // namespace

void Elaborator::statement(ast::StmtId id) {
  const ast::Stmt& node = tree()[id];
  const Span span = node.span;
  if (const auto* s = std::get_if<ast::Let>(&node.node)) return let(*s, span);
  if (const auto* s = std::get_if<ast::LetTuple>(&node.node)) return let_tuple(*s, span);
  if (const auto* s = std::get_if<ast::Assign>(&node.node)) return assign(*s, span);
  if (const auto* s = std::get_if<ast::For>(&node.node)) return for_loop(*s, span);
  if (const auto* s = std::get_if<ast::While>(&node.node)) return while_loop(*s, span);
  if (const auto* s = std::get_if<ast::Assert>(&node.node)) return assertion(*s, span);
  const Value value = expr(std::get<ast::ExprStmt>(node.node).expr);
  // A branch or block may leave a value that nobody wants; what it assigns stays.
  if ((value.kind != ValueKind::Unit && !value.is_typed()) || !value.expr) return;
  const ExprKind kind = out_.exprs[value.expr.index()].kind;
  if (kind != ExprKind::Block && kind != ExprKind::If) return;
  Stmt made{StmtKind::Expr, span};
  made.expr = value.expr;
  push(std::move(made));
}

void Elaborator::declare(const ast::Name& name, Symbol symbol) {
  if (is_taken(name.text, env_->instance)) {
    reporter_.report<DiagKind::BuiltinNameTaken>(name.span, name.text);
  }
  symbol.lambda_depth = lambda_depth_;
  record_type(name.span, symbol);
  Scope& scope = env_->scopes.back();
  const auto old = scope.find(name.text);
  if (old != scope.end()) {
    reporter_.report<DiagKind::DuplicateName>(name.span, name.text)
        .note(old->second.span, "first declared here");
  }
  scope.insert_or_assign(name.text, std::move(symbol));
}

void Elaborator::let(const ast::Let& node, Span span) {
  bind(node.name, node.is_mutable, expr(node.value), node.value, span);
}

void Elaborator::let_tuple(const ast::LetTuple& node, Span span) {
  const Value value = expr(node.value);
  const bool fits = value.kind == ValueKind::Tuple && value.elements.size() == node.names.size();
  if (!fits && !value.is_error()) {
    reporter_.report<DiagKind::BadType>(value.span, std::to_string(node.names.size()) + " values",
                                        describe(value));
  }
  for (std::size_t i = 0; i < node.names.size(); ++i) {
    bind(node.names[i], false, fits ? value.elements[i] : error(span), std::nullopt, span);
  }
}

// A count that a filter made has the name of the first array of that length that has one.
void Elaborator::name_counts(const Type& type, const ast::Name& name) {
  for (int i = 0; i < type.rank; ++i) {
    const HostExprNode& node = pool().node(type.dims[i]);
    if (node.op != HostOp::Count || !unnamed_counts_.erase(type.dims[i])) continue;
    size_names_[type.dims[i]] = {"len(" + name.text + ")", name.span};
  }
}

// `written`: where it may be a number that loop variables make.
void Elaborator::bind(const ast::Name& name, bool is_mutable, Value value,
                      std::optional<ast::ExprId> written, Span span) {
  Symbol symbol;
  symbol.span = name.span;
  symbol.is_let = written.has_value();
  if (value.kind == ValueKind::Tuple) {
    reporter_.report<DiagKind::BadType>(value.span, "one value", describe(value))
        .note("`let (a, b) = …` takes several");
    value = error(span);
  }
  if (value.kind == ValueKind::Unit) {
    reporter_.report<DiagKind::NoValue>(value.span);
    value = error(span);
  }
  if (value.kind == ValueKind::Wire) {
    value = payload_of(*value.owner, value, name.text, span);
  }
  const bool is_number = value.is_host() || value.kind == ValueKind::Table;
  const bool stays =
      value.is_error() || value.kind == ValueKind::Payload || (is_number && !is_mutable);
  if (stays) {
    symbol.value = value;
    declare(name, std::move(symbol));
    return;
  }
  const Value made = is_mutable ? materialize(value) : value;
  if (made.is_error()) {
    declare(name, std::move(symbol));
    return;
  }
  name_counts(made.type, name);
  const VarId var = add_var(name.text, made.type, is_mutable, name.span);
  Stmt let{StmtKind::Let, span};
  let.var = var;
  let.expr = made.expr;
  push(std::move(let));
  symbol.value = read_var(var, name.span);
  symbol.value.facts = made.facts;
  if (!is_mutable) symbol.value = as_named(made, symbol.value);
  if (symbol.value.is_exact && written) symbol.leaf = symbolic(*written).value_or(HostExprId());
  if (is_mutable) {
    symbol.kind = SymbolKind::Variable;
    symbol.value.var = var;
    variable_facts_[var.index()] = made.facts;
  }
  declare(name, std::move(symbol));
}

void Elaborator::report_not_mutable(const ast::Name& name, const Symbol& symbol) {
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

const Symbol* Elaborator::assignable(const ast::Assign& node) {
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
  if (symbol->kind == SymbolKind::State && body_ == BodyKind::Decode) {
    reporter_.report<DiagKind::NotInDecode>(name.span, "the state `" + name.text + "`");
    return nullptr;
  }
  const bool can_change = symbol->kind == SymbolKind::State || symbol->kind == SymbolKind::Variable;
  if (!can_change) {
    if (symbol->value.is_error() && symbol->kind == SymbolKind::Value) return nullptr;
    report_not_mutable(name, *symbol);
    return nullptr;
  }
  if (lambda_depth_ > (symbol->kind == SymbolKind::State ? 0 : symbol->lambda_depth)) {
    reporter_.report<DiagKind::NotInLambda>(name.span, "an assignment to `" + name.text + "`");
    return nullptr;
  }
  if (is_in_condition(*symbol)) {
    reporter_.report<DiagKind::AssignInCondition>(name.span, name.text);
    return nullptr;
  }
  return symbol;
}

// What the condition of a loop changes outside of itself has no way into the loop's body.
bool Elaborator::is_in_condition(const Symbol& symbol) const {
  if (!condition_vars_) return false;
  return symbol.kind == SymbolKind::State || symbol.value.var.index() < *condition_vars_;
}

void Elaborator::assign(const ast::Assign& node, Span span) {
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
    ++state_versions_[symbol->index];
  } else {
    ++var_versions_[symbol->value.var.index()];
    variable_facts_[symbol->value.var.index()] = facts;
  }
}

// A value for a place of this type: the elements widen, a number fills an array, a row a matrix.
Value Elaborator::fit_to(const Value& value, const Type& type, std::string_view name, Span span) {
  if (value.is_error()) return value;
  const bool is_value = value.is_host() || value.is_typed() || value.kind == ValueKind::Table;
  Value made =
      is_value && can_coerce(value, type.dtype) ? coerce(value, type.dtype) : error(value.span);
  const bool fills = made.is_typed() && made.type.rank == 0 && type.rank > 0;
  if (fills) return builtin(BuiltinId::fill, type, {made.expr}, span);
  if (made.is_typed() && same_shape(made.type, type)) return made;
  const bool is_row =
      made.is_typed() && made.type.rank == 1 && type.rank == 2 && is_row_of(made.type, type);
  if (is_row) return builtin(BuiltinId::fill, type, {as_row(made, type).expr}, span);
  if (is_value && can_coerce(value, type.dtype) && made.is_error()) return made;
  auto& diag = reporter_.report<DiagKind::CannotAssignType>(value.span, describe(value),
                                                            std::string(name), type_text(type));
  note_sizes(diag, {&value});
  const bool needs_as = value.is_typed() && !can_coerce(value, type.dtype) &&
                        (value.type.rank == 0 || same_shape(value.type, type));
  if (needs_as) diag.note("convert it: `as " + dtype_name(type.dtype) + "`");
  return error(value.span);
}

// Gives what is known of the new value.
IndexFacts Elaborator::assign_whole(const ast::Assign& node, const Symbol& symbol, const Type& type,
                                    Span span) {
  const Value given = expr(node.value);
  const Value whole = node.is_update ? updated(node, symbol, given, span) : given;
  const Value value = fit_to(whole, type, node.target.text, span);
  if (value.is_error()) return {};
  const bool is_state = symbol.kind == SymbolKind::State;
  Stmt made{is_state ? StmtKind::AssignState : StmtKind::Assign, span};
  made.is_state = is_state;
  made.index = symbol.index;
  if (!is_state) made.var = symbol.value.var;
  made.expr = value.expr;
  push(std::move(made));
  return value.facts;
}

// What `x += e` stores.
Value Elaborator::updated(const ast::Assign& node, const Symbol& symbol, const Value& value,
                          Span span) {
  if (value.is_error()) return value;
  const Value before = symbol_value(symbol, node.target);
  return before.is_error() ? before : update(node.op, before, value, span);
}

// The low bits of an exact number that is computed, in a narrow type.
Value Elaborator::narrow_bits(const Value& value, DType type) {
  const DType wide = arithmetic_type(type);
  const Span span = value.span;
  if (!is_every_choice_in(value, type)) return error(span);
  const Value all = coerce(value, wide);
  const auto apply = [&](ScalarOp op, const Value& made, std::int64_t number) {
    return scalar_op(op, {made, host(pool().const_int(number), span)}, span, "|=");
  };
  if (is_unsigned_int(type)) {
    const auto mask = static_cast<std::int64_t>(max_int(type));
    return convert(apply(ScalarOp::bit_and, all, mask), type, span);
  }
  const std::int64_t above = wide.bits - type.bits;
  return convert(apply(ScalarOp::shr, apply(ScalarOp::shl, all, above), above), type, span);
}

// Bits of a narrow integer that are joined with others of its type stay within the type.
Value Elaborator::update(ast::BinaryOp op, const Value& before, const Value& value, Span span) {
  const bool is_on_bits =
      op == ast::BinaryOp::BitAnd || op == ast::BinaryOp::BitOr || op == ast::BinaryOp::BitXor;
  const DType type = before.type.dtype;
  const bool is_narrow = is_on_bits && is_int(type) && !(arithmetic_type(type) == type);
  const bool is_constant =
      value.kind == ValueKind::Table || (value.is_host() && pool().is_const(value.host));
  const bool is_made = is_adaptable(value) ||
                       ((value.is_host() || value.is_typed()) && !is_constant && !own_dtype(value));
  if (!is_narrow || (!is_made && !can_coerce(value, type))) {
    return binary_op(op, before, value, span);
  }
  const Value bits = is_made ? narrow_bits(value, type) : coerce(as_mask(value, type), type);
  return bits.is_error() ? bits : convert(binary_op(op, before, bits, span), type, span);
}

// x[a..b] = e stores at a, a + 1 … b - 1.
Value Elaborator::index_of_range(const ast::Range& range, const Type& type, Span span) {
  const auto begin = range.lo ? host_size(range.lo, "a slice") : std::optional(pool().const_int(0));
  auto end = range.hi ? host_size(range.hi, "a slice") : std::optional(type.dims[0]);
  if (!begin || !end) return error(span);
  if (range.is_inclusive) end = pool().add(*end, pool().const_int(1));
  const bool is_possible =
      require_nonnegative(*begin, "the begin of a slice is not negative", span) &&
      require_at_most(*begin, *end, "a slice ends behind its begin", span) &&
      require_at_most(*end, type.dims[0], "the slice ends at most at " + size_text(type.dims[0]),
                      span);
  if (!is_possible) return error(span);
  const HostExprId size = length_of(*begin, *end);
  const Value numbers =
      builtin(BuiltinId::iota, vector(kU32, size), {}, span, [&](Expr& e) { e.size = size; });
  Value index = scalar_op(ScalarOp::add, {numbers, coerce(host(*begin, span), kU32)}, span, "+");
  index.facts = {true, true, type.dims[0]};
  return index;
}

void Elaborator::report_repeats(const ast::Assign& node, Span span) {
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

void Elaborator::assign_indexed(const ast::Assign& node, const Symbol& symbol, const Type& type,
                                Span span) {
  const auto indices = tree().list(node.indices);
  const Value value = expr(node.value);
  if (type.rank == 0 || indices.size() != 1) {
    reporter_.report<DiagKind::CannotIndex>(node.target.span, type_text(type))
        .note(type.rank == 2 ? "an assignment to a matrix takes one index, of a row: change a copy "
                               "of the row (`let mut row = " +
                                   node.target.text + "[i]`) and store it"
                             : "an assignment takes one index, of an element");
    return;
  }
  const auto* range = std::get_if<ast::Range>(&tree()[indices[0]].node);
  Value raw = range == nullptr ? expr(indices[0]) : Value{};
  if (node.is_update && raw.is_typed()) raw = shared(raw, "place");
  const Value index =
      range == nullptr ? as_index(raw) : index_of_range(*range, type, tree()[indices[0]].span);
  if (index.is_error() || value.is_error()) return;
  if (index.type.rank > 1) {
    reporter_.report<DiagKind::BadIndex>(index.span, describe(index));
    return;
  }
  if (index.type.rank == 1 && !index.facts.unique) {
    report_repeats(node, index.span);
    return;
  }
  Type stored = scalar(type.dtype);
  if (type.rank == 1 && index.type.rank == 1) stored = vector(type.dtype, index.type.dims[0]);
  if (type.rank == 2 && index.type.rank == 0) stored = vector(type.dtype, type.dims[1]);
  if (type.rank == 2 && index.type.rank == 1) {
    stored = matrix(type.dtype, index.type.dims[0], type.dims[1]);
  }
  Value given = value;
  if (node.is_update) {
    const Value whole = symbol_value(symbol, node.target);
    const Value before = range == nullptr ? gather(whole, raw, span) : slice(whole, *range, span);
    if (before.is_error()) return;
    given = update(node.op, before, value, span);
  }
  const Value made = fit_to(given, stored, node.target.text + "[…]", span);
  if (made.is_error()) return;
  Stmt store{StmtKind::AssignIndexed, span};
  store.is_state = symbol.kind == SymbolKind::State;
  store.index = symbol.index;
  if (!store.is_state) store.var = symbol.value.var;
  store.expr = made.expr;
  store.expr2 = index.expr;
  store.proved_unique = true;
  const bool is_host = raw.is_host() && !pool().has_count(type.dims[0]);
  if (is_host) check_host_index(raw, type.dims[0], index.span);
  store.proved_in_bounds = is_host || is_in_bounds(index, type.dims[0]);
  push(std::move(store));
}

// A block whose value is not used.
Value Elaborator::unused_block(ast::BlockId id) {
  Value value = block(id);
  if (value.is_error() || value.is_typed() || value.kind == ValueKind::Unit) return value;
  value.kind = ValueKind::Unit;
  value.expr = {};
  return value;
}

void Elaborator::for_loop(const ast::For& node, Span span) {
  const ast::Interval& bounds = tree()[node.bounds];
  auto begin = host_size(bounds.lo, "a loop bound");
  auto end = host_size(bounds.hi, "a loop bound");
  const HostExprId one = pool().const_int(1);
  if (begin && !bounds.includes_lo) begin = pool().add(*begin, one);
  if (end && bounds.includes_hi) end = pool().add(*end, one);
  Symbol symbol;
  symbol.span = node.variable.span;
  symbol.noun = kLoopVariable;
  const VarId var = add_var(node.variable.text, scalar(kI64), false, node.variable.span);
  if (begin && end) {
    symbol.value = read_var(var, node.variable.span);
    symbol.value.is_exact = true;
    symbol.leaf = pool().param((1u << 24) + var.index(), HostType::Int);
    size_names_.try_emplace(symbol.leaf, node.variable.text, node.variable.span);
    if (sizes_.proves_nonnegative(*begin)) {
      symbol.value.facts.limit = *end;
      sizes_.set_nonnegative(symbol.leaf);
    }
  }
  forget_masks();
  const Value body = in_loop([&] {
    return in_block(tree()[node.body].span, [&] {
      env_->scopes.emplace_back();
      declare(node.variable, symbol);
      const Value value = unused_block(node.body);
      env_->scopes.pop_back();
      return value;
    });
  });
  forget_masks();
  if (!begin || !end || body.is_error()) return;
  Stmt made{StmtKind::For, span};
  made.var = var;
  made.size = *begin;
  made.size2 = *end;
  made.expr = body.expr;
  if (body.expr) push(std::move(made));
}

void Elaborator::while_loop(const ast::While& node, Span span) {
  const auto limit = host_size(node.limit, "`at_most:`");
  forget_masks();
  Value test = error(span);
  const Value body = in_loop([&] {
    test = in_block(tree()[node.condition].span, [&] {
      const auto outer = std::exchange(condition_vars_, out_.vars.size());
      const auto holds = condition(node.condition);
      condition_vars_ = outer;
      Value value = error(span);
      if (!holds) return value;
      value.kind = ValueKind::Typed;
      value.expr = *holds;
      value.type = scalar(kBool);
      return value;
    });
    return in_block(tree()[node.body].span, [&] { return unused_block(node.body); });
  });
  forget_masks();
  if (!limit || test.is_error() || body.is_error() || !body.expr) return;
  Stmt made{StmtKind::While, span};
  made.expr2 = test.expr;
  made.size = *limit;
  made.expr = body.expr;
  push(std::move(made));
}

void Elaborator::assertion(const ast::Assert& node, Span span) {
  const auto holds = condition(node.condition);
  if (!holds) return;
  Stmt made{StmtKind::Assert, span};
  made.expr2 = *holds;
  made.text = node.message;
  push(std::move(made));
}

}  // namespace cinch::sema
