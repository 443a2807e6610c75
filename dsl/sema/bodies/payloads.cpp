// Wire literals and payload variables.
#include "dsl/sema/bodies/methods.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/mapped.h"

namespace cinch::sema {

using dsl::DiagKind;

const Instance* Bodies::wire_owner(const Instance& instance) const {
  const bool is_inherited = instance.wire_item == nullptr || instance.wire_item->is_inherited();
  const Instance* inner = instance.only_inner();
  return is_inherited && inner != nullptr ? wire_owner(*inner) : &instance;
}

Value Bodies::wire_literal(const ast::WireLiteral& node, Span span) {
  Instance* instance = env_->instance;
  const bool is_in_encode = mode_.body == BodyKind::Encode || mode_.encodes_in_finish;
  if (instance == nullptr || !is_in_encode || mode_.lambda_depth > 0)
    return mistake<DiagKind::BadType>(span, "a value", "a payload");
  std::vector<Value> values(instance->fields.size());
  std::vector<bool> is_given(values.size(), false);
  bool is_good = true;
  for (std::uint32_t i = 0; i < node.fields.count; ++i) {
    const ast::FieldInit& init =
        tree().field_inits.nodes[tree().field_inits.pool[node.fields.first + i].value];
    const Value value = all_.exprs.expr(init.value);
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
      auto names = mapped<std::string_view>(instance->fields, &WireField::name);
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
  if (instance->has_worker_field && !is_given.back()) {
    values.back() = all_.exprs.worker(instance->fields.back().span);
    is_given.back() = true;
    is_good &= !values.back().is_error();
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
  return is_good ? make_wire(*instance, values, span) : error_value(span);
}

// Fills all fields that `part: inner.wire` means, from a payload of that compressor.
bool Bodies::fill_wire_part(const WirePart& part, Value given, Span span,
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
                                         text_.describe(given))
        .note(part.span, "declared here");
    return false;
  }
  if (given.kind == ValueKind::Wire) given = payload_of(*given.owner, given, part.name, span);
  for (std::uint32_t i = 0; i < part.inner->fields.size(); ++i) {
    values[part.first_field + i] = payload_field_at(given, i, span);
  }
  return true;
}

// A count is the length of the first field whose type names it. Its bound must be proved.
bool Bodies::bind_counts(Instance& owner, const std::vector<Value>& values,
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
    if (prover_.proves_less_equal(size, count.bound)) continue;
    const HostExprId bound_of_size = sizes_.without_counts(size);
    const HostExprId most = bound_of_size ? bound_of_size : size;
    const std::string bound_text = sizes_.size_text(count.bound);
    auto& diag = reporter_.report<DiagKind::CountNotBounded>(source->span, count.name, bound_text,
                                                             sizes_.size_text(most));
    diag.note(count.span, "the bound");
    const bool is_filtered = pool().node(size).op == HostOp::Count;
    diag.note(is_filtered ? "`limit: m` on `nonzero` or `filter` keeps the first m"
                          : "`min(" + sizes_.size_text(size) + ", " + bound_text + ")` keeps it");
    is_good = false;
  }
  return is_good;
}

// Indices packed as ascending must be proved to be ascending. Packing checks all other numbers.
bool Bodies::check_packed(const WireField& field, const Value& value) {
  if (!ascends(field.code)) return true;
  const IndexFacts& facts = value.facts;
  const bool ascends = facts.ascending && facts.assumed == 0;
  if (ascends && facts.limit && prover_.proves_less_equal(facts.limit, field.below)) {
    return true;
  }
  reporter_.report<DiagKind::NotAscending>(value.span, field.name, sizes_.size_text(field.below))
      .note(field.span, "declared here");
  return false;
}

Value Bodies::make_wire(Instance& owner, const std::vector<Value>& given, Span span) {
  std::vector<Value> values;
  bool is_good = true;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const WireField& field = owner.fields[i];
    const bool is_value =
        given[i].is_host() || given[i].is_typed() || given[i].kind == ValueKind::Table;
    if (is_value && types_.can_coerce(given[i], field.type.dtype)) {
      Value value = conversions_.coerce(given[i], field.type.dtype);
      // One number for all rows.
      if (owner.rows && value.is_typed() && value.type.rank == 0 && field.type.rank == 2)
        value = all_.operators.repeated(value, field.type, value.span);
      values.push_back(std::move(value));
    } else {
      auto& diag = reporter_.report<DiagKind::FieldMismatch>(
          given[i].span, field.name, sizes_.type_text(field.type), text_.describe(given[i]));
      diag.note(field.span, "declared here");
      if (is_value) diag.note("convert it: `as " + dtype_name(field.type.dtype) + "`");
      values.push_back(error_value(given[i].span));
    }
    is_good &= !values.back().is_error();
  }
  if (!is_good) return error_value(span);
  std::map<HostExprId, HostExprId> bound;
  is_good = bind_counts(owner, values, bound);
  Expr made{ExprKind::WireLiteral, {}, span};
  std::vector<IndexFacts> facts;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const WireField& field = owner.fields[i];
    const Type wanted = all_.items.with_counts(field.type, bound);
    made.args.push_back(values[i].expr);
    facts.push_back(values[i].facts);
    is_good &= check_packed(field, values[i]);
    if (sizes_.same_shape(values[i].type, wanted)) continue;
    auto& diag = reporter_.report<DiagKind::FieldMismatch>(
        values[i].span, field.name, sizes_.type_text(field.type), text_.describe(values[i]));
    text_.note_sizes(diag.note(field.span, "declared here"), {&values[i]});
    is_good = false;
  }
  if (!is_good) return error_value(span);
  Value wire = build_.typed(std::move(made));
  wire.kind = ValueKind::Wire;
  wire.owner = &owner;
  wire_facts_[wire.expr.index()] = std::move(facts);
  return wire;
}

