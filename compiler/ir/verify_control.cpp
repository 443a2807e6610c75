// Types across regions: control flow, and combiners of reductions and scans.
#include <fmt/format.h>

#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/ir/verify_context.h"

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
        expected.dims[op_.attrs.axis] = c_.info.exprs.const_int(1);
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
