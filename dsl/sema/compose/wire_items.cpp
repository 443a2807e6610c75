// Declarations of wires.
#include "dsl/sema/compose/items.h"

#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

void Items::elaborate_wire(Instance& instance) {
  const bool is_inherited = instance.wire_item == nullptr || instance.wire_item->is_inherited();
  if (is_inherited) {
    const Instance* inner = instance.only_inner();
    if (instance.wire_item != nullptr) {
      inner = inner_named(instance.wire_item->inherited);
    }
    if (inner == nullptr) return;
    instance.parts = inner->parts;
    instance.fields = inner->fields;
    instance.counts = inner->counts;
    return;
  }
  env_->scopes.emplace_back();
  for (ast::WireEntryId id : tree().list(instance.wire_item->entries)) {
    const ast::WireEntry& entry = tree()[id];
    if (const auto* count = std::get_if<ast::WireCount>(&entry.node)) {
      elaborate_wire_count(instance, *count);
    }
    const auto* field = std::get_if<ast::WireField>(&entry.node);
    if (field != nullptr && !field->inner.text.empty()) begin_wire_part(instance, *field);
  }
  for (ast::WireEntryId id : tree().list(instance.wire_item->entries)) {
    const ast::WireEntry& entry = tree()[id];
    if (const auto* field = std::get_if<ast::WireField>(&entry.node)) {
      if (field->inner.text.empty()) {
        elaborate_wire_field(instance, *field);
      } else {
        add_part_fields(instance, *field);
      }
    }
  }
  env_->scopes.pop_back();
  add_worker_field(instance);
}

// The payload tells a decode that names `worker` who encoded it: every rank decodes alike, and no
// plan has to know.
void Items::add_worker_field(Instance& instance) {
  const ast::Method* decode = instance.method(ast::MethodKind::Decode);
  if (decode == nullptr) return;
  const ast::Expr* named = find_name(tree(), tree()[decode->body].span, kWorker);
  if (named == nullptr) return;
  const auto same = std::ranges::find(instance.fields, kWorker, &WireField::name);
  if (same != instance.fields.end()) {
    reporter_.report<DiagKind::DuplicateName>(same->span, same->name)
        .note(named->span, "`worker` in `decode` is a field of this name");
    return;
  }
  auto type = std::optional(scalar_type(kU32));
  if (is_by_rows()) type = by_rows(*type, named->span);
  if (!type) return;
  instance.fields.push_back({.name = std::string(kWorker), .span = named->span, .type = *type});
  instance.has_worker_field = true;
}

Instance* Items::inner_named(const ast::Name& name) {
  const Symbol* symbol = all_.exprs.find_symbol(name.text);
  if (symbol != nullptr && symbol->kind == SymbolKind::Inner) return symbol->inner;
  reporter_.report<DiagKind::NotACompressor>(name.span, name.text);
  return nullptr;
}

// Nested parts can grow like powers of two.
bool Items::has_wire_room(const Instance& instance, std::size_t more, const ast::Name& part) {
  constexpr std::size_t kMostFields = 1u << 14;
  if (instance.counts.size() + instance.fields.size() + more <= kMostFields) return true;
  if (!reporter_.work().is_over) {
    reporter_.report<DiagKind::TooLarge>(part.span, part.text, std::to_string(kMostFields),
                                         "fields and counts of a wire");
  }
  reporter_.work().is_over = true;
  return false;
}

// Gives the counts of `part: inner.wire` placeholders of their own, because a wire may contain that
// of one compressor twice.
void Items::begin_wire_part(Instance& instance, const ast::WireField& node) {
  Instance* inner = inner_named(node.inner);
  if (inner == nullptr) return;
  if (!has_wire_room(instance, inner->counts.size() + inner->fields.size(), node.name)) return;
  WirePart part{node.name.text, node.name.span, inner};
  part.first_count = static_cast<std::uint32_t>(instance.counts.size());
  for (const WireCount& count : inner->counts) {
    WireCount own{part.name + "." + count.name, count.span, {}, count.bound};
    own.placeholder = pool().count(next_placeholder_++, count.bound);
    sizes_.name(own.placeholder, own.name, own.span);
    instance.counts.push_back(std::move(own));
  }
  instance.parts.push_back(std::move(part));
}

