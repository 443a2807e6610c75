// One forward walk. Loops are walked until the facts about carried values no longer change.
#include "compiler/analysis/proofs.h"

#include <algorithm>
#include <bit>

#include "compiler/analysis/rank_sums.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "runtime/core/mapped.h"
#include "runtime/core/numbers/number_range.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::analysis {
namespace {

using ir::Op;
using ir::OpKind;

constexpr Dependence kConstant{true, false};
constexpr Dependence kLinear{false, true};
constexpr Dependence kZero{true, true};
constexpr Dependence kOther{false, false};

Dependence both(Dependence a, Dependence b) {
  return {a.is_constant && b.is_constant, a.is_linear && b.is_linear};
}

// A product is linear if one side is constant and the other linear.
Dependence product(Dependence a, Dependence b) {
  const bool is_linear = (a.is_linear && b.is_constant) || (a.is_constant && b.is_linear);
  return {a.is_constant && b.is_constant, is_linear};
}

// Linear values that something constant picks, moves or repeats.
Dependence chosen(Dependence by, Dependence value) {
  return {by.is_constant && value.is_constant, by.is_constant && value.is_linear};
}

class Walk {
 public:
  /// `permits_narrow`: a narrow float is taken to hold every value.
  Walk(const ir::Program& program, const ir::Function& function, bool permits_narrow = false)
      : program_(program),
        function_(function),
        permits_narrow_(permits_narrow),
        known_(function.values.size()) {}

  std::vector<Dependence> run() {
    visit(function_.body);
    return std::move(known_);
  }

 private:
  Dependence of(ir::ValueId value) const { return known_[value.index()]; }
  Dependence in(const Op& op, std::size_t i) const { return of(op.operands[i]); }
  DType dtype(ir::ValueId value) const { return function_.values[value.index()].type.dtype; }

  void visit(ir::RegionId region) {
    for (ir::OpId id : function_.regions[region.index()].ops) {
      const Op& op = function_.ops[id.index()];
      if (op.kind == OpKind::arg || op.kind == OpKind::yield) continue;
      if (ir::op_info(op.kind).effect == ir::Effect::Control) {
        visit_control(op);
        continue;
      }
      Dependence result = dependence(op);
      if (result.is_linear && may_wrap(op)) result = all_constant(op);
      for (ir::ValueId value : op.results) known_[value.index()] = result;
    }
  }

  // The default of every op: constant if all operands are.
  Dependence all_constant(const Op& op) const {
    const bool is_constant = std::all_of(op.operands.begin(), op.operands.end(),
                                         [&](ir::ValueId v) { return of(v).is_constant; });
    return {is_constant, false};
  }

  // A sum of integers that wraps is no longer linear when it is widened or becomes a float.
  bool may_wrap(const Op& op) const {
    const DType type = dtype(op.results[0]);
    if (!is_int(type) || !adds_or_multiplies(op)) return false;
    const std::optional<IntegerRange> range =
        find_integer_range(program_, function_, op.results[0]);
    if (!range) return true;
    // An integer that may wrap has the range of its type.
    const NumberRange all = all_numbers(type);
    return static_cast<double>(range->least) <= all.low &&
           static_cast<double>(range->greatest) >= all.high;
  }

  static bool adds_or_multiplies(const Op& op) {
    switch (op.kind) {
      case OpKind::reduce:
      case OpKind::scan:
      case OpKind::scatter_add:
      case OpKind::matmul:
        return true;
      case OpKind::map:
        return op.attrs.scalar_op == ScalarOp::neg || op.attrs.scalar_op == ScalarOp::add ||
               op.attrs.scalar_op == ScalarOp::sub || op.attrs.scalar_op == ScalarOp::mul ||
               op.attrs.scalar_op == ScalarOp::fma;
      default:
        return false;
    }
  }

  // A generator whose length is a count depends on the data.
  bool is_of_counted_size(const Op& op) const {
    const bool is_generator = op.kind >= OpKind::iota && op.kind <= OpKind::random_index;
    if (!is_generator) return op.kind == OpKind::count_value;
    const ir::Type& type = function_.values[op.results[0].index()].type;
    bool found = false;
    for (int d = 0; d < type.rank; ++d) found |= program_.info.exprs->has_count(type.dims[d]);
    return found;
  }

