// Wires: counts and fields as declared, and as the program publishes them.
#include <algorithm>

#include "dsl/sema/elaborator.h"
#include "runtime/core/check.h"

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

// Parts of parts grow like powers of two.
bool Elaborator::has_room(const Instance& instance, std::size_t more, const ast::Name& part) {
  constexpr std::size_t kMostFields = 1u << 14;
  if (instance.counts.size() + instance.fields.size() + more <= kMostFields) return true;
  if (!reporter_.work().is_over) {
    reporter_.report<DiagKind::TooLarge>(part.span, part.text, std::to_string(kMostFields),
                                         "fields and counts of a wire");
  }
  reporter_.work().is_over = true;
  return false;
}

// The counts of `part: inner.wire`, under placeholders of their own: a wire may hold that of one
// compressor twice.
void Elaborator::begin_wire_part(Instance& instance, const ast::WireField& node) {
  Instance* inner = inner_named(node.inner);
  if (inner == nullptr) return;
  if (!has_room(instance, inner->counts.size() + inner->fields.size(), node.name)) return;
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
  if (!has_room(instance, part->inner->fields.size(), node.name)) return;
  part->first_field = static_cast<std::uint32_t>(instance.fields.size());
  std::map<HostExprId, HostExprId> own;
  for (std::size_t i = 0; i < part->inner->counts.size(); ++i) {
    own[part->inner->counts[i].placeholder] = instance.counts[part->first_count + i].placeholder;
  }
  for (const WireField& field : part->inner->fields) {
    instance.fields.push_back(field);
    instance.fields.back().name = part->name + "." + field.name;
    instance.fields.back().type = with_counts(field.type, own);
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
    std::set<HostExprId> seen;
    collect_sizes(type->dims[i], named, seen);
    for (const auto& [name, span] : named) diag.note(span, "`" + name + "` comes from here");
  }
  constexpr rt::FieldSum kSums[] = {rt::FieldSum::None, rt::FieldSum::Sum, rt::FieldSum::Min,
                                    rt::FieldSum::Max};
  WireField field{node.name.text, node.name.span, *type,
                  kSums[static_cast<std::size_t>(node.aggregation)]};
  if (!elaborate_packing(field, node)) return;
  instance.fields.push_back(std::move(field));
}

// `elias`, `ascending`, `below limit` behind a field's type. Rows are stored as they are: each has
// too few indices to gain much.
bool Elaborator::elaborate_packing(WireField& field, const ast::WireField& node) {
  if (!node.below || is_by_rows()) return true;
  if (node.is_elias) {
    field.code = node.is_ascending ? FieldCode::EliasAscending : FieldCode::Elias;
  } else {
    field.code = FieldCode::Ascending;
  }
  if (field.type.rank != 1 || field.type.dtype != kU32 || field.sum != rt::FieldSum::None) {
    reporter_.report<DiagKind::PackedField>(tree()[node.type].span, type_text(field.type));
    return false;
  }
  const auto below = host_size(node.below, "the limit of a packed field");
  if (!below) return false;
  if (pool().has_count(*below)) {
    reporter_.report<DiagKind::NotKnownOnHost>(tree()[node.below].span,
                                               "the limit of a packed field");
    return false;
  }
  if (!sizes_.has_bound_in_n(*below)) {
    reporter_.report<DiagKind::WireUnbounded>(tree()[node.below].span, size_text(*below));
    return false;
  }
  field.below = *below;
  return true;
}

Type Elaborator::with_counts(Type type, const std::map<HostExprId, HostExprId>& bound) {
  const auto replaced = [&](HostExprId size) {
    // Nearly always a count, or made of none: only what is neither is looked through.
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
  return in_one_form(type);
}

// The whole part of the logarithm of a number of at most 32 bits; of 0 it is 0.
HostExprId Elaborator::log2_of(HostExprId x) {
  HostExprPool& p = pool();
  const HostExprId whole = p.make(HostOp::Floor, p.make(HostOp::Log2, p.cast(x, HostType::F64)));
  return p.make(HostOp::Max, p.cast(whole, HostType::Int), p.const_int(0));
}

// The bits that the unary parts of the codes of `len` numbers take at most.
HostExprId Elaborator::most_unary_bits(const WireField& field, HostExprId len) {
  HostExprPool& p = pool();
  if (field.code == FieldCode::Ascending) {
    return p.make(HostOp::Min, p.mul(len, p.const_int(3)), field.below);
  }
  const HostExprId width = log2_of(field.below);
  return p.mul(len, p.add(log2_of(p.add(width, p.const_int(1))), p.const_int(1)));
}

// The most words that `most` numbers take. Rice codes of m gaps with l low bits: m l bits, and at
// most m + (below - m) / 2^l for the rest, where 2^l <= below / m < 2^(l + 1). So m l is at most
// below / 2 and below (l of the most + 1) times the most; the rest is at most 3 m, and `below`.
// Elias delta codes are at most as long as that of the largest number; of y at most 2 y bits.
HostExprId Elaborator::most_words(const WireField& field, HostExprId most) {
  HostExprPool& p = pool();
  const HostExprId one = p.const_int(1), below = field.below;
  HostExprId bits;
  if (field.code == FieldCode::Ascending) {
    const HostExprId low = log2_of(p.div(below, p.make(HostOp::Max, most, one)));
    if (pool().has_count(field.type.dims[0])) {
      const HostExprId lows =
          p.make(HostOp::Min, p.mul(most, p.add(low, one)), p.ceil_div(below, p.const_int(2)));
      bits = p.add(lows, p.make(HostOp::Min, p.mul(most, p.const_int(3)), below));
    } else {
      const HostExprId rest = p.make(HostOp::Max, p.sub(below, most), p.const_int(0));
      bits = p.add(p.mul(most, p.add(low, one)), p.make(HostOp::Shr, rest, low));
    }
  } else {
    const HostExprId width = log2_of(below), unary = log2_of(p.add(width, one));
    bits = p.mul(most, p.add(p.add(width, p.mul(p.const_int(2), unary)), one));
    if (field.is_ascending()) bits = p.make(HostOp::Min, bits, p.mul(p.const_int(2), below));
  }
  return p.ceil_div(bits, p.const_int(32));
}

// A packed field is words in the payload, their number a count of its own.
void Elaborator::publish_packed(const WireField& field, rt::FieldInfo& info) {
  CheckedField& checked = out_.fields.back();
  checked.code = field.code;
  checked.below = field.below;
  checked.most = without_counts(field.type.dims[0]);
  CINCH_CHECK(checked.most, "a wire field without a bound");
  checked.most_unary = most_unary_bits(field, checked.type.dims[0]);
  checked.words = static_cast<std::uint32_t>(out_.info.wire.counts.size());
  constexpr const char* kCodes[] = {"", "ascending", "elias", "elias ascending"};
  info.packing = type_text(field.type) + ' ' + kCodes[static_cast<std::size_t>(field.code)] +
                 " below " + size_text(field.below);
  const rt::CountInfo words{field.name + ".words", most_words(field, checked.most)};
  out_.info.wire.counts.push_back(words);
  out_.info.counts.push_back(words);
  info.type = vector(kU32, pool().count(checked.words, words.bound));
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
  out_.fields.clear();
  for (const WireField& field : instance.fields) {
    rt::FieldInfo info;
    info.name = field.name;
    info.type = with_counts(field.type, real);
    info.sum = field.sum;
    out_.fields.push_back({info.type});
    if (field.code != FieldCode::Plain) publish_packed(field, info);
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
