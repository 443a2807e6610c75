// pack_rank_sums: sends integers of known range in no more bits than their sum over ranks needs.
// Adding words adds all their fields: none carries into the next.
//
//   before:  %1 = all_reduce %x {add}        x: [i32; n] between a and b
//   after:   %c = keep (convert (%x - a) to u8)
//            %w = (c[0 ..] << 0) + (c[m ..] << bits) + …      m words, each fields m elements apart
//            %s = all_reduce %w {add}                         [u64; m]
//            %1 = field by field, + world * a
//
//   where    bits = ceil(log2(world * (b - a) + 1))           so that a field holds the sum
//            m = ceil_div(n, 64 / bits)
//
// For reduce_scatter each row has words of its own.
//
//   before:  %1 = all_reduce %x {max}        x: [i32; n] within 8 bits
//   after:   %1 = convert (all_reduce (convert %x to i8) {max})
#include <bit>

#include "compiler/analysis/rank_sums.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

using analysis::IntegerRange;
using ir::Builder;
using ir::ValueId;

struct Fields {
  analysis::PackedSum sum;
  HostExprId bits;          // of each field
  HostExprId num_rows;      // that have words of their own
  HostExprId num_elements;  // of a row
  HostExprId num_words;     // a field of word i is element i, i + num_words, i + 2 num_words …
};

// min(times * num_words, num_elements): its sum with a word's number does not exceed 2^32.
HostExprId first_element(Builder& b, const Fields& fields, std::int64_t field) {
  HostExprPool& exprs = b.exprs();
  const HostExprId first = exprs.mul(exprs.const_int(field), fields.num_words);
  return exprs.min(first, fields.num_elements);
}

// The bit at which a word's field begins; for an empty field it does not matter.
ValueId shift_of(Builder& b, const Fields& fields, std::int64_t field) {
  return b.host_size(b.exprs().mul(b.exprs().const_int(field), fields.bits), kU64);
}

// For each word: its place in its row, and the element of its first field.
struct WordPlaces {
  ValueId in_row, element;
};

WordPlaces find_words(Builder& b, const Fields& fields) {
  HostExprPool& exprs = b.exprs();
  const ValueId word = b.iota(exprs.mul(fields.num_rows, fields.num_words));
  if (fields.num_rows == exprs.const_int(1)) return {word, word};
  const ValueId width = b.host_size(fields.num_words, kU32);
  const ValueId in_row = b.map(ScalarOp::mod, word, width);
  const ValueId row = b.map(ScalarOp::div, word, width);
  const ValueId begin = b.map(ScalarOp::mul, row, b.host_size(fields.num_elements, kU32));
  return {in_row, b.map(ScalarOp::add, begin, in_row)};
}

ValueId pack_fields(Builder& b, const Fields& fields, ValueId x) {
  const ValueId least = b.constant_int(b.dtype(x), fields.sum.range.least);
  const bool is_small = fields.sum.range.greatest - fields.sum.range.least <= 255;
  const ValueId code = b.convert(b.map(ScalarOp::sub, x, least), is_small ? kU8 : kU16);
  const ValueId codes = b.keep(code);
  const WordPlaces at = find_words(b, fields);
  const ValueId zero = b.constant_int(kU32, 0), nothing = b.constant_int(kU64, 0);
  ValueId packed;
  for (std::int64_t field = 0; field < fields.sum.most_fields; ++field) {
    const HostExprId first = first_element(b, fields, field);
    const HostExprId left = b.exprs().sub(fields.num_elements, first);
    const ValueId is_there = b.map(ScalarOp::lt, at.in_row, b.host_size(left, kU32));
    const ValueId offset = b.select(is_there, b.host_size(first, kU32), zero);
    const ValueId element = b.gather(codes, b.map(ScalarOp::add, at.element, offset));
    const ValueId there = b.select(is_there, b.convert(element, kU64), nothing);
    const ValueId shifted = b.map(ScalarOp::shl, there, shift_of(b, fields, field));
    packed = packed.is_valid() ? b.map(ScalarOp::bit_or, packed, shifted) : shifted;
  }
  return packed;
}

// An element's word and the shift of its field: a division by num_words with few digits.
struct FieldPlaces {
  ValueId word, shift;
};

