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
//            for each distance 1, 2, 4 …: %p = gather %x, (place ^ distance)
//            %x' = select((place & distance) == 0, %x + %p, %p - %x)
#include <bit>

#include "compiler/ir/ops.h"
#include "compiler/lower/prelude.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {
namespace {

using ir::ValueId;
using lower::call_prelude;

constexpr std::int64_t kShortest = 8, kPiece = 1024;

ValueId orthonormalize(ir::Builder& b, ValueId x) {
  const DType type = b.dtype(x);
  const ValueId least_left = b.constant(type, ir::least_left(type));
  return call_prelude(b, "orthonormal", type, {x, least_left, b.constant(type, ir::kLeastKept)})[0];
}

ValueId constant_butterflies(ir::Builder& b, ValueId x, std::int64_t length);

ValueId long_butterflies(ir::Builder& b, ValueId x, std::int64_t length) {
  HostExprPool& exprs = b.exprs();
  const ir::Type whole = b.type(x);
  const std::int64_t pieces = length / kPiece;
  const int piece_bits = std::countr_zero(static_cast<std::uint64_t>(kPiece));
  const int bits = std::countr_zero(static_cast<std::uint64_t>(pieces));
  const HostExprId num = exprs.mul(whole.dims[0], exprs.const_int(pieces));
  x = b.butterflies(b.reshape(x, ir::matrix_type(whole.dtype, num, exprs.const_int(kPiece))));
  x = call_prelude(
      b, "swap_digits", whole.dtype,
      {x, bits, piece_bits, exprs.mul(whole.dims[0], exprs.const_int(kPiece)), pieces})[0];
  x = constant_butterflies(b, x, pieces);
  return call_prelude(b, "swap_digits", whole.dtype,
                      {x, piece_bits, bits, whole.dims[0], length})[0];
}

ValueId constant_butterflies(ir::Builder& b, ValueId x, std::int64_t length) {
  if (length > kPiece) return long_butterflies(b, x, length);
  if (length >= kShortest) return b.butterflies(x);
  for (std::int64_t distance = 1; distance < length; distance *= 2) {
    x = call_prelude(b, "butterfly", b.dtype(x), {x, distance})[0];
  }
  return x;
}

ValueId hadamard(ir::Builder& b, ValueId x) {
  const HostExprId length = b.type(x).dims[1];
  const auto constant = ir::constant_size(b.exprs(), length);
  const ValueId turned = constant ? constant_butterflies(b, x, *constant)
                                  : call_prelude(b, "butterfly_stages", b.dtype(x), {x})[0];
  const ValueId scale = b.map(ScalarOp::rsqrt, b.host_size(length, b.dtype(x)));
  return b.map(ScalarOp::mul, turned, scale);
}

}  // namespace

void expand_matrix_ops(ir::Program& program, PassContext& context) {
  rewrite_all(program, context,
              [](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
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

ValueId sum_of_terms(ir::Builder& b, ValueId left, ValueId right, std::int64_t num_terms) {
  std::vector<ValueId> terms;
  terms.reserve(static_cast<std::size_t>(num_terms));
  for (std::int64_t i = 0; i < num_terms; ++i) {
    terms.push_back(b.map(ScalarOp::mul, column_of(b, left, i), row_of(b, right, i)));
  }
  const ValueId sum = joined_in_order(std::move(terms), [&b](ValueId left_sum, ValueId right_sum) {
    return b.map(ScalarOp::add, left_sum, right_sum);
  });
  return b.map(ScalarOp::add, b.identity(ScalarOp::add, b.dtype(sum)), sum);
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
  rewrite_all(program, context,
              [](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
                if (op.kind != ir::OpKind::matmul) return std::nullopt;
                const ValueId left = op.operands[0], right = op.operands[1];
                const auto num_terms = ir::constant_size(b.exprs(), b.type(left).dims[1]);
                const auto num_columns = ir::constant_size(b.exprs(), b.type(right).dims[1]);
                if (num_terms) {
                  // Square factors are transforms of rows on chip.
                  const bool is_thin =
                      *num_terms >= 1 && *num_terms <= kMostTerms && num_terms != num_columns;
                  if (!is_thin) return std::nullopt;
                  return ir::ValueIds{sum_of_terms(b, left, right, *num_terms)};
                }
                if (!num_columns || *num_columns < 1 || *num_columns > kMostColumns)
                  return std::nullopt;
                return ir::ValueIds{product_by_columns(b, left, right, *num_columns)};
              });
}

}  // namespace cinch::passes
