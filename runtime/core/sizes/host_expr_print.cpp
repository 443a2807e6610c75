// Host expressions as formulas for people: infix, brackets only where precedence needs them.
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>

#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch {
namespace {

using NameOf = std::function<std::string(std::uint32_t)>;

// Deeper or longer formulas print as "…". They would help nobody, the stack is finite, and a shared
// DAG may be exponentially long as text.
constexpr int kMaxDepth = 200;
constexpr int kMaxNodes = 500;

struct Infix {
  HostOp op;
  const char* spelling;
  int precedence;
};
// The language's precedences, higher binds tighter.
constexpr std::array kInfix = {
    Infix{HostOp::Mul, "*", 10},  Infix{HostOp::Div, "/", 10},   Infix{HostOp::Mod, "%", 10},
    Infix{HostOp::Add, "+", 9},   Infix{HostOp::Sub, "-", 9},    Infix{HostOp::Shl, "<<", 8},
    Infix{HostOp::Shr, ">>", 8},  Infix{HostOp::BitAnd, "&", 7}, Infix{HostOp::BitXor, "^", 6},
    Infix{HostOp::BitOr, "|", 5}, Infix{HostOp::Eq, "==", 4},    Infix{HostOp::Ne, "!=", 4},
    Infix{HostOp::Lt, "<", 4},    Infix{HostOp::Le, "<=", 4},    Infix{HostOp::Gt, ">", 4},
    Infix{HostOp::Ge, ">=", 4},   Infix{HostOp::And, "&&", 3},   Infix{HostOp::Or, "||", 2},
};
constexpr int kUnaryPrecedence = 12;
constexpr int kCastPrecedence = 11;

std::string print_const(const HostValue& value) {
  if (value.type == HostType::Bool) return value.as_bool() ? "true" : "false";
  if (value.type == HostType::Int) return std::to_string(value.as_int());
  return value.type == HostType::F32 ? fmt::format("{}", value.as_f32())
                                     : fmt::format("{}", value.as_f64());
}

class Printer {
 public:
  Printer(const HostExprPool& pool, const NameOf& param_name, const NameOf& count_name)
      : pool_(pool), param_name_(param_name), count_name_(count_name) {}

  // The text, in brackets if it binds less tightly than `precedence`.
  std::string print(HostExprId id, int precedence, int depth) {
    if (depth > kMaxDepth || ++num_printed_ > kMaxNodes) return "…";
    const HostExprNode& node = pool_.node(id);
    if (host_op_rule(node.op) == HostRule::Leaf) return print_leaf(id, node, precedence);
    const auto* const infix = std::ranges::find(kInfix, node.op, &Infix::op);
    if (infix != kInfix.end()) {
      // Left-associative: the right operand needs brackets at the same level.
      const std::string text = print(node.args[0], infix->precedence, depth + 1) + " " +
                               infix->spelling + " " +
                               print(node.args[1], infix->precedence + 1, depth + 1);
      return infix->precedence < precedence ? "(" + text + ")" : text;
    }
    if (node.op == HostOp::Neg || node.op == HostOp::Not) {
      return (node.op == HostOp::Neg ? "-" : "!") +
             print(node.args[0], kUnaryPrecedence, depth + 1);
    }
    if (node.op == HostOp::Cast) return print_cast(node, precedence, depth);
    return print_call(node, depth);
  }

 private:
  std::string print_leaf(HostExprId id, const HostExprNode& node, int precedence) const {
    const auto index = static_cast<std::uint32_t>(node.payload);
    switch (node.op) {
      case HostOp::Const: {
        const std::string text = print_const(pool_.const_value(id));
        return text[0] == '-' && precedence > kUnaryPrecedence - 3 ? "(" + text + ")" : text;
      }
      case HostOp::Param:
        return param_name_ ? param_name_(index) : fmt::format("param{}", index);
      case HostOp::Count:
        return count_name_ ? count_name_(index) : fmt::format("count{}", index);
      default:
        return host_op_name(node.op);
    }
  }

  // Omits conversions to floats, which are silent if a size meets a parameter.
  std::string print_cast(const HostExprNode& node, int precedence, int depth) {
    const HostType from = pool_.type(node.args[0]);
    const bool is_silent =
        node.type == HostType::F32 || node.type == HostType::F64 ||
        (node.type == HostType::Int && from != HostType::Bool && is_whole(node.args[0]));
    if (is_silent) return print(node.args[0], precedence, depth + 1);
    const char* type = node.type == HostType::Int ? "i64" : host_type_name(node.type);
    const std::string text = print(node.args[0], kCastPrecedence, depth + 1) + " as " + type;
    return kCastPrecedence < precedence ? "(" + text + ")" : text;
  }

  bool is_whole(HostExprId id) const {
    const HostOp op = pool_.node(id).op;
    return op == HostOp::Ceil || op == HostOp::Floor || op == HostOp::Round || op == HostOp::Trunc;
  }

  std::string print_call(const HostExprNode& node, int depth) {
    std::string text = std::string(host_op_name(node.op)) + "(";
    for (int i = 0; i < host_op_num_args(node.op); ++i) {
      text += (i == 0 ? "" : ", ") + print(node.args[i], 0, depth + 1);
    }
    return text + ")";
  }

  const HostExprPool& pool_;
  const NameOf& param_name_;
  const NameOf& count_name_;
  int num_printed_ = 0;
};

}  // namespace

std::string HostExprPool::print(HostExprId id, const NameOf& param_name,
                                const NameOf& count_name) const {
  return Printer(*this, param_name, count_name).print(id, 0, 0);
}

// Host expressions in files: the nodes of a pool in order. Reading trusts nothing.

namespace {

using nlohmann::json;

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
  const auto found_op = find_host_op(op->get<std::string>());
  const auto found_type = find_host_type(type->get<std::string>());
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
  if (node.type == HostType::Bool) return node.payload <= 1;
  return node.type != HostType::F32 || node.payload <= UINT32_MAX;
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
