// Wires: counts and fields as declared, and as the program publishes them.
#include <algorithm>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

void Elaborator::elaborate_wire(Instance& instance) {
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
}

Instance* Elaborator::inner_named(const ast::Name& name) {
  const Symbol* symbol = find_symbol(name.text);
  if (symbol != nullptr && symbol->kind == SymbolKind::Inner) return symbol->inner;
  reporter_.report<DiagKind::NotACompressor>(name.span, name.text);
  return nullptr;
}

// The counts of `part: inner.wire`, under placeholders of their own: a wire may hold that of one
// compressor twice.
void Elaborator::begin_wire_part(Instance& instance, const ast::WireField& node) {
  Instance* inner = inner_named(node.inner);
  if (inner == nullptr) return;
  WirePart part{node.name.text, node.name.span, inner};
  part.first_count = static_cast<std::uint32_t>(instance.counts.size());
  for (const WireCount& count : inner->counts) {
    WireCount own{part.name + "." + count.name, count.span, {}, count.bound};
    own.placeholder = pool().count(next_placeholder_++, count.bound);
    size_names_.try_emplace(own.placeholder, own.name, own.span);
    instance.counts.push_back(std::move(own));
  }
  instance.parts.push_back(std::move(part));
}

void Elaborator::add_part_fields(Instance& instance, const ast::WireField& node) {
  const auto part = std::find_if(instance.parts.begin(), instance.parts.end(),
                                 [&](const WirePart& p) { return p.span == node.name.span; });
  if (part == instance.parts.end()) return;
  part->first_field = static_cast<std::uint32_t>(instance.fields.size());
  std::map<HostExprId, HostExprId> own;
  for (std::size_t i = 0; i < part->inner->counts.size(); ++i) {
    own[part->inner->counts[i].placeholder] = instance.counts[part->first_count + i].placeholder;
  }
  for (const WireField& field : part->inner->fields) {
    instance.fields.push_back(
        {part->name + "." + field.name, field.span, with_counts(field.type, own), field.sum});
  }
}

void Elaborator::elaborate_wire_count(Instance& instance, const ast::WireCount& node) {
  Symbol symbol;
  symbol.span = node.name.span;
  if (is_by_rows()) {
    not_by_rows("a count", node.name.span);
    return declare(node.name, std::move(symbol));
  }
  if (const auto bound = host_size(node.bound, "the bound of a count")) {
    if (pool().has_count(*bound)) {
      reporter_.report<DiagKind::NotKnownOnHost>(tree()[node.bound].span, "the bound of a count");
      return declare(node.name, std::move(symbol));
    }
    if (!sizes_.has_bound_in_n(*bound)) {
      reporter_.report<DiagKind::WireUnbounded>(tree()[node.bound].span, size_text(*bound));
    }
    WireCount count{node.name.text, node.name.span, {}, *bound};
    count.placeholder = pool().count(next_placeholder_++, *bound);
    size_names_.try_emplace(count.placeholder, node.name.text, node.name.span);
    symbol.value = host(count.placeholder, node.name.span);
    instance.counts.push_back(std::move(count));
  }
  declare(node.name, std::move(symbol));
}

void Elaborator::elaborate_wire_field(Instance& instance, const ast::WireField& node) {
  const auto same = [&](const WireField& f) { return f.name == node.name.text; };
  const auto old = std::find_if(instance.fields.begin(), instance.fields.end(), same);
  if (old != instance.fields.end()) {
    reporter_.report<DiagKind::DuplicateName>(node.name.span, node.name.text)
        .note(old->span, "first declared here");
    return;
  }
  auto type = type_of(node.type);
  if (type && is_by_rows()) type = by_rows(*type, tree()[node.type].span);
  if (!type) return;
  for (int i = 0; i < type->rank; ++i) {
    if (sizes_.has_bound_in_n(type->dims[i])) continue;
    auto& diag =
        reporter_.report<DiagKind::WireUnbounded>(tree()[node.type].span, size_text(type->dims[i]));
    std::vector<std::pair<std::string, Span>> named;
    collect_sizes(type->dims[i], named);
    for (const auto& [name, span] : named) diag.note(span, "`" + name + "` comes from here");
  }
  constexpr rt::FieldSum kSums[] = {rt::FieldSum::None, rt::FieldSum::Sum, rt::FieldSum::Min,
                                    rt::FieldSum::Max};
  instance.fields.push_back(
      {node.name.text, node.name.span, *type, kSums[static_cast<std::size_t>(node.aggregation)]});
}

Type Elaborator::with_counts(Type type, const std::map<HostExprId, HostExprId>& bound) {
  for (int i = 0; i < type.rank; ++i) {
    type.dims[i] = pool().substitute(type.dims[i], [&](const HostExprNode& leaf) {
      for (const auto& [placeholder, size] : bound) {
        if (pool().node(placeholder) == leaf) return size;
      }
      return HostExprId();
    });
  }
  return type;
}

// The program's own wire: its counts are the first of ProgramInfo::counts.
void Elaborator::publish_wire(Instance& instance) {
  std::map<HostExprId, HostExprId> real;
  for (const WireCount& count : instance.counts) {
    const auto index = static_cast<std::uint32_t>(out_.info.wire.counts.size());
    const HostExprId made = pool().count(index, count.bound);
    real[count.placeholder] = made;
    size_names_.try_emplace(made, count.name, count.span);
    out_.info.wire.counts.push_back({count.name, count.bound});
    out_.info.counts.push_back({count.name, count.bound});
  }
  bool all_add_up = !instance.fields.empty() && instance.counts.empty();
  for (const WireField& field : instance.fields) {
    rt::FieldInfo info;
    info.name = field.name;
    info.type = with_counts(field.type, real);
    info.sum = field.sum;
    all_add_up &= field.sum != rt::FieldSum::None;
    out_.info.wire.fields.push_back(std::move(info));
  }
  out_.info.aggregation = all_add_up ? rt::Aggregation::SumToTest : rt::Aggregation::Gather;
}

// Sizes that may be negative as far as is known are checked before anything is allocated.
void Elaborator::check_wire_sizes(Instance& instance) {
  for (const WireCount& count : instance.counts) {
    require_nonnegative(count.bound, "the bound of `" + count.name + "` is not negative",
                        count.span);
  }
  for (const WireField& field : instance.fields) {
    for (int i = 0; i < field.type.rank; ++i) {
      require_nonnegative(field.type.dims[i], "the size of `" + field.name + "` is not negative",
                          field.span);
    }
  }
}

}  // namespace cinch::sema
