// Payloads: wire literals against the wire's fields, counts taken from the arrays, payload
// variables, and the members of a wrapped compressor.
#include <algorithm>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

const Instance* Elaborator::wire_owner(const Instance& instance) const {
  const bool is_inherited = instance.wire_item == nullptr || instance.wire_item->is_inherited();
  const Instance* inner = instance.only_inner();
  return is_inherited && inner != nullptr ? wire_owner(*inner) : &instance;
}

Value Elaborator::wire_literal(const ast::WireLiteral& node, Span span) {
  Instance* instance = env_->instance;
  const bool is_in_encode = body_ == BodyKind::Encode || encodes_in_finish_;
  if (instance == nullptr || !is_in_encode || lambda_depth_ > 0) {
    reporter_.report<DiagKind::BadType>(span, "a value", "a payload");
    return error(span);
  }
  std::vector<Value> values(instance->fields.size());
  std::vector<bool> is_given(values.size(), false);
  bool is_good = true;
  for (std::uint32_t i = 0; i < node.fields.count; ++i) {
    const ast::FieldInit& init =
        tree().field_inits.nodes[tree().field_inits.pool[node.fields.first + i].value];
    const Value value = expr(init.value);
    const auto part =
        std::find_if(instance->parts.begin(), instance->parts.end(),
                     [&](const WirePart& each) { return each.name == init.name.text; });
    if (part != instance->parts.end()) {
      is_good &= fill_wire_part(*part, value, init.name.span, values, is_given);
      continue;
    }
    const auto same = [&](const WireField& f) { return f.name == init.name.text; };
    const auto at = std::find_if(instance->fields.begin(), instance->fields.end(), same);
    if (at == instance->fields.end()) {
      std::vector<std::string_view> names;
      names.reserve(instance->fields.size());
      for (const WireField& f : instance->fields) names.push_back(f.name);
      reporter_.report<DiagKind::UnknownField>(init.name.span, init.name.text)
          .suggest(init.name.span, std::string(dsl::nearest_name(init.name.text, names)));
      is_good = false;
      continue;
    }
    const auto index = static_cast<std::size_t>(at - instance->fields.begin());
    if (is_given[index]) {
      reporter_.report<DiagKind::DuplicateName>(init.name.span, init.name.text);
      is_good = false;
    }
    is_given[index] = true;
    values[index] = value;
    is_good &= !value.is_error();
  }
  for (const WirePart& part : instance->parts) {
    if (part.inner->fields.empty() || is_given[part.first_field]) continue;
    reporter_.report<DiagKind::MissingField>(span, part.name).note(part.span, "declared here");
    std::fill_n(is_given.begin() + part.first_field, part.inner->fields.size(), true);
    is_good = false;
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (is_given[i]) continue;
    reporter_.report<DiagKind::MissingField>(span, instance->fields[i].name)
        .note(instance->fields[i].span, "declared here");
    is_good = false;
  }
  return is_good ? make_wire(*instance, values, span) : error(span);
}

// All fields that `part: inner.wire` stands for, from a payload of that compressor.
bool Elaborator::fill_wire_part(const WirePart& part, Value given, Span span,
                                std::vector<Value>& values, std::vector<bool>& is_given) {
  const auto begin = is_given.begin() + part.first_field;
  const auto end = begin + static_cast<std::ptrdiff_t>(part.inner->fields.size());
  const bool is_repeated = std::find(begin, end, true) != end;
  std::fill(begin, end, true);
  if (is_repeated) reporter_.report<DiagKind::DuplicateName>(span, part.name);
  if (given.is_error() || is_repeated) return false;
  const bool is_payload = given.kind == ValueKind::Wire || given.kind == ValueKind::Payload;
  if (!is_payload || wire_owner(*given.owner) != wire_owner(*part.inner)) {
    reporter_
        .report<DiagKind::FieldMismatch>(given.span, part.name, "a payload of what is wrapped",
                                         describe(given))
        .note(part.span, "declared here");
    return false;
  }
  if (given.kind == ValueKind::Wire) given = payload_of(*given.owner, given, part.name, span);
  for (std::uint32_t i = 0; i < part.inner->fields.size(); ++i) {
    values[part.first_field + i] = payload_field_at(given, i, span);
  }
  return true;
}