  Dependence dependence(const Op& op) const {
    if (is_of_counted_size(op)) return kOther;
    switch (op.kind) {
      case OpKind::const_scalar:
        return op.attrs.bits == 0 ? kZero : kConstant;
      case OpKind::gradient:
      case OpKind::field:
        return kLinear;
      case OpKind::state:
        // All ranks have the same inputs, and they are not part of the sum.
        return program_.info.states[op.attrs.index].is_input ? kConstant : kLinear;
      case OpKind::host_size:
        return host_size(op);
      case OpKind::map:
        return map(op);
      case OpKind::convert:
        return convert(op);
      case OpKind::fill:
      case OpKind::slice:
      case OpKind::reshape:
      case OpKind::transpose:
      case OpKind::chunk:
      case OpKind::unchunk:
      case OpKind::butterflies:
      case OpKind::hadamard:
        return in(op, 0);
      case OpKind::concat:
        return all_of(op);
      case OpKind::gather:
      case OpKind::gather_along:
        return chosen(in(op, 1), in(op, 0));
      case OpKind::scatter:
        return chosen(in(op, 1), both(in(op, 0), in(op, 2)));
      case OpKind::scatter_add:
        return chosen(in(op, 0), in(op, 1));
      case OpKind::reduce:
      case OpKind::scan:
        return reduction(op);
      case OpKind::matmul:
        return product(in(op, 0), in(op, 1));
      case OpKind::stochastic_round:
        return kOther;
      default:
        break;
    }
    if (ir::is_draw(op.kind) && !op.attrs.draw.shared) return kOther;  // differs between ranks
    if (ir::is_collective(op.kind)) return kOther;
    return all_constant(op);
  }

  Dependence all_of(const Op& op) const {
    Dependence result = kZero;
    for (ir::ValueId value : op.operands) result = both(result, of(value));
    return result;
  }

  Dependence host_size(const Op& op) const {
    const HostExprPool& exprs = *program_.info.exprs;
    if (exprs.depends_on(op.attrs.size, HostOp::Worker)) return kOther;
    return exprs.has_count(op.attrs.size) ? kOther : kConstant;
  }

  Dependence map(const Op& op) const {
    switch (op.attrs.scalar_op) {
      case ScalarOp::neg:
        return in(op, 0);
      case ScalarOp::add:
      case ScalarOp::sub:
        return both(in(op, 0), in(op, 1));
      case ScalarOp::mul:
        return product(in(op, 0), in(op, 1));
      case ScalarOp::fma:
        return both(product(in(op, 0), in(op, 1)), in(op, 2));
      case ScalarOp::select:
        return chosen(in(op, 0), both(in(op, 1), in(op, 2)));
      case ScalarOp::div:
      case ScalarOp::divide_or_zero:
        if (!is_float(dtype(op.results[0]))) return all_constant(op);
        // Linear in the left operand only.
        return {in(op, 0).is_constant && in(op, 1).is_constant,
                in(op, 0).is_linear && in(op, 1).is_constant};
      case ScalarOp::min:
      case ScalarOp::max:
        return saturates(op) ? in(op, 0) : all_constant(op);
      default:
        return all_constant(op);
    }
  }

  // Does a finish only clamp the carried value to the range of f32?
  bool saturates(const Op& op) const {
    if (function_.kind != ir::FunctionKind::Finish) return false;
    const Op* limit = &function_.ops[function_.values[op.operands[1].index()].def.index()];
    if (limit->kind == OpKind::fill) {
      limit = &function_.ops[function_.values[limit->operands[0].index()].def.index()];
    }
    if (limit->kind != OpKind::const_scalar || dtype(limit->results[0]) != kF32) return false;
    constexpr double kNearlyAll = 3.39e38;
    const auto value = std::bit_cast<double>(limit->attrs.bits);
    return op.attrs.scalar_op == ScalarOp::min ? value >= kNearlyAll : value <= -kNearlyAll;
  }

  // Rounding is permitted; truncating, saturating and becoming infinite are not. bf16 has the range
  // of f32.
  Dependence convert(const Op& op) const {
    const DType from = dtype(op.operands[0]), to = dtype(op.results[0]);
    const bool reaches_far = to == kF32 || to == kF64 || to == kBF16 ||
                             (permits_narrow_ && is_float(from) && is_float(to));
    return reaches_far || widens_losslessly(from, to) ? in(op, 0) : all_constant(op);
  }

  // Sums of linear values from zero, over elements that no input selects.
  Dependence reduction(const Op& op) const {
    const bool is_sum = function_.combiners[op.attrs.combiner.index()].op == ScalarOp::add &&
                        op.results.size() == 1;
    if (!is_sum) return reads_constants_only(op) ? all_constant(op) : kOther;
    const Dependence sum = both(in(op, 0), in(op, 1));
    return ir::has_mask(op) ? chosen(of(op.operands.back()), sum) : sum;
  }

  // A combiner's region may read values around it.
  bool reads_constants_only(const Op& op) const {
    bool is_constant = true;
    for (ir::RegionId region : ir::held_regions(function_, op)) {
      ir::walk(function_, region, [&](ir::OpId inner, ir::RegionId) {
        for (ir::ValueId value : function_.ops[inner.index()].operands) {
          bool is_inside = false;
          ir::walk(function_, region, [&](ir::OpId id, ir::RegionId) {
            is_inside |= function_.values[value.index()].def == id;
          });
          is_constant &= is_inside || of(value).is_constant;
        }
      });
    }
    return is_constant;
  }

