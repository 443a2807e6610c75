// Types, shapes and attributes: selection, stores, matrices, checks and collectives; and types
// across regions.

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/verifier.h"

namespace cinch::ir {
namespace {

class RegionRules {
 public:
  RegionRules(const VerifyContext& context, const Op& op) : c_(context), op_(op) {}

  void control() const {
    if (op_.kind == OpKind::if_else) return if_else();
    require(op_.operands.size() == op_.results.size(), "not one result for each carried value");
    require_types(op_.results, op_.operands, "the results");
    if (op_.kind == OpKind::for_loop) return for_loop();
    while_loop();
  }

  void combiner() const {
    const std::size_t n = num_reduced_values(op_);
    const std::size_t total = op_.operands.size();
    require(n >= 1 && (total == 2 * n || (op_.kind == OpKind::reduce && total == 2 * n + 1)),
            "the operands are not N values and N inits");
    require(op_.results.size() == n, "not one result for each value");
    const Type& shape = type(op_.operands[0]);
    require(shape.rank >= 1, "the values are scalars");
    require(op_.attrs.axis < shape.rank, "the values have no such axis");
    for (std::size_t i = 0; i < n; ++i) reduced_value(i, shape);
    if (has_mask(op_)) {
      require(types_agree(c_.info, type(op_.operands.back()), with_dtype(shape, kBool)),
              "the mask has not the values' shape");
    }
    const Combiner& combiner = c_.function.combiners[op_.attrs.combiner.index()];
    combiner.op ? combiner_op(*combiner.op, n) : combiner_region(combiner.region, n);
  }

 private:
  void require(bool holds, const std::string& message) const {
    if (!holds) throw VerifyFault{op_title(op_) + ": " + message};
  }
  const Type& type(ValueId value) const { return c_.type(value); }
  const Region& region(std::size_t i) const { return c_.function.regions[op_.regions[i].index()]; }
  const std::vector<ValueId>& yielded(const Region& region) const {
    return c_.function.ops[region.ops.back().index()].operands;
  }

  void require_types(const std::vector<ValueId>& found, const std::vector<ValueId>& expected,
                     const char* what) const {
    require(found.size() == expected.size(), fmt::format("{}: wrong number", what));
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (types_agree(c_.info, type(found[i]), type(expected[i]))) continue;
      require(false,
              fmt::format("{}: {} is not {}", what, c_.text(found[i]), c_.text(expected[i])));
    }
  }

  void if_else() const {
    const Type& condition = type(op_.operands[0]);
    require(is_scalar(condition) && is_bool(condition.dtype), "the condition is not a bool scalar");
    for (std::size_t i = 0; i < 2; ++i) {
      require(region(i).args.empty(), "a branch has args");
      require_types(yielded(region(i)), op_.results, "what a branch yields");
    }
  }

  void for_loop() const {
    std::vector<ValueId> args = region(0).args;
    require(!args.empty() && is_scalar(type(args[0])) && type(args[0]).dtype == kI64,
            "the first arg is not the i64 loop variable");
    args.erase(args.begin());
    require_types(args, op_.operands, "the body's args");
    require_types(yielded(region(0)), op_.operands, "what the body yields");
  }

  void while_loop() const {
    require_types(region(0).args, op_.operands, "the condition's args");
    require_types(region(1).args, op_.operands, "the body's args");
    const auto& condition = yielded(region(0));
    require(
        condition.size() == 1 && is_scalar(type(condition[0])) && is_bool(type(condition[0]).dtype),
        "the condition does not yield a bool scalar");
    require_types(yielded(region(1)), op_.operands, "what the body yields");
  }