// A count is the length of the first field whose type names it; its bound must be proved.
bool Elaborator::bind_counts(Instance& owner, const std::vector<Value>& values,
                             std::map<HostExprId, HostExprId>& bound) {
  bool is_good = true;
  for (const WireCount& count : owner.counts) {
    HostExprId size;
    const Value* source = nullptr;
    for (std::size_t i = 0; i < values.size() && !size; ++i) {
      const Type& type = owner.fields[i].type;
      for (int d = 0; d < type.rank && !size; ++d) {
        const bool has_size = type.dims[d] == count.placeholder && values[i].type.rank == type.rank;
        if (!has_size) continue;
        size = values[i].type.dims[d];
        source = &values[i];
      }
    }
    if (!size) {
      const bool has_field =
          std::any_of(owner.fields.begin(), owner.fields.end(), [&](const WireField& f) {
            return f.type.rank > 0 && (f.type.dims[0] == count.placeholder ||
                                       (f.type.rank > 1 && f.type.dims[1] == count.placeholder));
          });
      if (!has_field) reporter_.report<DiagKind::CountWithoutField>(count.span, count.name);
      is_good &= has_field;
      continue;
    }
    bound[count.placeholder] = size;
    if (sizes_.proves_less_equal(size, count.bound)) continue;
    const HostExprId bound_of_size = without_counts(size);
    const HostExprId most = bound_of_size ? bound_of_size : size;
    reporter_
        .report<DiagKind::CountNotBounded>(source->span, count.name, size_text(count.bound),
                                           size_text(most))
        .note(count.span, "the bound")
        .note("`limit: m` on `nonzero` or `filter` keeps the first m");
    is_good = false;
  }
  return is_good;
}

// Indices that are packed as ascending are known to be so; other numbers are checked when they are
// packed.
bool Elaborator::check_packed(const WireField& field, const Value& value) {
  if (!field.is_ascending()) return true;
  const IndexFacts& facts = value.facts;
  if (facts.ascending && facts.limit && sizes_.proves_less_equal(facts.limit, field.below)) {
    return true;
  }
  reporter_.report<DiagKind::NotAscending>(value.span, field.name, size_text(field.below))
      .note(field.span, "declared here");
  return false;
}

Value Elaborator::make_wire(Instance& owner, const std::vector<Value>& given, Span span) {
  std::vector<Value> values;
  bool is_good = true;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const WireField& field = owner.fields[i];
    const bool is_value =
        given[i].is_host() || given[i].is_typed() || given[i].kind == ValueKind::Table;
    if (is_value && can_coerce(given[i], field.type.dtype)) {
      values.push_back(coerce(given[i], field.type.dtype));
    } else {
      auto& diag = reporter_.report<DiagKind::FieldMismatch>(
          given[i].span, field.name, type_text(field.type), describe(given[i]));
      diag.note(field.span, "declared here");
      if (is_value) diag.note("convert it: `as " + dtype_name(field.type.dtype) + "`");
      values.push_back(error(given[i].span));
    }
    is_good &= !values.back().is_error();
  }
  if (!is_good) return error(span);
  std::map<HostExprId, HostExprId> bound;
  is_good = bind_counts(owner, values, bound);
  Expr made{ExprKind::WireLiteral, {}, span};
  std::vector<IndexFacts> facts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const WireField& field = owner.fields[i];
    const Type wanted = with_counts(field.type, bound);
    made.args.push_back(values[i].expr);
    facts.push_back(values[i].facts);
    is_good &= check_packed(field, values[i]);
    if (same_shape(values[i].type, wanted)) continue;
    auto& diag = reporter_.report<DiagKind::FieldMismatch>(
        values[i].span, field.name, type_text(field.type), describe(values[i]));
    note_sizes(diag.note(field.span, "declared here"), {&values[i]});
    is_good = false;
  }
  if (!is_good) return error(span);
  Value wire = typed(std::move(made));
  wire.kind = ValueKind::Wire;
  wire.owner = &owner;
  wire_facts_[wire.expr.index()] = std::move(facts);
  return wire;
}

