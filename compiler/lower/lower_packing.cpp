// Packed fields of a payload: ascending indices as Rice codes of their gaps, numbers as Elias delta
// codes. A code is taken apart so that all of them are written and read side by side: first the
// unary parts of all codes (so many zeros, then a one), then sections of fields of known width.
// Where each begins is a running sum; the ones of the unary parts are found by a selection over
// bits. docs/payload.md fixes the bits; sema has the bounds (elaborate_wire.cpp).
#include <fmt/format.h>

#include <utility>

#include "compiler/lower/body_lowering.h"

namespace cinch::lower {

using sema::CheckedField;
using sema::FieldCode;

namespace {

constexpr std::int64_t kLowHalf = 0xffffffff;
constexpr std::int64_t kWidestUnary = 5;   // of an Elias delta code of 32 bits
constexpr std::int64_t kWidestField = 31;  // bits below the first one of a number

// What element-wise arithmetic over u32 and u64 takes many words to say.
class Arithmetic {
 public:
  explicit Arithmetic(Emitter& emit) : emit_(emit) {}

  ValueId small(std::int64_t x) { return emit_.constant_int(kU32, x); }
  ValueId wide(std::int64_t x) { return emit_.constant_int(kU64, x); }
  ValueId widen(ValueId x) { return emit_.convert(x, kU64); }
  /// The low half: a conversion would saturate.
  ValueId low_half(ValueId x) {
    return emit_.convert(emit_.map(ScalarOp::bit_and, x, wide(kLowHalf)), kU32);
  }
  ValueId add(ValueId a, ValueId b) { return emit_.map(ScalarOp::add, a, b); }
  ValueId sub(ValueId a, ValueId b) { return emit_.map(ScalarOp::sub, a, b); }
  ValueId min(ValueId a, ValueId b) { return emit_.map(ScalarOp::min, a, b); }
  ValueId shl(ValueId a, ValueId b) { return emit_.map(ScalarOp::shl, a, b); }
  ValueId shr(ValueId a, ValueId b) { return emit_.map(ScalarOp::shr, a, b); }
  ValueId bit_and(ValueId a, ValueId b) { return emit_.map(ScalarOp::bit_and, a, b); }
  ValueId bit_or(ValueId a, ValueId b) { return emit_.map(ScalarOp::bit_or, a, b); }
  ValueId is_at_most(ValueId a, ValueId b) { return emit_.map(ScalarOp::le, a, b); }
  ValueId equal(ValueId a, ValueId b) { return emit_.map(ScalarOp::eq, a, b); }
  /// The low `width` bits of x.
  ValueId low_bits(ValueId x, ValueId width) {
    return bit_and(x, sub(shl(small(1), width), small(1)));
  }
  /// The place of the highest one bit.
  ValueId log2(ValueId x) { return sub(small(31), emit_.map(ScalarOp::clz, x)); }
  /// The word that a bit stands in, at most `last`, which may hold no word of the payload.
  ValueId word_of(ValueId bit, ValueId last) {
    return emit_.convert(min(shr(bit, wide(5)), widen(last)), kU32);
  }
  ValueId place_in_word(ValueId bit) { return bit_and(bit, wide(31)); }

