#include "compiler/lower/parts/access.h"

#include <fmt/format.h>

#include <utility>


namespace cinch::lower {

using sema::CheckedField;
using sema::FieldCode;

namespace {

constexpr std::int64_t kMostBelow = 0xffffffff;
constexpr std::int64_t kWidestUnary = 5;   // in an Elias delta code of 32 bits
constexpr std::int64_t kWidestField = 31;  // bits below the first one of a number

// Short names for element-wise arithmetic over u32 and u64.
class Arithmetic {
 public:
  explicit Arithmetic(Emitter& emit) : emit_(emit) {}

  ValueId small(std::int64_t x) { return emit_.constant_int(kU32, x); }
  ValueId wide(std::int64_t x) { return emit_.constant_int(kU64, x); }
  ValueId widen(ValueId x) { return emit_.convert(x, kU64); }
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
  /// The word that contains a bit.
  ValueId word_of(ValueId bit) { return emit_.convert(shr(bit, wide(5)), kU32); }
  ValueId place_in_word(ValueId bit) { return emit_.convert(bit_and(bit, wide(31)), kU32); }

 private:
  Emitter& emit_;
};

}  // namespace

// Words of a payload during reading: `end` is the first bit that no section has taken yet.
struct PackingLowering::Words {
  std::string name, message;
  HostExprId len;     // number of coded numbers
  ValueId num;        // the same, u32
  ValueId all, used;  // the words; how many are used
  ValueId place;      // of each code's one, [u32; len]
  ValueId end;        // u64
};

// Where the fields of a section begin: their word, and the bit in it.
struct PackingLowering::Begins {
  ValueId word, bit;
  ValueId end;  // u64, after the last field
};

// ---- numbers to codes

ValueId PackingLowering::pack_field(std::size_t field, ValueId values) {
  const CheckedField& packed = cx().checked.fields[field];
  const std::string& name = cx().out.info.wire.fields[field].name;
  Arithmetic a(emit());
  ValueId zeros;
  if (packed.code == FieldCode::Ascending) {
    const ValueId gaps = gaps_of(values);
    const ValueId width = rice_width(emit().type(values).dims[0], packed.below);
    const ValueId low = a.low_bits(gaps, width);
    return pack_codes(a.shr(gaps, width), {{low, width}}, packed, name);
  }
  if (packed.code == FieldCode::Elias) {
    HostExprPool& pool = emit().exprs();
    const HostExprId below = pool.make(HostOp::Min, packed.below, pool.const_int(kMostBelow));
    const ValueId fits = emit().map(ScalarOp::lt, a.widen(values), emit().host_size(below, kU64));
    Checks(cx()).all(fits, fmt::format("field {}: a number is not below its limit", name));
    values = emit().keep(values);
  } else {
    values = gaps_of(values);
  }
  const std::vector<Section> sections = elias_sections(a.add(values, a.small(1)), zeros);
  return pack_codes(zeros, sections, packed, name);
}

// Each index minus the one before, minus 1; for the first the index itself.
ValueId PackingLowering::gaps_of(ValueId index) {
  Arithmetic a(emit());
  const ValueId i = emit().iota(emit().type(index).dims[0]);
  const ValueId before = emit().gather(index, a.sub(i, a.min(i, a.small(1))));
  const ValueId is_first = a.equal(i, a.small(0));
  return a.sub(index, emit().select(is_first, a.small(0), a.add(before, a.small(1))));
}

// floor(log2(below / num)): about this many low bits of a gap are close to random.
ValueId PackingLowering::rice_width(HostExprId num, HostExprId below) {
  Arithmetic a(emit());
  const ValueId each = emit().map(ScalarOp::max, host_scalar(num, kU64), a.wide(1));
  const ValueId mean = emit().map(ScalarOp::div, emit().host_size(below, kU64), each);
  return a.log2(emit().map(ScalarOp::max, emit().convert(mean, kU32), a.small(1)));
}

// Let w be the highest one bit of y >= 1, and v that of w + 1. The code is v zeros and a one, the
// low v bits of w + 1, the low w bits of y.
std::vector<PackingLowering::Section> PackingLowering::elias_sections(ValueId values,
                                                                      ValueId& zeros) {
  Arithmetic a(emit());
  const ValueId width = a.log2(values);
  const ValueId length = a.add(width, a.small(1));
  zeros = a.log2(length);
  return {{a.low_bits(length, zeros), zeros}, {a.low_bits(values, width), width}};
}

// Fields of `width` bits from bit `from` on. If all have the same width, 32 of them fill `width`
// words, so that no product exceeds 32 bits.
PackingLowering::Begins PackingLowering::begins_of(HostExprId len, ValueId width, ValueId from) {
  Arithmetic a(emit());
  if (emit().type(width).rank > 0) {
    const ValueId wide = a.widen(width);
    const ValueId bit = a.add(emit().scan(ScalarOp::add, wide, ir::kAll, true), from);
    return {a.word_of(bit), a.place_in_word(bit), a.add(from, emit().reduce(ScalarOp::add, wide))};
  }
  const ValueId i = emit().iota(len);
  const ValueId whole = emit().map(ScalarOp::mul, a.shr(i, a.small(5)), width);
  const ValueId rest = emit().map(ScalarOp::mul, a.bit_and(i, a.small(31)), width);
  const ValueId bit = a.add(rest, a.place_in_word(from));
  const ValueId word = a.add(a.add(whole, a.word_of(from)), a.shr(bit, a.small(5)));
  const ValueId size = emit().map(ScalarOp::mul, host_scalar(len, kU64), a.widen(width));
  return {word, a.bit_and(bit, a.small(31)), a.add(from, size)};
}

// All bits are summed into cells of memory. A section begins where the one before ends, which is
// known only after all codes were seen. So each section has cells of its own, which are moved when
// the words are assembled.
ValueId PackingLowering::pack_codes(ValueId zeros, const std::vector<Section>& sections,
                                    const CheckedField& field, const std::string& name) {
  Arithmetic a(emit());
  const HostExprId len = emit().type(zeros).dims[0];
  const HostExprId most = cx().out.info.wire.counts[field.words].bound;
  const ValueId last = a.sub(emit().host_size(most, kU32), a.small(1));
  const ValueId place = a.add(emit().scan(ScalarOp::add, zeros), emit().iota(len));
  const ValueId one = a.shl(a.small(1), a.bit_and(place, a.small(31)));
  const bool ascends = true;
  ValueId words = emit().scatter_add(a.min(a.shr(place, a.small(5)), last), one, most, ascends);
  ValueId end = a.widen(a.add(emit().reduce(ScalarOp::add, zeros), host_scalar(len, kU32)));
  for (const Section& section : sections) {
    const Begins begins = begins_of(len, section.width, a.wide(0));
    const ValueId bits = a.shl(a.widen(section.value), a.widen(begins.bit));
    const ValueId cells = emit().scatter_add(a.min(begins.word, last), bits, most, ascends);
    words = a.bit_or(words, words_from(cells, end));
    end = a.add(end, begins.end);
  }
  const ValueId used = emit().convert(a.shr(a.add(end, a.wide(31)), a.wide(5)), kU32);
  const std::uint32_t count = emit().new_count(name + ".used", most);
  const auto kept = emit().nonzero(emit().map(ScalarOp::lt, emit().iota(most), used), count);
  cx().counts[count] = kept.count;
  return emit().slice(words, emit().exprs().const_int(0), emit().type(kept.index).dims[0]);
}

// Cell c has the bits of fields that begin in word c; it is u64, since the last field may end in
// the next word. Word j of the result has the bits that lie there after all are moved up by `begin`
// bits.
ValueId PackingLowering::words_from(ValueId cells, ValueId begin) {
  Arithmetic a(emit());
  const HostExprId size = emit().type(cells).dims[0];
  const ValueId j = emit().iota(size);
  const auto cell_before = [&](std::int64_t distance) {
    const ValueId moved = a.add(a.word_of(begin), a.small(distance));
    const ValueId at = a.sub(j, a.min(moved, j));
    return emit().select(a.is_at_most(moved, j), emit().gather(cells, at), a.wide(0));
  };
  const ValueId two_words = a.bit_or(a.bit_or(a.shr(cell_before(2), a.wide(32)), cell_before(1)),
                                     a.shl(cell_before(0), a.wide(32)));
  const ValueId below = a.sub(a.wide(32), a.bit_and(begin, a.wide(31)));
  return emit().convert(a.bit_and(a.shr(two_words, below), a.wide(kMostBelow)), kU32);
}

// ---- codes to numbers

ValueId PackingLowering::unpack_field(std::size_t field, ValueId words) {
  const CheckedField& packed = cx().checked.fields[field];
  const std::string& name = cx().out.info.wire.fields[field].name;
  Words open = open_words(words, packed, name);
  const ValueId values =
      packed.code == FieldCode::Ascending ? unpack_rice(open, packed) : unpack_elias(open, packed);
  emit().name(values, name);
  return values;
}

// Finds the ones of the unary parts. Reads beyond the words, or beyond the ones if some are
// missing, wait for a check.
PackingLowering::Words PackingLowering::open_words(ValueId words, const CheckedField& field,
                                                   const std::string& name) {
  Arithmetic a(emit());
  Words w;
  w.name = name;
  w.len = field.type.dims[0];
  w.num = host_scalar(w.len, kU32);
  w.all = words;
  w.used = host_scalar(emit().type(words).dims[0], kU32);
  const char* what = field.code == FieldCode::Elias ? "numbers" : "indices that ascend";
  w.message = fmt::format("payload: field {}: its words are not {} below their limit", name, what);
  const ValueId is_empty = a.equal(w.num, a.small(0));
  emit().check(a.bit_or(is_empty, emit().map(ScalarOp::gt, w.used, a.small(0))), w.message);
  const ValueId t = emit().iota(field.most_unary);
  const ValueId word = a.shr(t, a.small(5));
  const ValueId bits = a.shr(word_at(w, word), a.bit_and(t, a.small(31)));
  const ValueId is_one = a.equal(a.bit_and(bits, a.small(1)), a.small(1));
  const ValueId is_inside = emit().map(ScalarOp::lt, word, w.used);
  const std::uint32_t count = emit().new_count(name + ".codes", field.most);
  const auto ones = emit().nonzero(a.bit_and(is_one, is_inside), count, w.len);
  cx().counts[count] = ones.count;
  emit().check(a.equal(ones.count, w.num), w.message);
  w.place = emit().gather(ones.index, emit().iota(w.len));
  const ValueId last = element_or_zero(ones.index, a.sub(w.num, a.small(1)));
  w.end = a.widen(emit().select(is_empty, a.small(0), a.add(last, a.small(1))));
  return w;
}

ValueId PackingLowering::element_or_zero(ValueId values, ValueId at) {
  Arithmetic a(emit());
  const ValueId zero = emit().fill(a.small(0), vector_type(kU32, emit().one()));
  const ValueId size = host_scalar(emit().type(values).dims[0], kU32);
  return emit().gather(emit().concat({values, zero}), a.min(at, size));
}

// Reads the last word for places beyond it.
ValueId PackingLowering::word_at(const Words& words, ValueId word) {
  Arithmetic a(emit());
  return emit().gather(words.all, a.min(word, a.sub(words.used, a.small(1))));
}

// Reads the next `width` bits (at most 31) of each number.
ValueId PackingLowering::read_section(Words& words, ValueId width) {
  Arithmetic a(emit());
  const Begins begins = begins_of(words.len, width, words.end);
  const ValueId low = a.shr(word_at(words, begins.word), begins.bit);
  const ValueId next = word_at(words, a.add(begins.word, a.small(1)));
  const ValueId high = a.shl(a.shl(next, a.small(1)), a.sub(a.small(31), begins.bit));
  words.end = begins.end;
  return a.low_bits(a.bit_or(low, high), width);
}

// The sum of the low parts is below the limit, so it fits 32 bits.
ValueId PackingLowering::unpack_rice(Words& words, const CheckedField& field) {
  Arithmetic a(emit());
  const ValueId width = rice_width(words.len, field.below);
  const ValueId i = emit().iota(words.len);
  const ValueId num = a.widen(words.num);
  const ValueId high = a.shl(a.sub(words.end, num), a.widen(width));
  const ValueId low = read_section(words, width);
  const ValueId end = a.add(a.add(high, a.widen(emit().reduce(ScalarOp::add, low))), num);
  const ValueId below = emit().host_size(field.below, kU64);
  const ValueId holds = accept_words(words, a.is_at_most(end, below));
  const ValueId highs = a.shl(a.sub(words.place, i), width);
  const ValueId index = a.add(a.add(highs, emit().scan(ScalarOp::add, low)), i);
  return emit().select(holds, index, i);
}

ValueId PackingLowering::unpack_elias(Words& words, const CheckedField& field) {
  Arithmetic a(emit());
  const ValueId i = emit().iota(words.len);
  const ValueId before = emit().gather(words.place, a.sub(i, a.min(i, a.small(1))));
  const ValueId is_first = a.equal(i, a.small(0));
  const ValueId zeros =
      a.sub(words.place, emit().select(is_first, a.small(0), a.add(before, a.small(1))));
  const ValueId few = a.min(zeros, a.small(kWidestUnary));
  const ValueId length = a.bit_or(a.shl(a.small(1), few), read_section(words, few));
  const ValueId width = a.min(a.sub(length, a.small(1)), a.small(kWidestField));
  const ValueId value = a.bit_or(a.shl(a.small(1), width), read_section(words, width));
  const ValueId is_short = a.is_at_most(emit().reduce(ScalarOp::max, zeros), a.small(kWidestUnary));
  const ValueId is_narrow =
      a.is_at_most(emit().reduce(ScalarOp::max, length), a.small(kWidestField + 1));
  const bool ascends = field.code == FieldCode::EliasAscending;
  const ValueId most = emit().reduce(ascends ? ScalarOp::add : ScalarOp::max, a.widen(value));
  const ValueId is_below = a.is_at_most(most, emit().host_size(field.below, kU64));
  const ValueId holds = accept_words(words, a.bit_and(a.bit_and(is_short, is_narrow), is_below));
  if (!ascends) return emit().select(holds, a.sub(value, a.small(1)), a.small(0));
  return emit().select(holds, a.sub(emit().scan(ScalarOp::add, value), a.small(1)), i);
}

// Nothing of a payload is used before its words are known to be codes of exactly this many numbers:
// everything that depends on the result waits for the check.
ValueId PackingLowering::accept_words(const Words& words, ValueId holds) {
  Arithmetic a(emit());
  const ValueId used = a.shr(a.add(words.end, a.wide(31)), a.wide(5));
  const ValueId rest = element_or_zero(words.all, a.word_of(words.end));
  const ValueId behind = a.shr(rest, a.place_in_word(words.end));
  holds = a.bit_and(holds, a.equal(used, a.widen(words.used)));
  holds = a.bit_and(holds, a.equal(behind, a.small(0)));
  emit().check(holds, words.message);
  return holds;
}

}  // namespace cinch::lower
