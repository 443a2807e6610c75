// fold_constant_arrays: runs array ops on constants once and makes tables of the results: ops on
// tables, and ops that cost more than reading the table.
//
//   before:  %1: [f32; 4] = const_array {index=0}      after:  %2: f32 = const_scalar {value=10}
//            %2: f32 = reduce %1, %0 {combiner=add}
//
//   before:  %1: [u32; 64] = iota                      after:  %3: [f32; 64] = const_array
//   {index=0}
//            %2: [f32; 64] = convert %1
//            %3: [f32; 64] = map.cos %2
#include <algorithm>
#include <unordered_map>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/passes/passes.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::passes {
namespace {

using ir::OpKind;

// Larger tables are better recomputed than read from memory.
constexpr std::int64_t kMaxElems = 4096;

bool is_foldable(const ir::Op& op) {
  const bool is_array_op = op.kind >= OpKind::map && op.kind <= OpKind::hadamard;
  // A C++ function would have to be compiled first.
  const bool is_cpp = op.kind == OpKind::call_extern;
  return is_array_op && op.results.size() == 1 && !ir::is_draw(op.kind) && !is_cpp;
}

// Cheap functions of an index, which are left where they are used.
bool is_pulled(OpKind kind) {
  switch (kind) {
    case OpKind::map:
    case OpKind::convert:
    case OpKind::bitcast:
    case OpKind::reshape:
    case OpKind::transpose:
      return true;
    default:
      return false;
  }
}

// Arithmetic that takes longer than reading its result.
bool is_costly(const ir::Op& op) {
  if (op.kind != OpKind::map) return op.kind == OpKind::reduce || op.kind == OpKind::scan;
  switch (op.attrs.scalar_op) {
    case ScalarOp::exp:
    case ScalarOp::exp2:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::log2:
    case ScalarOp::tanh:
    case ScalarOp::pow:
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
      return true;
    default:
      return false;
  }
}

bool is_small_constant(const HostExprPool& exprs, const ir::Type& type) {
  std::int64_t count = 1;
  for (int d = 0; d < type.rank; ++d) {
    const auto size = ir::constant_size(exprs, type.dims[d]);
    if (!size || *size > kMaxElems) return false;
    count *= *size;
  }
  return count <= kMaxElems;
}

// For values of one function: how many consecutive ops compute the constant; nothing if the value
// is not constant. Ops are visited in order, so operands are mostly known already.
using KnownConstants = std::unordered_map<ir::ValueId, std::optional<int>>;
// Each fold runs all ops behind its operands, so longer chains become tables in between.
constexpr int kLongestChain = 32;

// Copies an op and everything behind it into a function of its own. None of the ops holds a region.
class Extraction {
 public:
  explicit Extraction(const ir::Function& from) : from_(from), to_(ir::make_function(from.kind)) {}

  ir::Function of(ir::ValueId value) {
    copy(value);
    append({ir::OpKind::yield, {}, {}, {}, {}, {}});
    to_.results.output = values_.at(value);
    return std::move(to_);
  }

 private:
  // Operands first, without recursion: chains may be longer than the stack is deep.
  void copy(ir::ValueId value) {
    std::vector<ir::ValueId> open{value};
    while (!open.empty()) {
      const ir::Op& op = ir::defining_op(from_, open.back());
      const auto missing = std::ranges::find_if(
          op.operands, [&](ir::ValueId operand) { return !values_.contains(operand); });
      if (missing != op.operands.end()) {
        open.push_back(*missing);
        continue;
      }
      open.pop_back();
      if (!values_.contains(op.results[0])) copy_op(op);
    }
  }

  void copy_op(const ir::Op& source) {
    ir::Op op = source;
    for (ir::ValueId& operand : op.operands) operand = values_.at(operand);
    if (ir::uses_attr(op.kind, ir::AttrUse::Combiner)) {
      to_.combiners.push_back(from_.combiners[op.attrs.combiner.index()]);
      op.attrs.combiner = ir::CombinerId(to_.combiners.size() - 1);
    }
    op.results = {ir::ValueId(to_.values.size())};
    to_.values.push_back(from_.values[source.results[0].index()]);
    to_.values.back().def = ir::OpId(to_.ops.size());
    values_[source.results[0]] = op.results[0];
    append(std::move(op));
  }