  // Control.

  const std::vector<ir::ValueId>& yielded(ir::RegionId region) const {
    return function_.ops[function_.regions[region.index()].ops.back().index()].operands;
  }

  void visit_control(const Op& op) {
    if (op.kind == OpKind::if_else) {
      for (ir::RegionId region : op.regions) visit(region);
      for (std::size_t i = 0; i < op.results.size(); ++i) {
        const Dependence sides = both(of(yielded(op.regions[0])[i]), of(yielded(op.regions[1])[i]));
        known_[op.results[i].index()] = chosen(in(op, 0), sides);
      }
      return;
    }
    // Carried values: begin with the facts before the first round, weakened until a round changes
    // nothing.
    auto carried = mapped<Dependence>(op.operands, [&](ir::ValueId value) { return of(value); });
    while (turn(op, carried)) {
    }
    for (std::size_t i = 0; i < carried.size(); ++i) known_[op.results[i].index()] = carried[i];
  }

  bool turn(const Op& op, std::vector<Dependence>& carried) {
    for (ir::RegionId region : op.regions) {
      const std::vector<ir::ValueId>& args = function_.regions[region.index()].args;
      const std::size_t first = args.size() - carried.size();
      if (first > 0) known_[args[0].index()] = kConstant;  // the loop variable
      for (std::size_t i = 0; i < carried.size(); ++i) known_[args[first + i].index()] = carried[i];
      visit(region);
    }
    const bool is_while = op.kind == OpKind::while_loop;
    const Dependence again = is_while ? of(yielded(op.regions[0])[0]) : kConstant;
    bool is_changed = false;
    for (std::size_t i = 0; i < carried.size(); ++i) {
      const Dependence next = both(carried[i], chosen(again, of(yielded(op.regions.back())[i])));
      is_changed |=
          next.is_constant != carried[i].is_constant || next.is_linear != carried[i].is_linear;
      carried[i] = next;
    }
    return is_changed;
  }

  const ir::Program& program_;
  const ir::Function& function_;
  const bool permits_narrow_;
  std::vector<Dependence> known_;
};

bool adds_up(const rt::WireInfo& wire) {
  return wire.counts.empty() && !wire.fields.empty() &&
         std::all_of(wire.fields.begin(), wire.fields.end(),
                     [](const rt::FieldInfo& f) { return f.sum != rt::FieldSum::None; });
}

bool is_sum(const rt::WireInfo& wire) {
  return std::all_of(wire.fields.begin(), wire.fields.end(),
                     [](const rt::FieldInfo& f) { return f.sum == rt::FieldSum::Sum; });
}

bool is_decode_linear(const ir::Program& program) {
  const ir::Function* decode = program.find(ir::FunctionKind::Decode);
  if (!decode) return false;
  return find_dependences(program, *decode)[decode->results.output.index()].is_linear;
}

bool is_encode_linear(const ir::Program& program, bool permits_narrow = false) {
  const ir::Function* encode = program.find(ir::FunctionKind::Encode);
  if (!encode) return false;
  const std::vector<Dependence> known = Walk(program, *encode, permits_narrow).run();
  return std::all_of(encode->results.fields.begin(), encode->results.fields.end(),
                     [&](ir::ValueId field) { return known[field.index()].is_linear; });
}

}  // namespace

std::vector<Dependence> find_dependences(const ir::Program& program, const ir::Function& function) {
  return Walk(program, function).run();
}

rt::Aggregation find_aggregation(const ir::Program& program) {
  const rt::WireInfo& wire = program.info.wire;
  if (!adds_up(wire)) return rt::Aggregation::Gather;
  const bool is_proved = is_sum(wire) && (is_decode_linear(program) || is_encode_linear(program));
  return is_proved ? rt::Aggregation::SumProved : rt::Aggregation::SumToTest;
}

bool is_linear(const ir::Program& program) {
  const rt::WireInfo& wire = program.info.wire;
  return adds_up(wire) && is_sum(wire) && is_decode_linear(program) &&
         is_encode_linear(program, true);
}

bool is_finish_linear(const ir::Program& program) {
  const ir::Function* finish = program.find(ir::FunctionKind::Finish);
  if (!finish) return false;
  const std::vector<Dependence> known = find_dependences(program, *finish);
  // A later call is linear in a state only if this call leaves a linear value there.
  return known[finish->results.output.index()].is_linear &&
         std::ranges::all_of(finish->results.states, [&](ir::ValueId state) {
           const Op& op = finish->ops[finish->values[state.index()].def.index()];
           const bool is_input =
               op.kind == OpKind::state && program.info.states[op.attrs.index].is_input;
           return is_input || known[state.index()].is_linear;
         });
}

}  // namespace cinch::analysis
