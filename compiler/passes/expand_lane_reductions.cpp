// expand_lane_reductions: turns a reduction over a small table for each element, computed from
// scalars of the element and of the table, into operations on whole arrays that registers hold.
//
//   before:  %m = map lt %table, %x     %table [1, K], %x [L, 1]; K a small constant
//            %1 = reduce add (convert %m), axis 1
//   after:   %1 = convert(%t0 < %x) + convert(%t1 < %x) + …, in the order of a reduction of K
//            elements (docs/language_bits.md)
#include <algorithm>
#include <map>
#include <utility>

#include "compiler/ir/types.h"
#include "compiler/passes/passes.h"
#include "runtime/core/mapped.h"

namespace cinch::passes {
namespace {

using ir::OpKind;
using ir::ValueId;
using ir::ValueIds;

// More entries would make long texts that compile slowly.
constexpr std::int64_t kMostEntries = 64;
constexpr std::size_t kMostLaneOperations = 1024;

const ir::Op& def_of(ir::Builder& b, ValueId value) {
  const ir::Function& function = b.function();
  return function.ops[function.values[value.index()].def.index()];
}

bool is_one(ir::Builder& b, HostExprId size) {
  return ir::constant_size(b.exprs(), size) == 1;
}

// The columns of a narrow matrix, each as a scalar or as a vector of one element per row.
class Columns {
 public:
  explicit Columns(ir::Builder& builder) : b_(builder) {}

  // Only tests; changes nothing. A matrix in memory is read from there.
  bool are_made_of_scalars(ValueId value) {
    const ir::Type type = b_.type(value);
    if (type.rank == 0 || known_.contains(value)) return true;
    if (type.rank == 1) return false;
    const ir::Op& op = def_of(b_, value);
    bool is_good = false;
    switch (op.kind) {
      case OpKind::reshape:
        is_good = is_column(value) || is_row(value);
        break;
      case OpKind::const_array:
        is_good = is_one(b_, type.dims[0]);
        break;
      case OpKind::fill:
      case OpKind::map:
      case OpKind::convert:
      case OpKind::bitcast:
        is_good = std::ranges::all_of(
            ValueIds(op.operands), [&](ValueId operand) { return are_made_of_scalars(operand); });
        ++num_operations_;
        break;
      default:
        break;
    }
    if (is_good) known_.insert({value, {}});
    return is_good;
  }
  std::size_t num_operations() const { return num_operations_; }

  ValueId column(ValueId value, std::int64_t j) {
    if (b_.type(value).rank == 0) return value;
    if (is_column(value)) return def_of(b_, value).operands[0];
    auto& made = known_.at(value);
    if (const auto at = made.find(j); at != made.end()) return at->second;
    const ValueId result = make(value, j);
    known_.at(value)[j] = result;
    return result;
  }

 private:
  // [L] as [L, 1].
  bool is_column(ValueId value) {
    const ir::Op& op = def_of(b_, value);
    return op.kind == OpKind::reshape && b_.type(op.operands[0]).rank == 1 &&
           is_one(b_, b_.type(value).dims[1]);
  }
  // [K] as [1, K].
  bool is_row(ValueId value) {
    const ir::Op& op = def_of(b_, value);
    return b_.type(op.operands[0]).rank == 1 && is_one(b_, b_.type(value).dims[0]);
  }

  ValueId make(ValueId value, std::int64_t j) {
    const ir::Op op = def_of(b_, value);
    if (op.kind == OpKind::reshape) return element(op.operands[0], j);
    if (op.kind == OpKind::const_array) return element(value, j);
    const bool is_single = is_one(b_, b_.type(value).dims[1]);
    auto operands = mapped<ValueId>(
        op.operands, [&](const ValueId operand) { return column(operand, is_single ? 0 : j); });
    const DType dtype = b_.dtype(value);
    switch (op.kind) {
      case OpKind::map:
        return b_.map(op.attrs.scalar_op, std::move(operands));
      case OpKind::convert:
        return b_.convert(operands[0], dtype);
      case OpKind::bitcast:
        return b_.bitcast(operands[0], dtype);
      default:
        return operands[0];
    }
  }

