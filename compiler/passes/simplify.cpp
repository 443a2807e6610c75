// simplify: applies local rules until none matches, and removes control flow with a known course.
//
//   before:  %2 = map.mul %1, 1                        after:  uses of %2 become %1
//            %4 = if_else true () {A} () {B}                   A, and what it yields for %4
#include "compiler/ir/ops.h"
#include "compiler/ir/rewriter.h"
#include "compiler/passes/passes.h"
#include "compiler/passes/rules/rules.h"

namespace cinch::passes {
namespace {

using ir::OpKind;
using Values = std::optional<ir::ValueIds>;

Values apply_rules(const Matcher& matcher) {
  if (matcher.op().results.size() != 1) return std::nullopt;
  for (std::span<const Rule> rules : {constant_rules(), arithmetic_rules(), shape_rules()}) {
    for (Rule rule : rules) {
      if (const auto value = rule(matcher)) return ir::ValueIds{*value};
    }
  }
  return std::nullopt;
}

// Only the branch taken runs; its checks stay in place.
Values take_known_branch(const Matcher& matcher) {
  if (matcher.op().kind != OpKind::if_else) return std::nullopt;
  const auto condition = matcher.constant(matcher.operand(0));
  if (!condition) return std::nullopt;
  return matcher.builder().inline_here(matcher.op().regions[*condition ? 0 : 1], {});
}

Values drop_empty_loop(const Matcher& matcher) {
  const ir::Op& op = matcher.op();
  const HostExprPool& exprs = matcher.builder().exprs();
  if (op.kind == OpKind::while_loop) {
    const auto at_most = ir::constant_size(exprs, op.attrs.size);
    return at_most && *at_most <= 0 ? Values(op.operands) : std::nullopt;
  }
  if (op.kind != OpKind::for_loop) return std::nullopt;
  const auto begin = ir::constant_size(exprs, op.attrs.size);
  const auto end = ir::constant_size(exprs, op.attrs.size2);
  return begin && end && *begin >= *end ? Values(op.operands) : std::nullopt;
}

}  // namespace

void simplify(ir::Program& program, PassContext& context) {
  const Rewrite rewrite = [](ir::Builder& builder, const ir::Op& op) -> Values {
    const Matcher matcher(builder, op);
    if (Values values = apply_rules(matcher)) return values;
    if (Values values = take_known_branch(matcher)) return values;
    return drop_empty_loop(matcher);
  };
  // Every rule makes the program smaller or moves fills outward, so this ends.
  while (rewrite_all(program, context, rewrite)) {
  }
}

// convert_if_to_select: a branch of a few scalar operations costs more as control flow than both
// sides and a select. Operations are total, so computing the side not taken does no harm.
//
//   before:  %3: f32 = if_else %0 () {          after:  %4: f32 = map.add %1, %2
//              %4: f32 = map.add %1, %2                 %3: f32 = map.select %0, %4, %1
//              yield %4
//            } () { yield %1 }

namespace {

// Above this many operations on a side, a branch that is not taken saves more than it costs.
constexpr std::size_t kMaxOps = 8;

bool is_cheap(const ir::Op& op) {
  switch (op.kind) {
    case ir::OpKind::map:
    case ir::OpKind::convert:
    case ir::OpKind::bitcast:
    case ir::OpKind::const_scalar:
    case ir::OpKind::param:
    case ir::OpKind::host_size:
    case ir::OpKind::count_value:
    case ir::OpKind::yield:
      return true;
    default:
      return false;
  }
}

// Why the branches cannot become selects, or nothing.
const char* obstacle(const ir::Function& function, const ir::Op& op) {
  for (ir::ValueId result : op.results) {
    if (!ir::is_scalar(function.values[result.index()].type)) return "a branch gives an array";
  }
  for (ir::RegionId region : op.regions) {
    const std::vector<ir::OpId>& ops = function.regions[region.index()].ops;
    if (ops.size() > kMaxOps + 1) return "a branch has too many operations";
    for (ir::OpId inner : ops) {
      const ir::Op& each = function.ops[inner.index()];
      if (!is_cheap(each)) return "a branch holds more than scalar operations";
      for (ir::ValueId result : each.results) {
        if (!ir::is_scalar(function.values[result.index()].type)) return "a branch makes an array";
      }
    }
  }
  return nullptr;
}

}  // namespace

void convert_if_to_select(ir::Program& program, PassContext& context) {
  rewrite_all(program, context,
              [&](ir::Builder& b, const ir::Op& op) -> std::optional<ir::ValueIds> {
                if (op.kind != ir::OpKind::if_else) return std::nullopt;
                if (const char* reason = obstacle(b.function(), op)) {
                  context.remark(op.span, reason);
                  return std::nullopt;
                }
                const ir::ValueIds then_values = b.inline_here(op.regions[0], {});
                const ir::ValueIds else_values = b.inline_here(op.regions[1], {});
                ir::ValueIds values;
                for (std::size_t i = 0; i < then_values.size(); ++i) {
                  values.push_back(b.select(op.operands[0], then_values[i], else_values[i]));
                }
                return values;
              });
}

}  // namespace cinch::passes