void Items::add_part_fields(Instance& instance, const ast::WireField& node) {
  const auto part = std::find_if(instance.parts.begin(), instance.parts.end(),
                                 [&](const WirePart& p) { return p.span == node.name.span; });
  if (part == instance.parts.end()) return;
  if (!has_wire_room(instance, part->inner->fields.size(), node.name)) return;
  part->first_field = static_cast<std::uint32_t>(instance.fields.size());
  std::map<HostExprId, HostExprId> own;
  for (std::size_t i = 0; i < part->inner->counts.size(); ++i) {
    own[part->inner->counts[i].placeholder] = instance.counts[part->first_count + i].placeholder;
  }
  for (const WireField& field : part->inner->fields) {
    instance.fields.push_back(field);
    instance.fields.back().name = part->name + "." + field.name;
    instance.fields.back().table += part->first_field;
    instance.fields.back().type = with_counts(field.type, own);
  }
}

void Items::elaborate_wire_count(Instance& instance, const ast::WireCount& node) {
  Symbol symbol{.span = node.name.span};
  if (is_by_rows()) {
    not_by_rows("a count", node.name.span);
    return all_.exprs.declare(node.name, std::move(symbol));
  }
  if (const auto bound = all_.numbers.host_size(node.bound, "the bound of a count")) {
    if (pool().has_count(*bound)) {
      reporter_.report<DiagKind::NotKnownOnHost>(tree()[node.bound].span, "the bound of a count");
      return all_.exprs.declare(node.name, std::move(symbol));
    }
    if (!prover_.has_bound_in_n(*bound)) {
      reporter_.report<DiagKind::WireUnbounded>(tree()[node.bound].span, sizes_.size_text(*bound));
    }
    WireCount count{node.name.text, node.name.span, {}, *bound};
    count.placeholder = pool().count(next_placeholder_++, *bound);
    sizes_.name(count.placeholder, node.name.text, node.name.span);
    symbol.value = host_value(count.placeholder, node.name.span);
    instance.counts.push_back(std::move(count));
  }
  all_.exprs.declare(node.name, std::move(symbol));
}

void Items::elaborate_wire_field(Instance& instance, const ast::WireField& node) {
  const auto same = [&](const WireField& f) { return f.name == node.name.text; };
  const auto old = std::find_if(instance.fields.begin(), instance.fields.end(), same);
  if (old != instance.fields.end()) {
    reporter_.report<DiagKind::DuplicateName>(node.name.span, node.name.text)
        .note(old->span, "first declared here");
    return;
  }
  auto type = conversions_.type_of(node.type);
  if (type && is_by_rows()) type = by_rows(*type, tree()[node.type].span);
  if (!type) return;
  for (int i = 0; i < type->rank; ++i) {
    if (prover_.has_bound_in_n(type->dims[i])) continue;
    auto& diag = reporter_.report<DiagKind::WireUnbounded>(tree()[node.type].span,
                                                           sizes_.size_text(type->dims[i]));
    std::vector<std::pair<std::string, Span>> named;
    std::set<HostExprId> seen;
    sizes_.collect_sizes(type->dims[i], named, seen);
    for (const auto& [name, span] : named) diag.note(span, "`" + name + "` comes from here");
  }
  constexpr rt::FieldSum kSums[] = {rt::FieldSum::None, rt::FieldSum::Sum, rt::FieldSum::Min,
                                    rt::FieldSum::Max};
  WireField field{node.name.text, node.name.span, *type,
                  kSums[static_cast<std::size_t>(node.aggregation)]};
  if (!elaborate_packing(field, node, instance.fields)) return;
  instance.fields.push_back(std::move(field));
}

