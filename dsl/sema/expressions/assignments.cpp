// Assignments to variables and states, whole or at indices.
#include "dsl/sema/expressions/statements.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

void Statements::report_not_mutable(const ast::Name& name, const Symbol& symbol) {
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

const Symbol* Statements::assignable(const ast::Assign& node) {
  const ast::Name& name = node.target;
  const Symbol* symbol = all_.names.find_symbol(name.text);
  if (symbol == nullptr) {
    if (is_builtin_name(name.text)) {
      reporter_.report<DiagKind::NotMutable>(name.span, name.text, "a built-in name");
    } else {
      all_.names.unknown_name(name);
    }
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
  if (is_in_condition(*symbol)) {
    reporter_.report<DiagKind::AssignInCondition>(name.span, name.text);
    return nullptr;
  }
  return symbol;
}

// The condition of a loop may not change variables outside of itself: the loop's body would not see
// the change.
bool Statements::is_in_condition(const Symbol& symbol) const {
  if (!condition_vars_) return false;
  return symbol.kind == SymbolKind::State || symbol.value.var.index() < *condition_vars_;
}

void Statements::assign(const ast::Assign& node, Span span) {
  const Symbol* symbol = assignable(node);
  if (symbol == nullptr) {
    all_.exprs.expr(node.value);
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
IndexFacts Statements::assign_whole(const ast::Assign& node, const Symbol& symbol, const Type& type,
                                    Span span) {
  const Value given = all_.exprs.expr(node.value);
  const Value whole = node.is_update ? updated(node, symbol, given, span) : given;
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

// The value that `x += e` stores.
Value Statements::updated(const ast::Assign& node, const Symbol& symbol, const Value& value,
                          Span span) {
  if (value.is_error()) return value;
  const Value before = all_.names.symbol_value(symbol, node.target);
  return before.is_error() ? before : update(node.op, before, value, span);
}

// If bits of a narrow integer are combined with others of its type, the result stays within the
// type.
Value Statements::update(ast::BinaryOp op, const Value& before, const Value& value, Span span) {
  const bool is_on_bits =
      op == ast::BinaryOp::BitAnd || op == ast::BinaryOp::BitOr || op == ast::BinaryOp::BitXor;
  const DType type = before.type.dtype;
  const bool is_narrow = is_on_bits && is_int(type) && !(arithmetic_type(type) == type);
  const bool is_constant =
      value.kind == ValueKind::Table || (value.is_host() && pool().is_const(value.host));
  const bool is_made = is_adaptable(value) || ((value.is_host() || value.is_typed()) &&
                                               !is_constant && !types_.own_dtype(value));
  if (!is_narrow || (!is_made && !types_.can_coerce(value, type))) {
    return all_.scalars.binary_op(op, before, value, span);
  }
  const Value bits = is_made ? all_.exact.narrow_bits(value, type)
                             : conversions_.coerce(all_.exact.as_mask(value, type), type);
  return bits.is_error()
             ? bits
             : conversions_.convert(all_.scalars.binary_op(op, before, bits, span), type, span);
}

void Statements::report_repeats(const ast::Assign& node, Span span) {
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

void Statements::assign_indexed(const ast::Assign& node, const Symbol& symbol, const Type& type,
                                Span span) {
  const auto indices = tree().list(node.indices);
  const Value value = all_.exprs.expr(node.value);
  if (type.rank == 0 || indices.size() != 1) {
    reporter_.report<DiagKind::CannotIndex>(node.target.span, sizes_.type_text(type))
        .note(type.rank == 2 ? "an assignment to a matrix takes one index, of a row: change a copy "
                               "of the row (`let mut row = " +
                                   node.target.text + "[i]`) and store it"
                             : "an assignment takes one index, of an element");
    return;
  }
  const auto* range = std::get_if<ast::Range>(&tree()[indices[0]].node);
  Value raw = range == nullptr ? all_.exprs.expr(indices[0]) : Value{};
  if (node.is_update && raw.is_typed()) raw = build_.shared(raw, "place");
  const Value index = range == nullptr
                          ? all_.indexing.as_index(raw)
                          : all_.indexing.index_of_range(*range, type, tree()[indices[0]].span);
  if (index.is_error() || value.is_error()) return;
  if (index.type.rank > 1) {
    reporter_.report<DiagKind::BadIndex>(index.span, text_.describe(index));
    return;
  }
  const auto report = [this, &node, at = index.span] { report_repeats(node, at); };
  if (index.type.rank == 1 && !all_.facts.holds(index.facts.unique, index.facts, report)) return;
  Type stored = scalar_type(type.dtype);
  if (type.rank == 1 && index.type.rank == 1) stored = vector_type(type.dtype, index.type.dims[0]);
  if (type.rank == 2 && index.type.rank == 0) stored = vector_type(type.dtype, type.dims[1]);
  if (type.rank == 2 && index.type.rank == 1) {
    stored = matrix_type(type.dtype, index.type.dims[0], type.dims[1]);
  }
  Value given = value;
  if (node.is_update) {
    const Value whole = all_.names.symbol_value(symbol, node.target);
    const Value before = range == nullptr ? all_.indexing.gather(whole, raw, span)
                                          : all_.indexing.slice(whole, *range, span);
    if (before.is_error()) return;
    given = update(node.op, before, value, span);
  }
  const Value made = conversions_.fit_to(given, stored, node.target.text + "[…]", span);
  if (made.is_error()) return;
  Stmt store{StmtKind::AssignIndexed, span};
  store.is_state = symbol.kind == SymbolKind::State;
  store.index = symbol.index;
  if (!store.is_state) store.var = symbol.value.var;
  store.expr = made.expr;
  store.expr2 = index.expr;
  store.proved_unique = true;
  const bool is_host = raw.is_host() && !pool().has_count(type.dims[0]);
  if (is_host) all_.indexing.check_host_index(raw, type.dims[0], index.span);
  store.proved_in_bounds = is_host || all_.facts.is_in_bounds(index, type.dims[0]);
  build_.push(std::move(store));
}

}  // namespace cinch::sema
