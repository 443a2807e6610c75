// Printing host expressions.
#include "compiler/ir/text/text.h"

#include <fmt/format.h>

#include <cmath>

#include "runtime/core/params.h"

namespace cinch::ir {
namespace {

constexpr std::string_view kReserved[] = {"n",      "r",    "c",     "world", "step",  "worker",
                                          "worker", "true", "false", "param", "count", "bits"};

// A formula is a graph, and may be exponentially long as text. Longer text ends in "…" and cannot
// be parsed.
constexpr std::size_t kMostParts = 10000;

const char* infix(HostOp op) {
  switch (op) {
    case HostOp::Add:
      return "+";
    case HostOp::Sub:
      return "-";
    case HostOp::Mul:
      return "*";
    default:
      return nullptr;
  }
}

}  // namespace

bool is_plain_name(std::string_view name) {
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  if (name.empty() || !is_letter(name.front())) return false;
  for (char c : name) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_letter(c) && !is_digit && c != '.') return false;
  }
  return true;
}

std::string quote(std::string_view text) {
  std::string result = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      result += c;
    }
  }
  return result + '"';
}

HostPrinter::HostPrinter(const rt::ProgramInfo& info, std::size_t visible_sizes) : info_(info) {
  for (std::string_view name : kReserved) ++uses_[std::string(name)];
  for (const auto& param : info.params) ++uses_[param.name];
  for (const auto& count : info.counts) ++uses_[count.name];
  for (const auto& size : info.sizes) ++uses_[size.name];
  for (std::size_t i = 0; i < info.sizes.size() && i < visible_sizes; ++i) name_size(info.sizes[i]);
}

void HostPrinter::name_size(const rt::SizeInfo& size) {
  const bool is_leaf = host_op_num_args(info_.exprs.node(size.value).op) == 0;
  if (is_leaf || uses_[size.name] != 1 || !is_plain_name(size.name)) return;
  size_name_.try_emplace(size.value, size.name);
}

std::string HostPrinter::print(HostExprId id, bool is_nested) const {
  if (!id.is_valid() || id.index() >= info_.exprs.num_nodes()) return "<invalid>";
  if (const auto named = size_name_.find(id); named != size_name_.end()) return named->second;
  return ++num_printed_ > kMostParts ? "…" : print_node(id, is_nested);
}

std::string HostPrinter::print_node(HostExprId id, bool is_nested) const {
  const HostExprNode& node = info_.exprs.node(id);
  switch (node.op) {
    case HostOp::Const:
      return print_constant(id);
    case HostOp::N:
    case HostOp::Rows:
    case HostOp::Cols:
    case HostOp::World:
    case HostOp::Step:
    case HostOp::Worker:
      return host_op_name(node.op);
    case HostOp::Param:
    case HostOp::Count:
    case HostOp::Cast:
      return print_call(node);
    default:
      break;
  }
  if (const char* sign = infix(node.op)) {
    const std::string text =
        fmt::format("{} {} {}", print(node.args[0], true), sign, print(node.args[1], true));
    return is_nested ? "(" + text + ")" : text;
  }
  return print_call(node);
}

std::string HostPrinter::print_constant(HostExprId id) const {
  const HostValue value = info_.exprs.const_value(id);
  const std::string bits = fmt::format("bits({}, {:#x})", host_type_name(value.type), value.bits);
  switch (value.type) {
    case HostType::Int:
      return fmt::format("{}", value.as_int());
    case HostType::Bool:
      return value.as_bool() ? "true" : "false";
    case HostType::F32:
      return std::isfinite(value.as_f32()) ? fmt::format("{}f", value.as_f32()) : bits;
    case HostType::F64:
      return std::isfinite(value.as_f64()) ? fmt::format("{}d", value.as_f64()) : bits;
  }
  return "?";
}

std::string HostPrinter::print_named(std::string_view callee, std::uint32_t index,
                                     const std::string& name, const std::string& more) const {
  const auto uses = uses_.find(name);
  const bool is_clear = uses != uses_.end() && uses->second == 1 && is_plain_name(name);
  return is_clear ? name : fmt::format("{}({}{})", callee, index, more);
}

std::string HostPrinter::print_call(const HostExprNode& node) const {
  const auto index = static_cast<std::uint32_t>(node.payload);
  if (node.op == HostOp::Param) {
    // The name alone means the parameter with its usual type.
    const bool is_usual =
        index < info_.params.size() && host_type_of(info_.params[index].dtype) == node.type;
    return print_named("param", index, is_usual ? info_.params[index].name : "",
                       fmt::format(", {}", host_type_name(node.type)));
  }
  if (node.op == HostOp::Count) {
    const bool is_known = index < info_.counts.size();
    return print_named("count", index, is_known ? info_.counts[index].name : "", "");
  }
  std::string text = node.op == HostOp::Cast ? host_type_name(node.type) : host_op_name(node.op);
  text += '(';
  for (int i = 0; i < host_op_num_args(node.op); ++i) {
    text += (i ? ", " : "") + print(node.args[i], false);
  }
  return text + ')';
}

}  // namespace cinch::ir