ExprId Elaborator::literal_of(const Value& wire) const {
  ExprId id = wire.expr;
  while (out_.exprs[id.index()].kind == ExprKind::Block) id = out_.exprs[id.index()].args.at(0);
  return id;
}

// The value of an encode as the payload of `instance`.
Value Elaborator::as_wire(const Value& value, Instance& instance, Span span) {
  const bool is_payload = value.kind == ValueKind::Wire || value.kind == ValueKind::Payload;
  if (!is_payload || wire_owner(*value.owner) != wire_owner(instance)) {
    auto& diag = reporter_.report<DiagKind::NoWireLiteral>(span);
    diag.note("its value is " + describe(value));
    return error(span);
  }
  if (value.kind == ValueKind::Wire) {
    Value same = value;
    same.owner = &instance;
    return same;
  }
  std::vector<Value> fields;
  fields.reserve(instance.fields.size());
  for (std::uint32_t i = 0; i < instance.fields.size(); ++i) {
    fields.push_back(payload_field_at(value, i, span));
  }
  return make_wire(instance, fields, span);
}

// A variable for the payload that an inlined encode gives.
Value Elaborator::payload_of(Instance& owner, const Value& wire, std::string name, Span span) {
  const ExprId literal = literal_of(wire);
  const std::vector<ExprId> fields = out_.exprs[literal.index()].args;
  Var var;
  var.name = std::move(name);
  var.is_payload = true;
  var.span = span;
  for (ExprId arg : fields) var.field_types.push_back(out_.exprs[arg.index()].type);
  for (const WireCount& count : owner.counts) {
    HostExprId size = count.bound;
    for (std::size_t i = 0; i < owner.fields.size(); ++i) {
      for (int d = 0; d < owner.fields[i].type.rank; ++d) {
        if (owner.fields[i].type.dims[d] == count.placeholder) size = var.field_types[i].dims[d];
      }
    }
    const HostExprNode node = pool().node(size);
    var.count_sizes.push_back(size);
    var.field_counts.push_back(node.op == HostOp::Count ? static_cast<std::uint32_t>(node.payload)
                                                        : kNoCount);
  }
  out_.vars.push_back(std::move(var));
  Value payload;
  payload.kind = ValueKind::Payload;
  payload.span = span;
  payload.var = VarId(out_.vars.size() - 1);
  payload.owner = &owner;
  Stmt let{StmtKind::LetPayload, span};
  let.var = payload.var;
  let.expr = wire.expr;
  push(std::move(let));
  payload_literals_[payload.var.index()] = literal;
  payload_facts_[payload.var.index()] = wire_facts_[literal.index()];
  return payload;
}

// What the reader of a payload checks, and decode may therefore rely on.
void Elaborator::note_field_facts(const Value& wire) {
  field_facts_ = wire_facts_[literal_of(wire).index()];
  for (std::size_t i = 0; i < field_facts_.size(); ++i) {
    IndexFacts& facts = field_facts_[i];
    rt::FieldInfo& field = out_.info.wire.fields[i];
    const bool is_vector = field.type.rank == 1;
    if (const CheckedField& packed = out_.fields[i]; packed.code != FieldCode::Plain) {
      const bool ascends = packed.code != FieldCode::Elias;
      facts = {ascends, ascends, packed.below};
      continue;
    }
    facts.ascending = facts.ascending && facts.unique && is_vector;
    facts.unique = facts.ascending;
    if (facts.limit && pool().has_count(facts.limit)) facts.limit = {};
    field.ascending = facts.ascending;
    if (facts.limit) field.index_limit = facts.limit;
  }
}

Value Elaborator::inner_argument(const Value& value, Instance& inner, Span span) {
  if (value.is_error()) return value;
  const Type wanted = gradient_type(inner);
  const bool is_array = (value.is_typed() || value.kind == ValueKind::Table) &&
                        value_type(value).rank > 0 && can_coerce(value, kF32);
  if (is_array) {
    Value made = coerce(value, kF32);
    if (made.is_error()) return made;
    if (sizes_.proves_equal(num_elems(made.type), num_elems(wanted))) {
      return reshaped(made, wanted, span);
    }
  }
  auto& diag =
      reporter_.report<DiagKind::InnerShape>(value.span, type_text(wanted), describe(value));
  note_sizes(diag, {&value});
  return error(span);
}