ExprId Bodies::literal_of(const Value& wire) const {
  ExprId id = wire.expr;
  while (out_.exprs[id.index()].kind == ExprKind::Block) id = out_.exprs[id.index()].args.at(0);
  return id;
}

Value Bodies::as_wire(const Value& value, Instance& instance, Span span) {
  const bool is_payload = value.kind == ValueKind::Wire || value.kind == ValueKind::Payload;
  if (!is_payload || wire_owner(*value.owner) != wire_owner(instance)) {
    auto& diag = reporter_.report<DiagKind::NoWireLiteral>(span);
    diag.note("its value is " + text_.describe(value));
    return error_value(span);
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

Value Bodies::payload_of(Instance& owner, const Value& wire, std::string name, Span span) {
  const ExprId literal = literal_of(wire);
  const std::vector<ExprId> fields = out_.exprs[literal.index()].args;
  Var var{.name = std::move(name), .is_payload = true, .span = span};
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
  Value payload{.owner = &owner,
                .var = VarId(out_.vars.size() - 1),
                .span = span,
                .kind = ValueKind::Payload};
  build_.push(
      Stmt{.kind = StmtKind::LetPayload, .span = span, .var = payload.var, .expr = wire.expr});
  all_.numbering.note_payload(payload.var, literal);
  payload_facts_[payload.var.index()] = wire_facts_[literal.index()];
  return payload;
}

void Bodies::note_field_facts(const Value& wire) {
  field_facts_ = wire_facts_[literal_of(wire).index()];
  for (std::size_t i = 0; i < field_facts_.size(); ++i) {
    IndexFacts& facts = field_facts_[i];
    if (facts.assumed != 0) facts = {};
    rt::FieldInfo& field = out_.info.wire.fields[i];
    const bool is_vector = field.type.rank == 1;
    if (const CheckedField& packed = out_.fields[i]; packed.code != FieldCode::Plain) {
      facts = {ascends(packed.code), ascends(packed.code), packed.below};
      continue;
    }
    facts.ascending = facts.ascending && facts.unique && is_vector;
    facts.unique = facts.ascending;
    if (facts.limit && pool().has_count(facts.limit)) facts.limit = {};
    field.ascending = facts.ascending;
    if (facts.limit) field.index_limit = facts.limit;
  }
}

Value Bodies::payload_field(const Value& payload, const ast::Name& field, Span span) {
  for (const WirePart& part : payload.owner->parts) {
    if (part.name != field.text) continue;
    Value view = payload;
    view.span = span;
    view.owner = part.inner;
    view.first_field += part.first_field;
    view.first_count += part.first_count;
    return view;
  }
  const std::vector<WireField>& fields = payload.owner->fields;
  const auto at = std::find_if(fields.begin(), fields.end(),
                               [&](const WireField& f) { return f.name == field.text; });
  if (at == fields.end()) {
    if (payload.owner->spec->is_stand_in) return error_value(span);
    auto names = mapped<std::string_view>(fields, &WireField::name);
    return error_value(reporter_.report<DiagKind::UnknownField>(field.span, field.text)
                           .suggest(field.span, std::string(dsl::nearest_name(field.text, names))));
  }
  return payload_field_at(payload, static_cast<std::uint32_t>(at - fields.begin()), span);
}

Value Bodies::payload_field_at(const Value& payload, std::uint32_t index, Span span) {
  index += payload.first_field;
  const std::vector<Type>& types = out_.vars[payload.var.index()].field_types;
  if (index >= types.size()) return error_value(span);
  Expr read{ExprKind::Field, types[index], span};
  read.var = payload.var;
  read.index = index;
  Value value = build_.typed(std::move(read));
  const auto facts = payload_facts_.find(payload.var.index());
  if (facts != payload_facts_.end() && index < facts->second.size()) {
    value.facts = facts->second[index];
  }
  return all_.counts.with_first_count(value, span);
}

Value Bodies::program_payload(Instance& instance) {
  const ast::Param* param = method_param(instance, ast::MethodKind::Decode);
  Var var{.name = param == nullptr ? "w" : param->name.text,
          .is_payload = true,
          .span = param == nullptr ? instance.spec->node->name.span : param->name.span};
  for (const CheckedField& field : out_.fields) var.field_types.push_back(field.type);
  for (std::uint32_t i = 0; i < out_.info.wire.counts.size(); ++i) {
    var.field_counts.push_back(i);
    var.count_sizes.push_back(pool().count(i, out_.info.wire.counts[i].bound));
  }
  out_.vars.push_back(std::move(var));
  Value payload{.owner = &instance,
                .var = VarId(out_.vars.size() - 1),
                .span = out_.vars.back().span,
                .kind = ValueKind::Payload};
  payload_facts_[payload.var.index()] = field_facts_;
  if (const ExprId sent = all_.counts.sent_literal())
    all_.numbering.note_payload(payload.var, sent);
  return payload;
}

void Bodies::assume_field_facts(const Instance& instance) {
  field_facts_.assign(instance.fields.size(), IndexFacts{true, true, pool().n()});
}

}  // namespace cinch::sema
