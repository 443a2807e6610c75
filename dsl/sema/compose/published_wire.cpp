// The wire in the form that the program publishes, and bounds of packed fields.
#include "dsl/sema/compose/items.h"

#include "dsl/sema/elaboration/elaboration.h"
#include "runtime/core/check.h"

namespace cinch::sema {

// The logarithm of a number of at most 32 bits, rounded down; 0 for 0.
HostExprId WireItems::log2_of(HostExprId x) {
  HostExprPool& p = pool();
  const HostExprId whole = p.make(HostOp::Floor, p.make(HostOp::Log2, p.cast(x, HostType::F64)));
  return p.make(HostOp::Max, p.cast(whole, HostType::Int), p.const_int(0));
}

// The most bits that the unary parts of the codes of `len` numbers take.
HostExprId WireItems::most_unary_bits(const WireField& field, HostExprId len) {
  HostExprPool& p = pool();
  if (field.code == FieldCode::Ascending) {
    return p.make(HostOp::Min, p.mul(len, p.const_int(3)), field.below);
  }
  const HostExprId width = log2_of(field.below);
  return p.mul(len, p.add(log2_of(p.add(width, p.const_int(1))), p.const_int(1)));
}

// The most words that `most` numbers take.
//
// Rice codes of m gaps with l low bits take m * l bits for these, and at most m + (below - m) / 2^l
// for the rest, where 2^l <= below / m < 2^(l + 1). So m * l is at most below / 2, and at most
// most * (l of `most`, plus 1). The rest is at most 3 m, and at most `below`.
//
// Elias delta codes are at most as long as the code of the largest number. The code of y takes at
// most 2 y bits.
HostExprId WireItems::most_words(const WireField& field, HostExprId most) {
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

// A packed field becomes words in the payload, with a count of their number.
void WireItems::publish_packed(const WireField& field, rt::FieldInfo& info) {
  CheckedField& checked = out_.fields.back();
  checked.code = field.code;
  checked.below = field.below;
  checked.most = sizes_.without_counts(field.type.dims[0]);
  CINCH_CHECK(checked.most, "a wire field without a bound");
  checked.most_unary = most_unary_bits(field, checked.type.dims[0]);
  checked.words = static_cast<std::uint32_t>(out_.info.wire.counts.size());
  constexpr const char* kCodes[] = {"", "ascending", "elias", "elias ascending"};
  info.packing = sizes_.type_text(field.type) + ' ' + kCodes[static_cast<std::size_t>(field.code)] +
                 " below " + sizes_.size_text(field.below);
  const rt::CountInfo words{field.name + ".words", most_words(field, checked.most)};
  out_.info.wire.counts.push_back(words);
  out_.info.counts.push_back(words);
  info.type = vector_type(kU32, pool().count(checked.words, words.bound));
}

// The counts of the program's own wire are the first entries of ProgramInfo::counts.
void WireItems::publish_wire(Instance& instance) {
  std::map<HostExprId, HostExprId> real;
  for (const WireCount& count : instance.counts) {
    const auto index = static_cast<std::uint32_t>(out_.info.wire.counts.size());
    const HostExprId made = pool().count(index, count.bound);
    real[count.placeholder] = made;
    sizes_.name(made, count.name, count.span);
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

}  // namespace cinch::sema
