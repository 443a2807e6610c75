// fold_constant_arrays: array ops on constant tables become tables, by running them once.
//
//   before:  %1: [f32; 4] = const_array {index=0}      after:  %2: f32 = const_scalar {value=10}
//            %2: f32 = reduce %1, %0 {combiner=add}
#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/scalar_eval.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rewrite_region.h"

namespace cinch::passes {
namespace {

using ir::OpKind;

// A table beyond this is better computed where it is used than read from memory.
constexpr std::int64_t kMaxElems = 4096;

bool is_leaf(OpKind kind) {
  return kind == OpKind::const_scalar || kind == OpKind::const_array;
}

bool is_foldable(const ir::Op& op) {
  const bool is_array_op = op.kind >= OpKind::map && op.kind <= OpKind::hadamard;
  return is_array_op && op.results.size() == 1 && !ir::is_draw(op.kind);
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

class Fold {
 public:
  Fold(ir::Builder& builder, ir::Op op) : b_(builder), op_(std::move(op)) {}

  // At least one table among operands that are all constants, and a result of constant size.
  bool is_possible() {
    if (!is_foldable(op_) || !is_small_constant(b_.exprs(), b_.type(op_.results[0]))) return false;
    const bool reads_size = ir::uses_attr(op_.kind, ir::AttrUse::Size);
    if (reads_size && !ir::constant_size(b_.exprs(), op_.attrs.size)) return false;
    bool has_table = false;
    for (ir::ValueId operand : op_.operands) {
      if (!is_constant(operand)) return false;
      has_table |= ir::defining_op(b_.function(), operand).kind == OpKind::const_array;
    }
    return has_table && is_combiner_closed();
  }

  // A function of its own that computes the result.
  ir::Function function() {
    ir::Function copy = b_.function();
    const ir::RegionId body(copy.regions.size());
    copy.regions.emplace_back();
    ir::ValueMap map;
    for (ir::ValueId operand : op_.operands) copy_operand(copy, operand, body, map);
    const ir::OpId op =
        ir::clone_op(copy, b_.function().values[op_.results[0].index()].def, body, map);
    const ir::OpId yield(copy.ops.size());
    copy.ops.push_back({OpKind::yield, {}, {}, {}, {}, {}});
    copy.regions[body.index()].ops.push_back(yield);
    copy.body = body;
    copy.results = {copy.ops[op.index()].results[0], {}, {}, {}};
    return copy;
  }

  ir::ValueId constant(const std::vector<std::uint64_t>& elements) {
    const ir::Type type = b_.type(op_.results[0]);
    ir::Table table{type, {}};
    for (std::uint64_t x : elements) table.bits.push_back(ir::constant_of_element(type.dtype, x));
    return ir::is_scalar(type) ? b_.constant_bits(type.dtype, table.bits[0])
                               : b_.const_array(table);
  }

 private:
  bool is_constant(ir::ValueId value) {
    const ir::Op& def = ir::defining_op(b_.function(), value);
    if (!is_small_constant(b_.exprs(), b_.type(value))) return false;
    if (def.kind == OpKind::fill) {
      return is_leaf(ir::defining_op(b_.function(), def.operands[0]).kind);
    }
    return is_leaf(def.kind) || def.kind == OpKind::iota;
  }

  // A combiner that reads values around it is not a constant.
  bool is_combiner_closed() {
    if (!ir::uses_attr(op_.kind, ir::AttrUse::Combiner)) return true;
    return b_.function().combiners[op_.attrs.combiner.index()].op.has_value();
  }

  static void copy_operand(ir::Function& copy, ir::ValueId value, ir::RegionId body,
                           ir::ValueMap& map) {
    if (map.contains(value)) return;
    const ir::OpId def = copy.values[value.index()].def;
    const ir::ValueIds operands = copy.ops[def.index()].operands;
    for (ir::ValueId operand : operands) copy_operand(copy, operand, body, map);
    ir::clone_op(copy, def, body, map);
  }

  ir::Builder& b_;
  const ir::Op op_;
};

}  // namespace

void fold_constant_arrays(ir::Program& program, PassContext& context) {
  rewrite_all(program, context, [&](ir::Builder& b, ir::OpId id) -> std::optional<ir::ValueIds> {
    Fold fold(b, b.function().ops[id.index()]);
    if (!fold.is_possible()) return std::nullopt;
    const auto elements = context.evaluate(b.program(), fold.function());
    if (elements) return ir::ValueIds{fold.constant(*elements)};
    context.remark(b.span(), "constant arrays are not evaluated here");
    return std::nullopt;
  });
}

}  // namespace cinch::passes
