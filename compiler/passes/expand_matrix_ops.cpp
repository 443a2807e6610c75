// expand_matrix_ops: orthonormalize as a loop over columns, hadamard as butterflies and one
// multiplication.
//
//   before:  %1 = orthonormalize %0
//   after:   %2 = map.div_or_zero %0, powers of two; %3 = squares of the columns' lengths
//            %1 = for_loop %2 {begin=0, end=cols} (%i, %m) { column i, with the columns before it
//                 taken out again, made of length 1, or of zeros where too little of %3 is left;
//                 it is then taken out of the later columns }
//
//   before:  %1 = hadamard %0
//   after:   %2 = butterflies %0; %1 = map.mul %2, 1/sqrt(length)
//
// Rows longer than a tile: butterflies of their pieces of 1024, then of the elements that stand
// 1024 apart, made rows of their own. Rows that are too short for a kernel's groups, and such whose
// length only the host knows, go stage by stage:
//            for each distance 1, 2, 4 …: %p = gather_along %x, (column ^ distance)
//            %x' = select((column & distance) == 0, %x + %p, %p - %x)
#include <bit>
#include <optional>
#include <vector>

#include "compiler/ir/ops.h"
#include "compiler/passes/passes.h"
#include "runtime/core/numbers/ordered_reduce.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::passes {
namespace {

using ir::ValueId;

// [1, cols]: 0, 1, 2 …
ValueId column_numbers(ir::Builder& b, HostExprId cols) {
  return b.reshape(b.iota(cols), ir::matrix_type(kU32, b.exprs().const_int(1), cols));
}

// Divides each column by a power of two near its largest magnitude, so that no square overflows or
// underflows.
ValueId scale_columns(ir::Builder& b, ValueId m) {
  const ValueId largest = b.reduce(ScalarOp::max, b.map(ScalarOp::abs, m), 0);
  const ValueId exponent = b.map(ScalarOp::floor, b.map(ScalarOp::log2, largest));
  return b.map(ScalarOp::divide_or_zero, m, b.map(ScalarOp::exp2, exponent));
}

// The sums of a * b along the columns.
ValueId products(ir::Builder& b, ValueId x, ValueId y) {
  return b.reduce(ScalarOp::add, b.map(ScalarOp::mul, x, y), 0);
}

// The Gram-Schmidt process on a matrix with the original column lengths `lengths` (squares, [1,
// cols]).
struct Orthonormalizing {
  ir::Builder& b;
  ValueId number, lengths, none;

  // Takes the columns before it out of column `i` once more: if little else is left, the remains
  // from rounding matter. Zeros if the column depends on the others: see gram_schmidt.h.
  ValueId direction(ValueId m, ValueId v, ValueId i) const {
    const ir::Type type = b.type(v);
    const ValueId left = products(b, v, v);
    const ValueId share = b.select(b.map(ScalarOp::lt, number, i), products(b, v, m), none);
    const ValueId before = b.reduce(ScalarOp::add, b.map(ScalarOp::mul, share, m), 1);
    const ValueId rest = b.map(ScalarOp::sub, v, before);
    const ValueId kept = products(b, rest, rest);
    const ValueId one = b.fill(i, ir::matrix_type(kU32, type.dims[1], type.dims[1]));
    const ValueId length = b.gather_along(lengths, one, 1);
    const ValueId is_noise = at_most(left, length, ir::least_left(type.dtype));
    const ValueId is_unsure = at_most(kept, left, ir::kLeastKept);
    const ValueId made = b.map(ScalarOp::divide_or_zero, rest, b.map(ScalarOp::sqrt, kept));
    return b.select(b.map(ScalarOp::bit_or, is_noise, is_unsure), none, made);
  }

