// Host expressions in files: the nodes of a pool in order. Reading trusts nothing.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/core/sizes/host_expr.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch {

namespace {

using nlohmann::json;

std::optional<HostOp> find_op(std::string_view name) {
#define CINCH_HOST_OP(Op, spelling, num_args, rule) \
  if (name == spelling) return HostOp::Op;
#include "runtime/core/sizes/host_expr.def"
  return std::nullopt;
}

std::optional<HostType> find_type(std::string_view name) {
  for (HostType type : {HostType::Int, HostType::F32, HostType::F64, HostType::Bool}) {
    if (name == host_type_name(type)) return type;
  }
  return std::nullopt;
}

bool has_payload(HostOp op) {
  return op == HostOp::Const || op == HostOp::Param || op == HostOp::Count;
}

// Parses one entry; nothing if a field is missing or of the wrong kind.
std::optional<HostExprNode> read_node(const json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const auto op = entry.find("op"), type = entry.find("type"), args = entry.find("args");
  if (op == entry.end() || !op->is_string() || type == entry.end() || !type->is_string()) {
    return std::nullopt;
  }
  const auto found_op = find_op(op->get<std::string>());
  const auto found_type = find_type(type->get<std::string>());
  if (!found_op || !found_type) return std::nullopt;
  HostExprNode node{*found_op, *found_type, 0, {}};
  if (has_payload(node.op)) {
    const auto value = entry.find("value");
    if (value == entry.end() || !value->is_number_unsigned()) return std::nullopt;
    node.payload = value->get<std::uint64_t>();
  }
  if (args == entry.end()) return node;
  if (!args->is_array() || args->size() > 3) return std::nullopt;
  for (std::size_t i = 0; i < args->size(); ++i) {
    const json& arg = (*args)[i];
    if (!arg.is_number_unsigned() || arg.get<std::uint64_t>() >= HostExprId::kNone) {
      return std::nullopt;
    }
    node.args[i] = HostExprId(arg.get<std::size_t>());
  }
  return node;
}

bool is_valid_payload(const HostExprNode& node) {
  if (node.op == HostOp::Param || node.op == HostOp::Count) return node.payload < UINT32_MAX;
  if (node.op != HostOp::Const) return true;
  switch (node.type) {
    case HostType::Bool:
      return node.payload <= 1;
    case HostType::F32:
      return node.payload <= UINT32_MAX;
    default:
      return true;
  }
}

}  // namespace

json HostExprPool::to_json() const {
  json entries = json::array();
  for (const HostExprNode& node : nodes_) {
    json entry = {{"op", host_op_name(node.op)}, {"type", host_type_name(node.type)}};
    if (has_payload(node.op)) entry["value"] = node.payload;
    if (node.args[0]) entry["args"] = json::array();
    for (HostExprId arg : node.args) {
      if (arg) entry["args"].push_back(arg.index());
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

rt::Result<HostExprPool> HostExprPool::from_json(const json& entries) {
  const auto corrupt = [](std::string what) {
    return rt::fail(rt::ErrorKind::CorruptFile, std::move(what));
  };
  if (!entries.is_array()) return corrupt("host expressions are not an array");
  HostExprPool pool;
  for (const json& entry : entries) {
    const std::size_t at = pool.nodes_.size();
    const std::optional<HostExprNode> node = read_node(entry);
    if (!node) return corrupt(fmt::format("host expression {} is malformed", at));
    const std::string fault = pool.find_fault(*node);
    if (!fault.empty()) return corrupt(fmt::format("host expression {}: {}", at, fault));
    if (!is_valid_payload(*node)) {
      return corrupt(fmt::format("host expression {}: value {} does not fit", at, node->payload));
    }
    if (pool.intern(*node).index() != at) {
      return corrupt(fmt::format("host expression {} repeats an earlier one", at));
    }
  }
  return pool;
}

}  // namespace cinch