  ValueId element(ValueId row, std::int64_t j) {
    const ir::Op& op = def_of(b_, row);
    if (op.kind == OpKind::const_array) {
      const ir::Table& table = b_.program().tables[op.attrs.index];
      return b_.constant_bits(table.type.dtype, table.bits[static_cast<std::size_t>(j)]);
    }
    if (op.kind == OpKind::iota) return b_.constant_int(kU32, j);
    return b_.gather(row, b_.constant_int(kU32, j));
  }

  ir::Builder& b_;
  std::map<ValueId, std::map<std::int64_t, ValueId>> known_;
  std::size_t num_operations_ = 0;
};

// A combiner on whole arrays instead of scalars.
class Combine {
 public:
  Combine(ir::Builder& builder, const ir::Combiner& combiner) : b_(builder), combiner_(combiner) {}

  bool is_plain() const {
    if (combiner_.op) return true;
    const ir::Function& function = b_.function();
    return std::ranges::all_of(function.regions[combiner_.region.index()].ops, [&](ir::OpId id) {
      const OpKind kind = function.ops[id.index()].kind;
      return kind == OpKind::map || kind == OpKind::convert || kind == OpKind::const_scalar ||
             kind == OpKind::arg || kind == OpKind::yield;
    });
  }

  ValueIds operator()(const ValueIds& a, const ValueIds& b) {
    if (combiner_.op) return {b_.map(*combiner_.op, a[0], b[0])};
    const ir::Region region = b_.function().regions[combiner_.region.index()];
    std::map<ValueId, ValueId> made;
    for (std::size_t i = 0; i < region.args.size(); ++i) {
      made[region.args[i]] = i < a.size() ? a[i] : b[i - a.size()];
    }
    for (const ir::OpId id : region.ops) {
      const ir::Op op = b_.function().ops[id.index()];
      ValueIds operands;
      for (const ValueId operand : op.operands) {
        const auto at = made.find(operand);
        operands.push_back(at == made.end() ? operand : at->second);
      }
      if (op.kind == OpKind::yield) return operands;
      if (op.kind == OpKind::arg) continue;
      made[op.results[0]] = copy(op, std::move(operands));
    }
    return {};
  }

 private:
  ValueId copy(const ir::Op& op, ValueIds operands) {
    const DType dtype = b_.dtype(op.results[0]);
    if (op.kind == OpKind::map) return b_.map(op.attrs.scalar_op, std::move(operands));
    if (op.kind == OpKind::convert) return b_.convert(operands[0], dtype);
    return b_.constant_bits(dtype, op.attrs.bits);
  }

  ir::Builder& b_;
  ir::Combiner combiner_;
};

std::optional<ValueIds> expanded(ir::Builder& b, const ir::Op& op) {
  const std::size_t num_values = op.results.size();
  const bool is_masked = op.operands.size() != 2 * num_values;
  if (op.kind != OpKind::reduce || op.attrs.axis != 1 || is_masked) return std::nullopt;
  const ir::Type type = b.type(op.operands[0]);
  const auto num_columns = ir::constant_size(b.exprs(), type.dims[1]);
  if (!num_columns || *num_columns < 2 || *num_columns > kMostEntries) return std::nullopt;
  Columns columns(b);
  for (std::size_t i = 0; i < num_values; ++i) {
    if (!columns.are_made_of_scalars(op.operands[i])) return std::nullopt;
  }
  Combine combine(b, b.function().combiners[op.attrs.combiner.index()]);
  const std::size_t cost = (columns.num_operations() + 1) * static_cast<std::size_t>(*num_columns);
  if (!combine.is_plain() || cost > kMostLaneOperations) return std::nullopt;
  std::vector<ValueIds> made(static_cast<std::size_t>(*num_columns));
  for (std::size_t j = 0; j < made.size(); ++j) {
    for (std::size_t i = 0; i < num_values; ++i) {
      made[j].push_back(columns.column(op.operands[i], static_cast<std::int64_t>(j)));
    }
  }
  const ValueIds inits(op.operands.begin() + static_cast<std::ptrdiff_t>(num_values),
                       op.operands.end());
  ValueIds results = combine(inits, joined_in_order(std::move(made), combine));
  for (std::size_t i = 0; i < num_values; ++i) {
    const ir::Type wanted = b.type(op.results[i]);
    const ValueId result = results[i];
    results[i] = b.type(result).rank == 0 ? b.fill(result, wanted) : b.reshape(result, wanted);
  }
  return results;
}

}  // namespace

void expand_lane_reductions(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, expanded);
}

}  // namespace cinch::passes
