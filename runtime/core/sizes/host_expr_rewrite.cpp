// Rewriting host expressions: substitution, import from another pool, and bounds free of counts.
// All walk the nodes in order (arguments come before users), so depth costs no stack.
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch {

std::vector<bool> HostExprPool::reachable_from(HostExprId id) const {
  std::vector<bool> used(id.index() + 1, false);
  used[id.index()] = true;
  for (std::size_t i = id.index() + 1; i-- > 0;) {
    if (!used[i]) continue;
    for (HostExprId arg : nodes_[i].args) {
      if (arg) used[arg.index()] = true;
    }
  }
  return used;
}

HostExprId HostExprPool::import(
    const HostExprPool& from, HostExprId id,
    const std::function<HostExprId(const HostExprNode& leaf)>& replace) {
  from.node(id);
  const std::vector<bool> used = from.reachable_from(id);
  std::vector<HostExprId> made(used.size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    // A copy: rebuilding may move the nodes when `from` is this pool.
    const HostExprNode old = from.nodes_[i];
    if (replace && host_op_rule(old.op) == HostRule::Leaf) {
      made[i] = replace(old);
      if (made[i]) {
        CINCH_CHECK(type(made[i]) == old.type, "a leaf is replaced by one of another type");
        continue;
      }
    }
    HostExprId args[3];
    for (int k = 0; k < 3; ++k) {
      if (old.args[k]) args[k] = made[old.args[k].index()];
    }
    made[i] = rebuild(old, args);
  }
  return made.back();
}

HostExprId HostExprPool::substitute(
    HostExprId id, const std::function<HostExprId(const HostExprNode& leaf)>& replace) {
  return import(*this, id, replace);
}

// Expressions without counts: `high` is never below a node, `low` never above it.
struct HostExprPool::Bounds {
  HostExprId low;
  HostExprId high;
};

HostExprPool::Bounds HostExprPool::bounds_of_product(HostExprId id,
                                                     const std::vector<Bounds>& known) {
  const HostExprNode n = node(id);
  const Bounds a = known[n.args[0].index()], b = known[n.args[1].index()];
  if (is_nonnegative(n.args[0]) && is_nonnegative(n.args[1])) {
    return {make(n.op, a.low, b.low), make(n.op, a.high, b.high)};
  }
  const bool left_is_sign = is_const(n.args[0]) && !is_nonnegative(n.args[0]);
  if (left_is_sign) return {make(n.op, a.low, b.high), make(n.op, a.low, b.low)};
  CINCH_LIMITATION("no bound for `" + print(id) + "`: a factor of unknown sign");
}

HostExprPool::Bounds HostExprPool::bounds_of_quotient(HostExprId id,
                                                      const std::vector<Bounds>& known) {
  const HostExprNode n = node(id);
  const Bounds a = known[n.args[0].index()], b = known[n.args[1].index()];
  if (!is_nonnegative(n.args[1])) {
    CINCH_LIMITATION("no bound for `" + print(id) + "`: its second operand may be negative");
  }
  if (n.op == HostOp::Mod) {
    if (!is_nonnegative(n.args[0])) CINCH_LIMITATION("no bound for `" + print(id) + "`");
    return {const_int(0), min(a.high, b.high)};
  }
  if (b.low == b.high) return {make(n.op, a.low, b.low), make(n.op, a.high, b.low)};
  // A quotient by a count is at most the dividend: the count is 0 (and the result 0) or at least 1.
  if (n.type == HostType::Int && (n.op == HostOp::Div || n.op == HostOp::CeilDiv) &&
      is_nonnegative(n.args[0])) {
    return {const_int(0), a.high};
  }
  CINCH_LIMITATION("no bound for `" + print(id) + "`");
}

HostExprPool::Bounds HostExprPool::bounds_of(HostExprId id, const std::vector<Bounds>& known) {
  const HostExprNode n = node(id);
  const auto arg = [&](int i) { return n.args[i] ? known[n.args[i].index()] : Bounds{}; };
  const auto rising = [&] {
    const HostExprId low[3] = {arg(0).low, arg(1).low, arg(2).low};
    const HostExprId high[3] = {arg(0).high, arg(1).high, arg(2).high};
    return Bounds{rebuild(n, low), rebuild(n, high)};
  };
  switch (n.op) {
    case HostOp::Count:
      return {const_int(0), n.args[0]};
    case HostOp::Add:
    case HostOp::Min:
    case HostOp::Max:
    case HostOp::Clamp:
    case HostOp::Ceil:
    case HostOp::Floor:
    case HostOp::Round:
    case HostOp::Trunc:
    case HostOp::Sqrt:
    case HostOp::Cast:
      return rising();
    case HostOp::Sub:
      return {make(n.op, arg(0).low, arg(1).high), make(n.op, arg(0).high, arg(1).low)};
    case HostOp::Neg:
      return {make(n.op, arg(0).high), make(n.op, arg(0).low)};
    case HostOp::Mul:
      return bounds_of_product(id, known);
    case HostOp::Div:
    case HostOp::CeilDiv:
    case HostOp::AlignUp:
    case HostOp::Mod:
    case HostOp::Shl:
    case HostOp::Shr:
      return bounds_of_quotient(id, known);
    case HostOp::Abs:
      if (is_nonnegative(n.args[0])) return rising();
      break;
    case HostOp::Select:
      if (n.type == HostType::Bool) break;
      return {min(arg(1).low, arg(2).low), max(arg(1).high, arg(2).high)};
    default:
      break;
  }
  CINCH_LIMITATION("no bound for `" + print(id) + "` when its counts are not known");
}

HostExprId HostExprPool::upper_bound(HostExprId id) {
  node(id);
  if (!has_count(id)) return id;
  const auto bound = upper_bounds_.find(id);
  if (bound != upper_bounds_.end()) return bound->second;
  const std::vector<bool> used = reachable_from(id);
  std::vector<Bounds> known(used.size());
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (!used[i]) continue;
    const HostExprId self(i);
    // A select's condition on a count needs no bounds of its own.
    const bool is_number = nodes_[i].type != HostType::Bool;
    known[i] = has_count(self) && is_number ? bounds_of(self, known) : Bounds{self, self};
  }
  if (has_count(id) && type(id) == HostType::Bool) {
    CINCH_LIMITATION("no bound for the condition `" + print(id) + "`");
  }
  return upper_bounds_[id] = known[id.index()].high;
}

}  // namespace cinch