// On every rank alike: draws leave the worker out, and what one rank's encode changes is not seen.
Value Elaborator::encode_in_finish(Instance& inner, const Value& g, Span span) {
  if (const Instance* stateful = rank_states(inner)) {
    reporter_.report<DiagKind::NotInFinish>(
        span, "the encode of `" + stateful->name() + "`, whose states are those of one rank");
    return error(span);
  }
  const bool outer = std::exchange(encodes_in_finish_, true);
  const Value wire = encode_value(inner, g, span);
  encodes_in_finish_ = outer;
  return wire;
}

// The compressor, or one that it wraps, that has states and encodes in encode.
const Instance* Elaborator::rank_states(const Instance& instance) const {
  if (instance.encodes_on_ranks && instance.has_states) return &instance;
  for (const auto& [slot, inner] : instance.inner) {
    if (const Instance* found = rank_states(*inner)) return found;
  }
  return nullptr;
}

Value Elaborator::outer_result(Value value, const Instance& inner, Span span) {
  if (value.is_error() || env_->instance == nullptr) return value;
  if (inner.has_set_elements) {
    value.span = span;
    return value;
  }
  return reshaped(value, gradient_type(*env_->instance), value.span);
}

// inner.encode(x), inner.decode(w), inner.finish(sum), and file.function(x).
Value Elaborator::call_member(const ast::Call& node, const ast::FieldRef& member, Span span) {
  const auto* base = std::get_if<ast::NameRef>(&tree()[member.base].node);
  const Symbol* symbol = base == nullptr ? nullptr : find_symbol(base->name.text);
  if (symbol == nullptr && base != nullptr) {
    if (const auto decl = find_qualified(*env_->unit, base->name.text, member.field.text)) {
      return call_decl(*decl, node, member.field, span);
    }
  }
  if (symbol == nullptr || symbol->kind != SymbolKind::Inner) {
    reporter_.report<DiagKind::UnknownOperator>(
        tree()[node.callee].span, std::string(env_->unit->source->text(tree()[node.callee].span)));
    return error(span);
  }
  Instance& inner = *symbol->inner;
  const std::string& what = member.field.text;
  if (what != "encode" && what != "decode" && what != "finish") {
    reporter_.report<DiagKind::UnknownMember>(member.field.span, what)
        .suggest(member.field.span,
                 std::string(dsl::nearest_name(what, {"encode", "decode", "finish"})));
    return error(span);
  }
  const CallArgs args = sort_args(node, base->name.text + "." + what, span, {}, 1, 1);
  if (args.is_bad) return error(span);
  Value arg = expr(args.positional[0]);
  if (arg.is_error()) return arg;
  if (lambda_depth_ > 0) {
    reporter_.report<DiagKind::NotInLambda>(span, "`" + args.name + "`");
    return error(span);
  }
  if (what == "encode") {
    if (body_ == BodyKind::Decode) {
      reporter_.report<DiagKind::NotInDecode>(span, "`" + args.name + "`");
      return error(span);
    }
    const Value g = inner_argument(arg, inner, span);
    if (g.is_error()) return error(span);
    return body_ == BodyKind::Finish ? encode_in_finish(inner, g, span)
                                     : encode_value(inner, g, span);
  }
  if (what == "finish") {
    const Value sum = inner_argument(arg, inner, span);
    return sum.is_error() ? sum : outer_result(finish_value(inner, sum, span), inner, span);
  }
  if (arg.kind == ValueKind::Wire) arg = payload_of(*arg.owner, arg, "w", span);
  if (arg.kind != ValueKind::Payload || wire_owner(*arg.owner) != wire_owner(inner)) {
    reporter_.report<DiagKind::InnerShape>(arg.span, "its own payload", describe(arg));
    return error(span);
  }
  arg.owner = &inner;
  return outer_result(decode_value(inner, arg, span), inner, span);
}

}  // namespace cinch::sema