FieldPlaces find_places(Builder& b, const Fields& fields) {
  FieldPlaces at{b.iota(fields.num_elements), b.constant_int(kU64, 0)};
  const ValueId zero = b.constant_int(kU32, 0), nothing = b.constant_int(kU64, 0);
  const auto most = static_cast<std::uint64_t>(fields.sum.most_fields);
  for (auto step = static_cast<std::int64_t>(std::bit_floor(most)); step > 0; step /= 2) {
    const ValueId elements = b.host_size(first_element(b, fields, step), kU32);
    const ValueId is_later = b.map(ScalarOp::ge, at.word, elements);
    at.word = b.map(ScalarOp::sub, at.word, b.select(is_later, elements, zero));
    at.shift =
        b.map(ScalarOp::add, at.shift, b.select(is_later, shift_of(b, fields, step), nothing));
  }
  return at;
}

// The sum in the elements' type; it wraps as theirs does.
ValueId unpack_fields(Builder& b, const Fields& fields, ValueId words, DType dtype) {
  HostExprPool& exprs = b.exprs();
  const FieldPlaces at = find_places(b, fields);
  const HostExprId one = exprs.const_int(1);
  const HostExprId mask = exprs.sub(exprs.make(HostOp::Shl, one, fields.bits), one);
  const ValueId down = b.map(ScalarOp::shr, b.gather(words, at.word), at.shift);
  const ValueId field = b.map(ScalarOp::bit_and, down, b.host_size(mask, kU64));
  const HostExprId least = exprs.mul(exprs.world(), exprs.const_int(fields.sum.range.least));
  const ValueId offset = b.bitcast(b.host_size(least, kI64), kU64);
  const ValueId sum = b.map(ScalarOp::add, field, offset);
  if (dtype.bits == 64) return b.bitcast(sum, dtype);
  const ValueId low = b.map(ScalarOp::bit_and, sum, b.constant_int(kU64, 0xffffffff));
  return b.bitcast(b.convert(low, kU32), dtype);
}

ValueId sum_over_ranks(Builder& b, const ir::Op& op, const analysis::PackedSum& sum) {
  HostExprPool& exprs = b.exprs();
  const ir::Type type = b.type(op.operands[0]);
  const bool scatters = op.kind == ir::OpKind::reduce_scatter;
  const HostExprId num_elements = analysis::num_packed_together(exprs, op, type);
  const Fields fields{sum, analysis::field_bits(exprs, sum),
                      scatters ? exprs.world() : exprs.const_int(1), num_elements,
                      analysis::num_sum_words(exprs, sum, num_elements)};
  const ir::Type flat = ir::vector_type(type.dtype, ir::element_count(exprs, type));
  const ValueId words = pack_fields(b, fields, b.reshape(op.operands[0], flat));
  if (!scatters) {
    const ValueId sums = b.all_reduce(words, ScalarOp::add);
    return b.reshape(unpack_fields(b, fields, sums, type.dtype), type);
  }
  const ir::Type by_rank = ir::matrix_type(kU64, exprs.world(), fields.num_words);
  const ValueId sums = b.reduce_scatter(b.reshape(words, by_rank), ScalarOp::add);
  return unpack_fields(b, fields, sums, type.dtype);
}

// The 8-bit type, which every transport can join, if it holds the elements.
std::optional<DType> small_type(const IntegerRange& range) {
  if (range.least >= 0 && range.greatest <= 255) return kU8;
  if (range.least >= -128 && range.greatest <= 127) return kI8;
  return std::nullopt;
}

// A minimum or a maximum.
std::optional<ir::ValueIds> narrow_extreme(Builder& b, const ir::Op& op) {
  const auto how = b.function().combiners[op.attrs.combiner.index()].op;
  const DType dtype = b.dtype(op.operands[0]);
  const bool is_single = b.type(op.operands[0]).rank == 0;
  if (how == ScalarOp::add || is_single || !is_int(dtype) || dtype.bits <= 8) return std::nullopt;
  const auto range = analysis::find_integer_range(b.program(), b.function(), op.operands[0]);
  const auto small = range ? small_type(*range) : std::nullopt;
  if (!small || !how) return std::nullopt;
  return ir::ValueIds{b.convert(b.all_reduce(b.convert(op.operands[0], *small), *how), dtype)};
}

}  // namespace

void pack_rank_sums(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [](Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
    if (op.kind != ir::OpKind::all_reduce && op.kind != ir::OpKind::reduce_scatter) {
      return std::nullopt;
    }
    const auto sum = analysis::find_packed_sum(b.program(), b.function(), op);
    if (sum) return ir::ValueIds{sum_over_ranks(b, op, *sum)};
    return narrow_extreme(b, op);
  });
}

}  // namespace cinch::passes