// `elias`, `ascending` and `below limit`, or `huffman(table)`, after a field's type. Rows are not
// packed: each has too few numbers to gain much.
bool Items::elaborate_packing(WireField& field, const ast::WireField& node,
                              std::span<const WireField> before) {
  const bool has_table = !node.table.text.empty();
  if ((!node.below && !has_table) || is_by_rows()) return true;
  if (has_table) {
    field.code = FieldCode::Huffman;
  } else if (node.is_elias) {
    field.code = node.is_ascending ? FieldCode::EliasAscending : FieldCode::Elias;
  } else {
    field.code = FieldCode::Ascending;
  }
  if (field.type.rank != 1 || field.type.dtype != kU32 || field.sum != rt::FieldSum::None)
    return mistake<DiagKind::PackedField>(tree()[node.type].span, sizes_.type_text(field.type));
  if (has_table) return elaborate_table(field, node.table, before);
  const auto below = FOUND(all_.numbers.host_size(node.below, "the limit of a packed field"));
  if (pool().has_count(below))
    return mistake<DiagKind::NotKnownOnHost>(tree()[node.below].span,
                                             "the limit of a packed field");
  if (!prover_.has_bound_in_n(below))
    return mistake<DiagKind::WireUnbounded>(tree()[node.below].span, sizes_.size_text(below));
  field.below = below;
  return true;
}

// Lengths of codes: a field in front, with a number of at most 15 for each symbol.
bool Items::elaborate_table(WireField& field, const ast::Name& table,
                            std::span<const WireField> before) {
  constexpr std::int64_t kMostSymbols = 65536;
  const auto named = std::ranges::find(before, table.text, &WireField::name);
  if (named == before.end()) {
    const auto names = mapped<std::string_view>(before, &WireField::name);
    reporter_.report<DiagKind::UnknownField>(table.span, table.text)
        .note("lengths of codes are a field in front of the numbers")
        .suggest(table.span, std::string(dsl::nearest_name(table.text, names)));
    return false;
  }
  const Type& type = named->type;
  const bool holds_lengths = type.rank == 1 && is_unsigned_int(type.dtype) &&
                             type.dtype.bits <= 8 && named->code == FieldCode::Plain;
  const auto size = holds_lengths ? prover_.constant(type.dims[0]) : std::nullopt;
  if (!size || *size < 1 || *size > kMostSymbols)
    return mistake<DiagKind::NotATable>(table.span, table.text, sizes_.type_text(type));
  field.table = static_cast<std::uint32_t>(named - before.begin());
  field.below = type.dims[0];
  return true;
}

Type Items::with_counts(Type type, const std::map<HostExprId, HostExprId>& bound) {
  const auto replaced = [&](HostExprId size) {
    // Most sizes are a count, or have no counts. Only the others are searched.
    if (const auto at = bound.find(size); at != bound.end()) return at->second;
    if (!pool().has_count(size)) return size;
    return pool().substitute(size, [&](const HostExprNode& leaf) {
      for (const auto& [placeholder, to] : bound) {
        if (pool().node(placeholder) == leaf) return to;
      }
      return HostExprId();
    });
  };
  for (int i = 0; i < type.rank; ++i) type.dims[i] = replaced(type.dims[i]);
  return sizes_.in_one_form(type);
}

// Sizes that are not proved to be nonnegative are checked before anything is allocated.
void Items::check_wire_sizes(Instance& instance) {
  for (const WireCount& count : instance.counts) {
    build_.require_nonnegative(count.bound, "the bound of `" + count.name + "` is not negative",
                               count.span);
  }
  for (const WireField& field : instance.fields) {
    for (int i = 0; i < field.type.rank; ++i) {
      build_.require_nonnegative(field.type.dims[i],
                                 "the size of `" + field.name + "` is not negative", field.span);
    }
  }
}

}  // namespace cinch::sema