  // One round: computes column `i`, then takes it out of the later ones.
  ValueId turn(ValueId m, ValueId i) const {
    const ir::Type column = ir::matrix_type(kU32, b.type(m).dims[0], b.exprs().const_int(1));
    const ValueId v = b.gather_along(m, b.fill(i, column), 1);
    const ValueId q = direction(m, v, i);
    const ValueId rest = b.map(ScalarOp::sub, m, b.map(ScalarOp::mul, products(b, q, m), q));
    const ValueId later = b.select(b.map(ScalarOp::gt, number, i), rest, m);
    return b.select(b.map(ScalarOp::eq, number, i), q, later);
  }

 private:
  ValueId at_most(ValueId square, ValueId of, double share) const {
    return b.map(ScalarOp::le, square, b.map(ScalarOp::mul, of, b.constant(b.dtype(of), share)));
  }
};

ValueId orthonormalize(ir::Builder& b, ValueId x) {
  const HostExprId cols = b.type(x).dims[1];
  const ValueId scaled = scale_columns(b, x);
  const Orthonormalizing process{b, column_numbers(b, cols), products(b, scaled, scaled),
                                 b.constant(b.dtype(x), 0)};
  return b
      .for_loop(b.exprs().const_int(0), cols, {scaled},
                [&](ValueId i, std::span<const ValueId> carried) {
                  return ir::ValueIds{process.turn(carried[0], b.convert(i, kU32))};
                })
      .front();
}

// Partners are `distance` (a u32 scalar, a power of two) apart.
ValueId butterfly(ir::Builder& b, ValueId x, ValueId distance) {
  const ir::Type type = b.type(x);
  const ValueId number = column_numbers(b, type.dims[1]);
  const ValueId partner = b.fill(b.map(ScalarOp::bit_xor, number, distance), type);
  const ValueId p = b.gather_along(x, partner, 1);
  const ValueId bit = b.map(ScalarOp::bit_and, number, distance);
  const ValueId is_left = b.map(ScalarOp::eq, bit, b.constant_int(kU32, 0));
  return b.select(is_left, b.map(ScalarOp::add, x, p), b.map(ScalarOp::sub, p, x));
}

constexpr std::int64_t kShortest = 8, kPiece = 1024;

// The elements of `x` in another order, given by a function of their numbers, as rows.
template <typename Source>
ValueId reorder(ir::Builder& b, ValueId x, const ir::Type& rows, const Source& source) {
  HostExprPool& exprs = b.exprs();
  const HostExprId count = exprs.mul(rows.dims[0], rows.dims[1]);
  const ValueId flat = b.reshape(x, ir::vector_type(rows.dtype, count));
  return b.reshape(b.gather(flat, source(b.iota(count))), rows);
}

// (i >> shift) & mask, shifted up.
ValueId digits(ir::Builder& b, ValueId i, std::int64_t shift, std::int64_t mask, std::int64_t up) {
  const ValueId low = b.map(ScalarOp::bit_and, b.map(ScalarOp::shr, i, b.constant_int(kU32, shift)),
                            b.constant_int(kU32, mask));
  return b.map(ScalarOp::shl, low, b.constant_int(kU32, up));
}

ValueId constant_butterflies(ir::Builder& b, ValueId x, std::int64_t length);

ValueId long_butterflies(ir::Builder& b, ValueId x, std::int64_t length) {
  HostExprPool& exprs = b.exprs();
  const ir::Type whole = b.type(x);
  const std::int64_t pieces = length / kPiece;
  const std::int64_t piece_bits = std::countr_zero(static_cast<std::uint64_t>(kPiece));
  const std::int64_t bits = std::countr_zero(static_cast<std::uint64_t>(pieces));
  const auto rows_of = [&](std::int64_t number, std::int64_t each) {
    return ir::matrix_type(whole.dtype, exprs.mul(whole.dims[0], exprs.const_int(number)),
                           exprs.const_int(each));
  };
  const ValueId row_begin_mask = b.constant_int(kU32, 0xffffffff - (length - 1));
  const auto swapped = [&](std::int64_t low_bits, std::int64_t high_bits) {
    return [&b, row_begin_mask, low_bits, high_bits](ValueId i) {
      const ValueId low = digits(b, i, 0, (std::int64_t{1} << low_bits) - 1, high_bits);
      const ValueId high = digits(b, i, low_bits, (std::int64_t{1} << high_bits) - 1, 0);
      return b.map(ScalarOp::bit_or, b.map(ScalarOp::bit_and, i, row_begin_mask),
                   b.map(ScalarOp::bit_or, low, high));
    };
  };
  x = b.butterflies(b.reshape(x, rows_of(pieces, kPiece)));
  x = reorder(b, x, rows_of(kPiece, pieces), swapped(bits, piece_bits));
  x = constant_butterflies(b, x, pieces);
  return reorder(b, x, whole, swapped(piece_bits, bits));
}

ValueId constant_butterflies(ir::Builder& b, ValueId x, std::int64_t length) {
  if (length > kPiece) return long_butterflies(b, x, length);
  if (length >= kShortest) return b.butterflies(x);
  for (std::int64_t distance = 1; distance < length; distance *= 2) {
    x = butterfly(b, x, b.constant_int(kU32, distance));
  }
  return x;
}

// As many stages as the length has binary digits after its first.
ValueId looped_stages(ir::Builder& b, ValueId x, HostExprId length) {
  HostExprPool& exprs = b.exprs();
  const HostExprId log = exprs.make(HostOp::Log2, exprs.cast(length, HostType::F64));
  const HostExprId stages = exprs.cast(exprs.make(HostOp::Round, log), HostType::Int);
  return b
      .for_loop(exprs.const_int(0), stages, {x},
                [&](ValueId i, std::span<const ValueId> carried) {
                  const ValueId one = b.constant_int(kU32, 1);
                  const ValueId distance = b.map(ScalarOp::shl, one, b.convert(i, kU32));
                  return ir::ValueIds{butterfly(b, carried[0], distance)};
                })
      .front();
}

ValueId hadamard(ir::Builder& b, ValueId x) {
  const HostExprId length = b.type(x).dims[1];
  const auto constant = ir::constant_size(b.exprs(), length);
  const ValueId turned =
      constant ? constant_butterflies(b, x, *constant) : looped_stages(b, x, length);
  const ValueId scale = b.map(ScalarOp::rsqrt, b.host_size(length, b.dtype(x)));
  return b.map(ScalarOp::mul, turned, scale);
}

}  // namespace