 private:
  Emitter& emit_;
};

}  // namespace

// Words of a payload while they are read: `end` is the first bit that no section has taken yet.
struct BodyLowering::Words {
  std::string name;
  HostExprId len;        // how many numbers
  ValueId num;           // the same, u32
  ValueId padded, last;  // the words and a zero behind them; how many words
  ValueId place;         // of each code's one, [u32; len]
  ValueId holds;         // as far as was looked
  ValueId end;           // u64
};

// ---- numbers to codes

ValueId BodyLowering::pack_field(std::size_t field, ValueId values) {
  const CheckedField& packed = checked_.fields[field];
  const std::string& name = out_.info.wire.fields[field].name;
  Arithmetic a(emit_);
  ValueId zeros;
  if (packed.code == FieldCode::Ascending) {
    const ValueId gaps = gaps_of(values);
    const ValueId width = rice_width(emit_.type(values).dims[0], packed.below);
    const ValueId low = a.low_bits(gaps, width);
    return pack_codes(a.shr(gaps, width), {{low, width}}, packed, name);
  }
  if (packed.code == FieldCode::Elias) {
    HostExprPool& pool = emit_.exprs();
    const HostExprId below = pool.make(HostOp::Min, packed.below, pool.const_int(kLowHalf));
    const ValueId fits = emit_.map(ScalarOp::lt, a.widen(values), emit_.host_size(below, kU64));
    check_all(fits, fmt::format("field {}: a number is not below its limit", name));
  } else {
    values = gaps_of(values);
  }
  const std::vector<Section> sections = elias_sections(a.add(values, a.small(1)), zeros);
  return pack_codes(zeros, sections, packed, name);
}

// Each index less the one before it, less 1; of the first the index itself.
ValueId BodyLowering::gaps_of(ValueId index) {
  Arithmetic a(emit_);
  const ValueId i = emit_.iota(emit_.type(index).dims[0]);
  const ValueId before = emit_.gather(index, a.sub(i, a.min(i, a.small(1))));
  const ValueId is_first = a.equal(i, a.small(0));
  return a.sub(index, emit_.select(is_first, a.small(0), a.add(before, a.small(1))));
}

// floor(log2(below / num)): about as many bits of a gap are as good as random.
ValueId BodyLowering::rice_width(HostExprId num, HostExprId below) {
  Arithmetic a(emit_);
  const ValueId each = emit_.map(ScalarOp::max, host_scalar(num, kU64), a.wide(1));
  const ValueId mean = emit_.map(ScalarOp::div, emit_.host_size(below, kU64), each);
  return a.log2(emit_.map(ScalarOp::max, emit_.convert(mean, kU32), a.small(1)));
}

// Of y >= 1 with its highest one at bit w: w + 1 has its highest one at bit v; the code is v zeros
// and a one, the low v bits of w + 1, the low w bits of y.
std::vector<BodyLowering::Section> BodyLowering::elias_sections(ValueId values, ValueId& zeros) {
  Arithmetic a(emit_);
  const ValueId width = a.log2(values);
  const ValueId length = a.add(width, a.small(1));
  zeros = a.log2(length);
  return {{a.low_bits(length, zeros), zeros}, {a.low_bits(values, width), width}};
}

// All bits are sums into words: the unary parts' ones, and of each field the part in one word and
// the part in the next.
ValueId BodyLowering::pack_codes(ValueId zeros, const std::vector<Section>& sections,
                                 const CheckedField& field, const std::string& name) {
  Arithmetic a(emit_);
  const HostExprId len = emit_.type(zeros).dims[0];
  const HostExprId most = out_.info.wire.counts[field.words].bound;
  const ValueId i = emit_.iota(len), num = host_scalar(len, kU32);
  const ValueId last = a.sub(emit_.host_size(most, kU32), a.small(1));
  const ValueId place = a.add(emit_.scan(ScalarOp::add, zeros), i);
  ir::ValueIds at{a.min(a.shr(place, a.small(5)), last)};
  ir::ValueIds parts{a.shl(a.small(1), a.bit_and(place, a.small(31)))};
  ValueId end = a.widen(a.add(emit_.reduce(ScalarOp::add, zeros), num));
  for (const Section& section : sections) {
    const ValueId width = a.widen(section.width);
    const bool is_even = emit_.type(width).rank == 0;
    const ValueId before = is_even ? emit_.map(ScalarOp::mul, a.widen(i), width)
                                   : emit_.scan(ScalarOp::add, width, ir::kAll, true);
    const ValueId bit = a.add(before, end);
    const ValueId shifted = a.shl(a.widen(section.value), a.place_in_word(bit));
    at.push_back(a.word_of(bit, last));
    parts.push_back(a.low_half(shifted));
    at.push_back(a.word_of(a.add(bit, a.wide(32)), last));
    parts.push_back(emit_.convert(a.shr(shifted, a.wide(32)), kU32));
    end = a.add(end, is_even ? emit_.map(ScalarOp::mul, a.widen(num), width)
                             : emit_.reduce(ScalarOp::add, width));
  }
  const ValueId words = emit_.scatter_add(emit_.concat(at), emit_.concat(parts), most);
  const ValueId used = emit_.convert(a.shr(a.add(end, a.wide(31)), a.wide(5)), kU32);
  const std::uint32_t count = emit_.new_count(name + ".used", most);
  const auto kept = emit_.nonzero(emit_.map(ScalarOp::lt, emit_.iota(most), used), count);
  counts_[count] = kept.count;
  return emit_.gather(words, kept.index);
}

// ---- codes to numbers

ValueId BodyLowering::unpack_field(std::size_t field, ValueId words) {
  const CheckedField& packed = checked_.fields[field];
  const std::string& name = out_.info.wire.fields[field].name;
  Words open = open_words(words, packed, name);
  const ValueId values =
      packed.code == FieldCode::Ascending ? unpack_rice(open, packed) : unpack_elias(open, packed);
  emit_.name(values, name);
  return values;
}

BodyLowering::Words BodyLowering::open_words(ValueId words, const CheckedField& field,
                                             const std::string& name) {
  Arithmetic a(emit_);
  Words w;
  w.name = name;
  w.len = field.type.dims[0];
  w.num = host_scalar(w.len, kU32);
  w.last = host_scalar(emit_.type(words).dims[0], kU32);
  const ValueId zero = emit_.fill(a.small(0), vector_type(kU32, emit_.one()));
  w.padded = emit_.concat({words, zero});
  const ValueId t = emit_.iota(field.most_unary);
  const ValueId word = emit_.gather(w.padded, a.min(a.shr(t, a.small(5)), w.last));
  const ValueId bit = a.bit_and(a.shr(word, a.bit_and(t, a.small(31))), a.small(1));
  const std::uint32_t count = emit_.new_count(name + ".codes", field.most);
  const auto ones = emit_.nonzero(a.equal(bit, a.small(1)), count, w.len);
  counts_[count] = ones.count;
  // Where ones are missing the rest is of no use, but must not lead outside.
  const ValueId places = emit_.concat({ones.index, zero});
  w.place = emit_.gather(places, a.min(emit_.iota(w.len), ones.count));
  w.holds = a.equal(ones.count, w.num);
  const ValueId end = emit_.gather(places, a.min(a.sub(w.num, a.small(1)), ones.count));
  const ValueId is_empty = a.equal(w.num, a.small(0));
  w.end = a.widen(emit_.select(is_empty, a.small(0), a.add(end, a.small(1))));
  return w;
}

// The next `width` bits (at most 31) of each number.
ValueId BodyLowering::read_section(Words& words, ValueId width) {
  Arithmetic a(emit_);
  const ValueId wide = a.widen(width);
  const bool is_even = emit_.type(width).rank == 0;
  const ValueId before = is_even ? emit_.map(ScalarOp::mul, a.widen(emit_.iota(words.len)), wide)
                                 : emit_.scan(ScalarOp::add, wide, ir::kAll, true);
  const ValueId bit = a.add(before, words.end);
  const ValueId low = emit_.gather(words.padded, a.word_of(bit, words.last));
  const ValueId high = emit_.gather(words.padded, a.word_of(a.add(bit, a.wide(32)), words.last));
  const ValueId both = a.bit_or(a.widen(low), a.shl(a.widen(high), a.wide(32)));
  words.end = a.add(words.end, is_even ? emit_.map(ScalarOp::mul, a.widen(words.num), wide)
                                       : emit_.reduce(ScalarOp::add, wide));
  return a.low_bits(a.low_half(a.shr(both, a.place_in_word(bit))), width);
}

ValueId BodyLowering::unpack_rice(Words& words, const CheckedField& field) {
  Arithmetic a(emit_);
  const ValueId width = rice_width(words.len, field.below);
  const ValueId i = emit_.iota(words.len);
  const ValueId num = a.widen(words.num);
  const ValueId high = a.shl(a.sub(words.end, num), a.widen(width));
  const ValueId low = read_section(words, width);
  const ValueId end = a.add(a.add(high, emit_.reduce(ScalarOp::add, a.widen(low))), num);
  const ValueId below = emit_.host_size(field.below, kU64);
  const ValueId holds = accept_words(words, a.is_at_most(end, below), field);
  const ValueId highs = a.shl(a.sub(words.place, i), width);
  const ValueId index = a.add(a.add(highs, emit_.scan(ScalarOp::add, low)), i);
  return emit_.select(holds, index, i);
}

ValueId BodyLowering::unpack_elias(Words& words, const CheckedField& field) {
  Arithmetic a(emit_);
  const ValueId i = emit_.iota(words.len);
  const ValueId before = emit_.gather(words.place, a.sub(i, a.min(i, a.small(1))));
  const ValueId is_first = a.equal(i, a.small(0));
  const ValueId zeros =
      a.sub(words.place, emit_.select(is_first, a.small(0), a.add(before, a.small(1))));
  const ValueId few = a.min(zeros, a.small(kWidestUnary));
  const ValueId length = a.bit_or(a.shl(a.small(1), few), read_section(words, few));
  const ValueId width = a.min(a.sub(length, a.small(1)), a.small(kWidestField));
  const ValueId value = a.bit_or(a.shl(a.small(1), width), read_section(words, width));
  const ValueId is_short = a.is_at_most(emit_.reduce(ScalarOp::max, zeros), a.small(kWidestUnary));
  const ValueId is_narrow =
      a.is_at_most(emit_.reduce(ScalarOp::max, length), a.small(kWidestField + 1));
  const bool ascends = field.code == FieldCode::EliasAscending;
  const ValueId most = emit_.reduce(ascends ? ScalarOp::add : ScalarOp::max, a.widen(value));
  const ValueId is_below = a.is_at_most(most, emit_.host_size(field.below, kU64));
  const ValueId holds =
      accept_words(words, a.bit_and(a.bit_and(is_short, is_narrow), is_below), field);
  if (!ascends) return emit_.select(holds, a.sub(value, a.small(1)), a.small(0));
  return emit_.select(holds, a.sub(emit_.scan(ScalarOp::add, value), a.small(1)), i);
}

// Nothing of a payload is used before its words are known to be codes of this many numbers, and
// nothing else: what depends on the result waits for the check.
ValueId BodyLowering::accept_words(const Words& words, ValueId holds, const CheckedField& field) {
  Arithmetic a(emit_);
  const ValueId used = a.shr(a.add(words.end, a.wide(31)), a.wide(5));
  const ValueId is_whole = a.equal(used, a.widen(words.last));
  const ValueId rest = emit_.gather(words.padded, a.word_of(words.end, words.last));
  const ValueId behind = a.shr(a.widen(rest), a.place_in_word(words.end));
  holds = a.bit_and(a.bit_and(holds, words.holds), a.bit_and(is_whole, a.equal(behind, a.wide(0))));
  const bool ascends = field.code != FieldCode::Elias;
  emit_.check(holds, fmt::format("payload: field {}: its words are not {} below their limit",
                                 words.name, ascends ? "indices that ascend" : "numbers"));
  return holds;
}

}  // namespace cinch::lower