  void reduced_value(std::size_t i, const Type& shape) const {
    const std::size_t n = op_.results.size();
    const Type& value = type(op_.operands[i]);
    require(shapes_agree(c_.info, value, shape), "the values differ in shape");
    require(types_agree(c_.info, type(op_.operands[n + i]), scalar_type(value.dtype)),
            "an init is not a scalar of its value's type");
    Type expected = value;
    if (op_.kind == OpKind::reduce) {
      if (op_.attrs.axis == kAll)
        expected = scalar_type(value.dtype);
      else
        expected.dims[op_.attrs.axis] = c_.info.exprs->const_int(1);
    }
    if (types_agree(c_.info, type(op_.results[i]), expected)) return;
    require(false, fmt::format("the result is {}, not {}", c_.text(op_.results[i]),
                               print_type(c_.info, expected)));
  }

  void combiner_op(ScalarOp op, std::size_t n) const {
    using enum ScalarOp;
    const bool is_known = op == add || op == mul || op == min || op == max || op == bit_and ||
                          op == bit_or || op == bit_xor;
    require(is_known, "an operation that is not associative and commutative");
    require(n == 1, "one operation joins one value");
    const DType t = type(op_.operands[0]).dtype;
    const bool is_bitwise = op == bit_and || op == bit_or || op == bit_xor;
    require(is_bitwise ? !is_float(t) : !is_bool(t) && !is_narrow_float(t),
            "the operation does not take " + dtype_name(t));
  }

  void combiner_region(RegionId id, std::size_t n) const {
    const Region& held = c_.function.regions[id.index()];
    require(held.args.size() == 2 * n, "the combiner has not two args for each value");
    const auto& results = yielded(held);
    require(results.size() == n, "the combiner does not yield one scalar for each value");
    for (std::size_t i = 0; i < n; ++i) {
      const Type expected = scalar_type(type(op_.operands[i]).dtype);
      for (ValueId value : {held.args[i], held.args[n + i], results[i]}) {
        require(types_agree(c_.info, type(value), expected),
                "args and results of the combiner are not scalars of the values' types");
      }
    }
    walk(c_.function, id,
         [&](OpId inner, RegionId) { combiner_inner(c_.function.ops[inner.index()]); });
  }

  void combiner_inner(const Op& inner) const {
    require(op_info(inner.kind).effect != Effect::Check, "a check inside a combiner");
    require(!is_draw(inner.kind) && !is_collective(inner.kind),
            "a draw or collective inside a combiner");
    for (ValueId value : inner.results)
      require(is_scalar(type(value)), "an array inside a combiner");
  }

  const VerifyContext& c_;
  const Op& op_;
};

}  // namespace

void verify_control_types(const VerifyContext& context, const Op& op) {
  RegionRules(context, op).control();
}

void verify_combiner(const VerifyContext& context, const Op& op) {
  RegionRules(context, op).combiner();
}

}  // namespace cinch::ir