void expand_matrix_ops(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [](ir::Builder& b, ir::OpId id) -> std::optional<ir::ValueIds> {
    const ir::Op op = b.function().ops[id.index()];
    if (op.kind == ir::OpKind::orthonormalize) {
      return ir::ValueIds{orthonormalize(b, op.operands[0])};
    }
    if (op.kind != ir::OpKind::hadamard) return std::nullopt;
    return ir::ValueIds{hadamard(b, op.operands[0])};
  });
}

// expand_thin_products: computes matrix products with a thin factor so that the other factor is
// read once.
//
//   before:  %1 = matmul %a, %b         b has a constant few columns, a many
//   after:   %c0 = reduce add (%a * column 0 of %b, as a row), axis 1; and so for each column, in
//            one sweep over %a (axis 0 of %m where %a is transpose %m); %1 = %c0 | %c1 | …
//
//   before:  %1 = matmul %a, %b         a has a constant few columns
//   after:   %1 = (column 0 of %a) * (row 0 of %b) + …, element by element, added in the order of a
//            reduction of so many elements (docs/language_bits.md)

namespace {

using ir::ValueId;

// More columns would make kernels with more reductions than caches have room for, and long texts
// that compile slowly.
constexpr std::int64_t kMostColumns = 8;
constexpr std::int64_t kMostTerms = 16;

// [1, cols]
ValueId row_of(ir::Builder& b, ValueId matrix, std::int64_t row) {
  return b.slice(matrix, b.exprs().const_int(row), b.exprs().const_int(1));
}
// [rows, 1]
ValueId column_of(ir::Builder& b, ValueId matrix, std::int64_t column) {
  return b.transpose(row_of(b, b.transpose(matrix), column));
}

// The terms of one element's sum, in the order of a reduction.
ValueId ordered_sum(ir::Builder& b, std::vector<ValueId> terms) {
  for (std::size_t distance = kTileColumns / 2; distance >= 1; distance /= 2) {
    for (std::size_t j = 0; j < distance && j + distance < terms.size(); ++j) {
      terms[j] = b.map(ScalarOp::add, terms[j], terms[j + distance]);
    }
    if (terms.size() > distance) terms.resize(distance);
  }
  return b.map(ScalarOp::add, b.identity(ScalarOp::add, b.dtype(terms[0])), terms[0]);
}

ValueId sum_of_terms(ir::Builder& b, ValueId left, ValueId right, std::int64_t num_terms) {
  std::vector<ValueId> terms;
  terms.reserve(static_cast<std::size_t>(num_terms));
  for (std::int64_t i = 0; i < num_terms; ++i) {
    terms.push_back(b.map(ScalarOp::mul, column_of(b, left, i), row_of(b, right, i)));
  }
  return ordered_sum(b, std::move(terms));
}

// The sums of one result column: [rows, 1].
ValueId column_of_product(ir::Builder& b, ValueId left, ValueId right, std::int64_t column) {
  const ir::Op& made_by = b.function().ops[b.function().values[left.index()].def.index()];
  if (made_by.kind == ir::OpKind::transpose) {
    const ValueId product = b.map(ScalarOp::mul, made_by.operands[0], column_of(b, right, column));
    return b.transpose(b.reduce(ScalarOp::add, product, 0));
  }
  const ValueId factor = row_of(b, b.transpose(right), column);
  return b.reduce(ScalarOp::add, b.map(ScalarOp::mul, left, factor), 1);
}

ValueId columns_side_by_side(ir::Builder& b, const std::vector<ValueId>& columns, ir::Type type) {
  const ValueId number =
      b.reshape(b.iota(type.dims[1]), ir::matrix_type(kU32, b.exprs().const_int(1), type.dims[1]));
  ValueId result = b.fill(columns[0], type);
  for (std::size_t j = 1; j < columns.size(); ++j) {
    const ValueId is_here =
        b.map(ScalarOp::eq, number, b.constant_int(kU32, static_cast<std::int64_t>(j)));
    result = b.select(is_here, columns[j], result);
  }
  return result;
}

ValueId product_by_columns(ir::Builder& b, ValueId left, ValueId right, std::int64_t num_columns) {
  const ir::Type type = ir::matrix_type(b.dtype(left), b.type(left).dims[0], b.type(right).dims[1]);
  std::vector<ValueId> columns;
  columns.reserve(static_cast<std::size_t>(num_columns));
  for (std::int64_t j = 0; j < num_columns; ++j) {
    columns.push_back(column_of_product(b, left, right, j));
  }
  return columns_side_by_side(b, columns, type);
}

}  // namespace

void expand_thin_products(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [](ir::Builder& b, ir::OpId id) -> std::optional<ir::ValueIds> {
    const ir::Op op = b.function().ops[id.index()];
    if (op.kind != ir::OpKind::matmul) return std::nullopt;
    const ValueId left = op.operands[0], right = op.operands[1];
    const auto num_terms = ir::constant_size(b.exprs(), b.type(left).dims[1]);
    const auto num_columns = ir::constant_size(b.exprs(), b.type(right).dims[1]);
    if (num_terms) {
      // Square factors are transforms of rows on chip.
      const bool is_thin = *num_terms >= 1 && *num_terms <= kMostTerms && num_terms != num_columns;
      if (!is_thin) return std::nullopt;
      return ir::ValueIds{sum_of_terms(b, left, right, *num_terms)};
    }
    if (!num_columns || *num_columns < 1 || *num_columns > kMostColumns) return std::nullopt;
    return ir::ValueIds{product_by_columns(b, left, right, *num_columns)};
  });
}

}  // namespace cinch::passes
