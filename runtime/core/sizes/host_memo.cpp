// Bodies of host_memo.h: the walk over the DAG.
#include "runtime/core/sizes/host_memo.h"

#include <algorithm>
#include <tuple>

#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch {

void HostMemo::bind(const HostExprPool& pool, const HostEnv& env) {
  const auto key = [](const HostEnv& e) {
    return std::tie(e.n, e.rows, e.cols, e.world, e.worker);
  };
  const bool is_same =
      pool_ == &pool && key(env_) == key(env) &&
      std::equal(params_.begin(), params_.end(), env.params.begin(), env.params.end());
  if (!is_same) {
    std::fill(stamps_.begin(), stamps_.end(), kUnknown);
    params_.assign(env.params.begin(), env.params.end());
  } else if (env_.step != env.step) {
    for (std::size_t i = 0; i < stamps_.size(); ++i) {
      if (pool.depends_on(HostExprId(i), HostOp::Step)) stamps_[i] = kUnknown;
    }
  }
  pool_ = &pool;
  env_ = env;
  env_.params = {};
  env_.counts = {};
}

// Evaluates arguments before users. For a select it evaluates only the branch taken: the other may
// overflow.
rt::Result<HostValue> HostMemo::eval(HostExprId id, const HostEnv& env) {
  // Nodes may have been added since.
  stamps_.resize(pool_->num_nodes(), kUnknown);
  values_.resize(pool_->num_nodes());
  ++now_;
  waiting_.assign(1, id);
  while (!waiting_.empty()) {
    const HostExprId top = waiting_.back();
    const HostExprNode& node = pool_->node(top);
    const HostExprId argument = is_known(top) ? HostExprId() : unknown_argument(node);
    if (argument) {
      waiting_.push_back(argument);
      continue;
    }
    waiting_.pop_back();
    if (is_known(top)) continue;
    auto value = value_of(node, env);
    if (!value) {
      if (value.error().message == "overflow") {
        value.error().message =
            "`" + pool_->print(top) + "` does not fit in 64 bits for n = " + std::to_string(env.n);
      }
      return value;
    }
    values_[top.index()] = *value;
    stamps_[top.index()] = pool_->has_count(top) ? now_ : kAlways;
  }
  return values_[id.index()];
}

// The next argument that the node's value needs, or none. The bound of a count is not needed for
// its value.
HostExprId HostMemo::unknown_argument(const HostExprNode& node) const {
  if (host_op_rule(node.op) == HostRule::Leaf) return {};
  if (node.op == HostOp::Select && is_known(node.args[0])) {
    const HostExprId taken = node.args[values_[node.args[0].index()].as_bool() ? 1 : 2];
    return is_known(taken) ? HostExprId() : taken;
  }
  const int num_args = node.op == HostOp::Select ? 1 : host_op_num_args(node.op);
  for (int i = 0; i < num_args; ++i) {
    if (!is_known(node.args[i])) return node.args[i];
  }
  return {};
}

rt::Result<HostValue> HostMemo::value_of(const HostExprNode& node, const HostEnv& env) const {
  if (host_op_rule(node.op) == HostRule::Leaf) return host_leaf_value(node, env);
  HostValue values[3];
  const int num_args = host_op_num_args(node.op);
  for (int i = 0; i < num_args; ++i) values[i] = values_[node.args[i].index()];
  return apply_host_op(node.op, node.type, {values, static_cast<std::size_t>(num_args)});
}

}  // namespace cinch