namespace cinch::ir::rules {
// Types, shapes and attributes: selection, stores, matrices, checks and collectives.

namespace {

void require_float(const OpCheck& o, const Type& type) {
  o.require(type.dtype == kF32 || type.dtype == kF64, "the elements are not f32 or f64");
}

void require_sync(const OpCheck& o) {
  o.require(o.context.function.kind == FunctionKind::Sync && !o.context.is_init,
            "stands outside sync");
}

void require_joins(const OpCheck& o) {
  require_sync(o);
  const auto op = o.context.function.combiners[o.op.attrs.combiner.index()].op;
  o.require(op == ScalarOp::add || op == ScalarOp::min || op == ScalarOp::max,
            "joins by add, min or max only");
}

void require_by_rank(const OpCheck& o, const Type& type) {
  o.require_rank(type, 2, "the array by rank");
  o.require(sizes_agree(o.context.info, type.dims[0], o.exprs().world()),
            "the rows are not one for each rank");
}

void require_number(const OpCheck& o, std::size_t operand, const char* what) {
  o.require_type(o.in(operand), scalar_type(kU32), what);
}

// Whether the elements fit the result is checked when the ranks meet.
void require_counted(const OpCheck& o) {
  require_sync(o);
  o.require_rank(o.in(0), 1, "the operand");
  o.require_rank(o.out(), 1, "the result");
  o.require(o.out().dtype == o.in(0).dtype, "the result has another element type");
  o.require(!o.exprs().has_count(o.out().dims[0]),
            "the result's length is not known before launch");
  o.require_type(o.out(1), scalar_type(kU32), "the number of elements");
}

}  // namespace

// Selection.

void nonzero(const OpCheck& o) {
  o.require_limit(o.context.info.counts.size(), "count");
  o.require_rank(o.in(0), 1, "the mask");
  o.require(is_bool(o.in(0).dtype), "the mask is not bool");
  const HostExprId size =
      o.exprs().count(o.op.attrs.index, o.context.info.counts[o.op.attrs.index].bound);
  o.require_out(vector_type(kU32, size));
  o.require_type(o.out(1), scalar_type(kU32), "the count");
}

void top_k(const OpCheck& o) {
  o.require_line(o.in(0));
  o.require(o.op.attrs.axis != 0, "not along columns");
  o.require_out(o.in(0).rank == 1 ? vector_type(kU32, o.op.attrs.size)
                                  : matrix_type(kU32, o.in(0).dims[0], o.op.attrs.size));
}

void kth_largest(const OpCheck& o) {
  o.require_line(o.in(0));
  o.require(o.op.attrs.axis != 0, "not along columns");
  o.require_out(o.in(0).rank == 1
                    ? scalar_type(o.in(0).dtype)
                    : matrix_type(o.in(0).dtype, o.in(0).dims[0], o.exprs().const_int(1)));
}

void argsort(const OpCheck& o) {
  o.require_line(o.in(0));
  o.require_out(with_dtype(o.in(0), kU32));
}

// Stores.

void scatter(const OpCheck& o) {
  const Type &base = o.in(0), &index = o.in(1), &values = o.in(2);
  o.require_index(index);
  o.require(base.rank >= 1 && index.rank <= 1, "ranks do not go together");
  Type expected = scalar_type(base.dtype);
  if (index.rank == 1) expected.dims[expected.rank++] = index.dims[0];
  if (base.rank == 2) expected.dims[expected.rank++] = base.dims[1];
  o.require_type(values, expected, "the values");
  o.require_out(base);
}

void scatter_add(const OpCheck& o) {
  o.require_index(o.in(0));
  o.require_rank(o.in(0), 1, "the indices");
  o.require_type(o.in(1), with_dtype(o.in(0), o.in(1).dtype), "the values");
  o.require_rank(o.out(), 1, "the result");
  o.require(o.out().dtype == o.in(1).dtype, "the element types differ");
}

void scatter_reduce(const OpCheck& o) {
  const ScalarOp op = o.op.attrs.scalar_op;
  o.require(op == ScalarOp::min || op == ScalarOp::max, "joins by neither min nor max");
  o.require(!is_bool(o.in(1).dtype) && !is_narrow_float(o.in(1).dtype),
            "takes numbers of full width");
  scatter_add(o);
}

void histogram(const OpCheck& o) {
  o.require(o.in(0).dtype == kU32, "the values are not u32");
  if (o.num_in() > 1) o.require_type(o.in(1), with_dtype(o.in(0), kBool), "the mask");
  o.require_rank(o.out(), 1, "the result");
  o.require(o.out().dtype == kU32, "the result is not u32");
}

// Matrix.

void matmul(const OpCheck& o) {
  const DType dtype = o.in(0).dtype;
  o.require(is_float(dtype) ? !is_narrow_float(dtype) : is_int(dtype) && dtype.bits >= 32,
            "arithmetic is not done in the elements' type");
  o.require_rank(o.in(0), 2, "the left operand");
  o.require_rank(o.in(1), 2, "the right operand");
  o.require(o.in(0).dtype == o.in(1).dtype, "the element types differ");
  o.require(sizes_agree(o.context.info, o.in(0).dims[1], o.in(1).dims[0]),
            "the inner sizes differ");
  o.require_out(matrix_type(o.in(0).dtype, o.in(0).dims[0], o.in(1).dims[1]));
}

void orthonormalize(const OpCheck& o) {
  require_float(o, o.in(0));
  o.require_rank(o.in(0), 2, "the operand");
  o.require_out(o.in(0));
}

void hadamard(const OpCheck& o) {
  butterflies(o);
}

void butterflies(const OpCheck& o) {
  orthonormalize(o);
  const auto width = constant_size(o.exprs(), o.in(0).dims[1]);
  o.require(!width || (*width > 0 && (*width & (*width - 1)) == 0),
            "the row length is not a power of two");
}

void mark_largest(const OpCheck& o) {
  o.require(o.in(0).dtype == kU32, "the keys are not u32");
  o.require_rank(o.in(0), 2, "the keys");
  o.require(is_scalar(o.in(1)) && o.in(1).dtype == kU32, "the number is not a u32 scalar");
  o.require_out(o.in(0));
  const auto width = constant_size(o.exprs(), o.in(0).dims[1]);
  o.require(width && *width > 0 && *width <= kMostMarkedColumns,
            "rows of no constant length up to a tile");
}

void list_marked(const OpCheck& o) {
  o.require(o.in(0).dtype == kU32, "the marks are not u32");
  o.require_rank(o.in(0), 2, "the marks");
  o.require_out(matrix_type(kU32, o.in(0).dims[0], o.op.attrs.size));
}

// Checks.

void check(const OpCheck& o) {
  o.require(is_scalar(o.in(0)) && is_bool(o.in(0).dtype), "the condition is not a bool scalar");
}

void check_index(const OpCheck& o) {
  o.require_index(o.in(0));
}

void check_unique(const OpCheck& o) {
  o.require_index(o.in(0));
}

void check_host(const OpCheck& o) {
  o.require(o.exprs().type(o.op.attrs.size) == HostType::Bool, "the condition is not bool");
}

// Control.

void if_else(const OpCheck& o) {
  verify_control_types(o.context, o.op);
}

void for_loop(const OpCheck& o) {
  verify_control_types(o.context, o.op);
}

void while_loop(const OpCheck& o) {
  verify_control_types(o.context, o.op);
}

void yield(const OpCheck& /*o*/) {}

// Collectives.

void all_reduce(const OpCheck& o) {
  require_joins(o);
  o.require_out(o.in(0));
}

void all_gather(const OpCheck& o) {
  require_sync(o);
  o.require_rank(o.in(0), 1, "the operand");
  o.require_out(matrix_type(o.in(0).dtype, o.exprs().world(), o.in(0).dims[0]));
}

void all_to_all(const OpCheck& o) {
  require_sync(o);
  if (o.op.attrs.size.is_valid()) {
    o.require_rank(o.in(0), 2, "the array by rank");
    o.require(sizes_agree(o.context.info, o.in(0).dims[0], o.op.attrs.size),
              "the rows are not one for each rank of a group");
  } else {
    require_by_rank(o, o.in(0));
  }
  o.require_out(o.in(0));
}

void reduce_scatter(const OpCheck& o) {
  require_joins(o);
  require_by_rank(o, o.in(0));
  o.require_out(vector_type(o.in(0).dtype, o.in(0).dims[1]));
}

void broadcast(const OpCheck& o) {
  require_sync(o);
  o.require_out(o.in(0));
}

void broadcast_from(const OpCheck& o) {
  require_sync(o);
  require_number(o, 1, "the root");
  o.require_out(o.in(0));
}

void send_receive(const OpCheck& o) {
  require_sync(o);
  require_number(o, 1, "the receiver");
  o.require_out(o.in(0));
}

void all_gather_counted(const OpCheck& o) {
  require_counted(o);
  require_number(o, 1, "the length");
}

void send_receive_counted(const OpCheck& o) {
  require_counted(o);
  require_number(o, 1, "the receiver");
  require_number(o, 2, "the length");
}

}  // namespace cinch::ir::rules
