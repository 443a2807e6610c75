// simplify: applies local rules until none matches, and removes control flow with a known course.
//
//   before:  %2 = map.mul %1, 1                        after:  uses of %2 become %1
//            %4 = if_else true () {A} () {B}                   A, and what it yields for %4
#include "compiler/ir/rewriter.h"
#include "compiler/passes/pass_context.h"
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
  const Rewrite rewrite = [](ir::Builder& builder, ir::OpId op) -> Values {
    const Matcher matcher(builder, op);
    if (Values values = apply_rules(matcher)) return values;
    if (Values values = take_known_branch(matcher)) return values;
    return drop_empty_loop(matcher);
  };
  // Every rule makes the program smaller or moves fills outward, so this ends.
  while (rewrite_all(program, context, rewrite)) {
  }
}

}  // namespace cinch::passes
