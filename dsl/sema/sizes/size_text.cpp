// Sizes and types as people write them.
#include "dsl/sema/sizes/size_scope.h"

#include <algorithm>

namespace cinch::sema {

namespace {

const char* infix_of(HostOp op) {
  switch (op) {
    case HostOp::Add:
      return " + ";
    case HostOp::Sub:
      return " - ";
    case HostOp::Mul:
      return " * ";
    case HostOp::Div:
      return " / ";
    case HostOp::Mod:
      return " % ";
    default:
      return nullptr;
  }
}

// Deeper or longer parts become "…": sizes are graphs, whose text could have any length.
constexpr int kMaxTextDepth = 200, kMaxTextNodes = 500;

bool is_sum(HostOp op) {
  return op == HostOp::Add || op == HostOp::Sub;
}

}  // namespace

std::string SizeScope::size_text(HostExprId id) {
  int left = kMaxTextNodes;
  return size_text_within(id, 0, left);
}

std::string SizeScope::size_text_within(HostExprId id, int depth, int& left) {
  if (depth > kMaxTextDepth || left-- <= 0) return "…";
  const auto inner = [&](HostExprId arg) { return size_text_within(arg, depth + 1, left); };
  if (const auto named = names_.find(id); named != names_.end()) {
    return named->second.first;
  }
  const HostExprNode node = pool().node(id);
  if (node.op == HostOp::Const) return pool().print(id);
  if (node.op == HostOp::Param && node.payload < info_.params.size()) {
    return info_.params[node.payload].name;
  }
  if (node.op == HostOp::Count) {
    return node.payload < info_.counts.size() ? info_.counts[node.payload].name : "m";
  }
  if (node.op == HostOp::Cast) return inner(node.args[0]);
  const int num_args = host_op_num_args(node.op);
  if (num_args == 0) return host_op_name(node.op);
  if (node.op == HostOp::Neg) {
    const bool needs =
        infix_of(pool().node(node.args[0]).op) != nullptr && !names_.contains(node.args[0]);
    return needs ? "-(" + inner(node.args[0]) + ")" : "-" + inner(node.args[0]);
  }
  if (const char* infix = infix_of(node.op)) {
    const auto side = [&](HostExprId arg, bool is_right) {
      const HostOp op = pool().node(arg).op;
      const bool is_sum_in_product = is_sum(op) && node.op != HostOp::Add;
      const bool is_later = is_right && !is_sum(node.op) && infix_of(op) != nullptr &&
                            (op != HostOp::Mul || node.op != HostOp::Mul);
      const bool needs = !names_.contains(arg) && (is_sum_in_product || is_later);
      return needs ? "(" + inner(arg) + ")" : inner(arg);
    };
    const std::string left_side = side(node.args[0], false);
    const HostExprNode& right = pool().node(node.args[1]);
    if (node.op == HostOp::Add && right.op == HostOp::Const && right.type == HostType::Int) {
      const std::int64_t added = pool().const_value(node.args[1]).as_int();
      if (added < 0 && added != INT64_MIN) return left_side + " - " + std::to_string(-added);
    }
    return left_side + infix + side(node.args[1], true);
  }
  std::string text = std::string(host_op_name(node.op)) + "(";
  for (int i = 0; i < num_args; ++i) {
    if (i > 0) text += ", ";
    text += inner(node.args[i]);
  }
  return text + ")";
}

std::string SizeScope::type_text(const Type& type) {
  std::string element = dtype_name(type.dtype);
  if (type.rank == 0) return element;
  std::string text = "[" + element + "; " + size_text(type.dims[0]);
  if (type.rank == 2) text += ", " + size_text(type.dims[1]);
  return text + "]";
}

void SizeScope::collect_sizes(HostExprId id, std::vector<std::pair<std::string, Span>>& out,
                              std::set<HostExprId>& seen) {
  if (!seen.insert(id).second) return;
  if (const auto named = names_.find(id); named != names_.end()) {
    const auto same = [&](const auto& entry) { return entry.first == named->second.first; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(named->second);
    return;
  }
  const HostExprNode node = pool().node(id);
  for (HostExprId arg : node.args) {
    if (arg) collect_sizes(arg, out, seen);
  }
}

}  // namespace cinch::sema
