#include "compiler/bench/phases.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "compiler/ir/rewriter.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::bench {
namespace {

constexpr std::size_t kMostPhases = 4;
constexpr std::uint64_t kStepsTried = 130;  // one after the other; more only around known numbers

// Evaluates scalars that the host knows, as doubles.
class KnownScalars {
 public:
  KnownScalars(const ir::Program& program, const ir::Function& function)
      : program_(program), function_(function) {}

  std::optional<double> of(ir::ValueId value, const HostEnv& env) const {
    const ir::Op& op = ir::defining_op(function_, value);
    switch (op.kind) {
      case ir::OpKind::host_size: {
        const auto found = program_.info.exprs->eval(op.attrs.size, env);
        return found ? std::optional(found->to_double()) : std::nullopt;
      }
      case ir::OpKind::param:
        if (op.attrs.index >= env.params.size()) return std::nullopt;
        return env.params[op.attrs.index].to_double();
      case ir::OpKind::const_scalar:
        return constant(op.attrs.bits, ir::type_of(function_, value).dtype);
      case ir::OpKind::convert:
        return of(op.operands[0], env);
      case ir::OpKind::map:
        return map_of(op, env);
      default:
        return std::nullopt;
    }
  }

 private:
  static double constant(std::uint64_t bits, DType dtype) {
    if (dtype == kF32) return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (dtype == kF64) return std::bit_cast<double>(bits);
    return static_cast<double>(static_cast<std::int64_t>(bits));
  }

  std::optional<double> map_of(const ir::Op& op, const HostEnv& env) const {
    std::vector<double> x;
    for (const ir::ValueId operand : op.operands) {
      const auto known = of(operand, env);
      if (!known) return std::nullopt;
      x.push_back(*known);
    }
    switch (op.attrs.scalar_op) {
      case ScalarOp::lt:
        return x[0] < x[1];
      case ScalarOp::le:
        return x[0] <= x[1];
      case ScalarOp::gt:
        return x[0] > x[1];
      case ScalarOp::ge:
        return x[0] >= x[1];
      case ScalarOp::eq:
        return x[0] == x[1];
      case ScalarOp::ne:
        return x[0] != x[1];
      case ScalarOp::add:
        return x[0] + x[1];
      case ScalarOp::sub:
        return x[0] - x[1];
      case ScalarOp::mul:
        return x[0] * x[1];
      case ScalarOp::mod:
        return x[1] == 0 ? 0 : std::fmod(x[0], x[1]);
      case ScalarOp::bit_and:
        return x[0] != 0 && x[1] != 0;
      case ScalarOp::bit_or:
        return x[0] != 0 || x[1] != 0;
      case ScalarOp::bit_not:
        return x[0] == 0;
      default:
        return std::nullopt;
    }
  }

  const ir::Program& program_;
  const ir::Function& function_;
};

}  // namespace

std::vector<std::uint64_t> first_steps_of_phases(const ir::Program& program, ir::FunctionKind kind,
                                                 HostEnv env) {
  const ir::Function* function = program.find(kind);
  if (function == nullptr) return {1};
  const KnownScalars scalars(program, *function);
  env.step = 1;
  std::vector<ir::ValueId> conditions;
  std::set<std::uint64_t> tried;
  const auto try_around = [&](double number) {
    if (!(number >= 1 && number < 0x1p40)) return;
    const auto step = static_cast<std::uint64_t>(number);
    tried.insert({std::max<std::uint64_t>(step, 2) - 1, step, step + 1});
  };
  ir::walk(*function, [&](ir::OpId id, ir::RegionId) {
    const ir::Op& op = function->ops[id.index()];
    if (op.kind == ir::OpKind::if_else && scalars.of(op.operands[0], env))
      conditions.push_back(op.operands[0]);
    if (op.kind == ir::OpKind::param || op.kind == ir::OpKind::const_scalar)
      try_around(scalars.of(op.results[0], env).value_or(0));
  });
  if (conditions.empty()) return {1};
  for (std::uint64_t step = 1; step <= kStepsTried; ++step) tried.insert(step);
  std::map<std::vector<bool>, std::uint64_t> first;  // of each combination of conditions
  for (const std::uint64_t step : tried) {
    env.step = static_cast<std::int64_t>(step);
    std::vector<bool> holds;
    holds.reserve(conditions.size());
    for (const ir::ValueId condition : conditions)
      holds.push_back(scalars.of(condition, env).value_or(0) != 0);
    first.try_emplace(holds, step);
  }
  std::vector<std::uint64_t> steps;
  steps.reserve(first.size());
  for (const auto& [holds, step] : first) steps.push_back(step);
  std::ranges::sort(steps);
  if (steps.size() > kMostPhases) steps.resize(kMostPhases);
  return steps;
}

}  // namespace cinch::bench