  void append(ir::Op op) {
    to_.regions[to_.body.index()].ops.emplace_back(to_.ops.size());
    to_.ops.push_back(std::move(op));
  }

  const ir::Function& from_;
  ir::Function to_;
  ir::ValueMap values_;
};

class Fold {
 public:
  Fold(ir::Builder& builder, const ir::Op& op, KnownConstants& known)
      : b_(builder), op_(op), known_(known) {}

  // Are all operands constants, with a table or a costly op among them, and is the result of
  // constant size?
  bool is_possible() {
    if (!is_foldable(op_) || !is_small_constant(b_.exprs(), b_.type(op_.results[0]))) return false;
    const bool reads_size = ir::uses_attr(op_.kind, ir::AttrUse::Size);
    if (reads_size && !ir::constant_size(b_.exprs(), op_.attrs.size)) return false;
    bool is_worth_it = is_costly(op_) && b_.type(op_.operands[0]).rank > 0;
    for (ir::ValueId operand : op_.operands) {
      const std::optional<int> length = chain_of(operand);
      if (!length) return false;
      is_worth_it |= ir::defining_op(b_.function(), operand).kind == OpKind::const_array;
      is_worth_it |= *length >= kLongestChain;
    }
    if (!ir::uses_attr(op_.kind, ir::AttrUse::Combiner)) return is_worth_it;
    // A combiner that reads outside values is not constant.
    return is_worth_it && b_.function().combiners[op_.attrs.combiner.index()].op.has_value();
  }

  // A function of its own that computes the result.
  ir::Function function() const { return Extraction(b_.function()).of(op_.results[0]); }

  ir::ValueId constant(const std::vector<std::uint64_t>& elements) {
    const ir::Type type = b_.type(op_.results[0]);
    ir::Table table{type, {}};
    for (std::uint64_t x : elements) table.bits.push_back(constant_of_element(type.dtype, x));
    return ir::is_scalar(type) ? b_.constant_bits(type.dtype, table.bits[0])
                               : b_.const_array(table);
  }

 private:
  std::optional<int> chain_of(ir::ValueId value) {
    const auto at = known_.find(value);
    if (at != known_.end()) return at->second;
    return known_[value] = find_chain(value);
  }

  std::optional<int> find_chain(ir::ValueId value) {
    const ir::Op& def = ir::defining_op(b_.function(), value);
    if (!is_small_constant(b_.exprs(), b_.type(value))) return std::nullopt;
    const bool is_leaf = def.kind == OpKind::const_scalar || def.kind == OpKind::const_array;
    if (is_leaf || def.kind == OpKind::iota) return 0;
    if (!is_pulled(def.kind) && def.kind != OpKind::fill) return std::nullopt;
    int longest = 0;
    for (ir::ValueId operand : def.operands) {
      const std::optional<int> length = chain_of(operand);
      if (!length) return std::nullopt;
      longest = std::max(longest, *length);
    }
    return longest + 1;
  }

  ir::Builder& b_;
  const ir::Op& op_;
  KnownConstants& known_;
};

}  // namespace

void fold_constant_arrays(ir::Program& program, PassContext& context) {
  std::unordered_map<const ir::Function*, KnownConstants> known;
  rewrite_all(program, context,
              [&](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
                Fold fold(b, op, known[&b.function()]);
                if (!fold.is_possible()) return std::nullopt;
                const auto elements = context.evaluate(b.program(), fold.function());
                if (elements) return ir::ValueIds{fold.constant(*elements)};
                context.remark(b.span(), "constant arrays are not evaluated here");
                return std::nullopt;
              });
}

}  // namespace cinch::passes
