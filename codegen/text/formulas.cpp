// Recursive descent over host expressions; depth is limited, since the text may be untrusted.
#include "codegen/text/formulas.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/core/check.h"
#include "runtime/core/params.h"

namespace cinch::text {
namespace {

constexpr int kMaxDepth = 500;

constexpr std::string_view kReserved[] = {"n",    "r",     "c",     "world", "step", "worker",
                                          "true", "false", "param", "count", "bits"};

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

HostExprId HostParser::make(HostOp op, HostExprId a, HostExprId b, HostExprId c) {
  try {
    return info_.exprs->make(op, a, b, c);
  } catch (const InternalError& error) {
    lexer_.fail(fmt::format("{}: {}", host_op_name(op), error.message()));
  }
}

HostExprId HostParser::parse_expr() {
  if (++depth_ > kMaxDepth) lexer_.fail("expression nested too deeply");
  HostExprId left = parse_term();
  while (lexer_.is("+") || lexer_.is("-")) {
    const HostOp op = lexer_.take().text == "+" ? HostOp::Add : HostOp::Sub;
    left = make(op, left, parse_term());
  }
  --depth_;
  return left;
}

HostExprId HostParser::parse_term() {
  HostExprId left = parse_primary();
  while (lexer_.accept("*")) left = make(HostOp::Mul, left, parse_primary());
  return left;
}

HostExprId HostParser::parse_primary() {
  if (lexer_.accept("(")) {
    const HostExprId inner = parse_expr();
    lexer_.expect(")");
    return inner;
  }
  if (lexer_.is("-") || lexer_.peek().kind == TokenKind::Number) return parse_number();
  const std::string_view name = lexer_.expect_name("a size");
  if (!lexer_.accept("(")) return named(name);
  const HostExprId result = parse_call(name);
  lexer_.expect(")");
  return result;
}

HostExprId HostParser::parse_number() {
  const bool is_negative = lexer_.accept("-");
  if (lexer_.peek().kind != TokenKind::Number) lexer_.fail("expected a number");
  std::string_view text = lexer_.peek().text;
  HostExprPool& exprs = *info_.exprs;
  HostExprId result;
  const bool is_hex = text.substr(0, 2) == "0x";
  if (!is_hex && text.ends_with('f')) {
    text.remove_suffix(1);
    float value = 0;  // parsed as f32 directly: parsing as f64 first would round twice
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || stop != text.data() + text.size()) lexer_.fail("expected an f32");
    result = exprs.const_f32(is_negative ? -value : value);
  } else if (!is_hex && text.ends_with('d')) {
    text.remove_suffix(1);
    const double value = double_of(lexer_, text);
    result = exprs.const_f64(is_negative ? -value : value);
  } else {
    const std::uint64_t bits = integer_bits(lexer_, text);
    result = exprs.const_int(static_cast<std::int64_t>(is_negative ? ~bits + 1 : bits));
  }
  lexer_.take();
  return result;
}

HostExprId HostParser::named(std::string_view name) {
  HostExprPool& exprs = *info_.exprs;
  if (name == "n") return exprs.n();
  if (name == "r") return exprs.rows();
  if (name == "c") return exprs.cols();
  if (name == "world") return exprs.world();
  if (name == "step") return exprs.step();
  if (name == "worker") return exprs.worker();
  if (name == "true" || name == "false") return exprs.const_bool(name == "true");
  for (const auto& size : info_.sizes) {
    if (size.name == name) return size.value;
  }
  for (std::uint32_t i = 0; i < info_.params.size(); ++i) {
    if (info_.params[i].name == name) return exprs.param(i, host_type_of(info_.params[i].dtype));
  }
  for (std::uint32_t i = 0; i < info_.counts.size(); ++i) {
    if (info_.counts[i].name == name) return exprs.count(i, info_.counts[i].bound);
  }
  lexer_.fail(fmt::format("unknown size '{}'", name));
}

HostExprId HostParser::parse_call(std::string_view callee) {
  if (callee == "param" || callee == "count") return parse_indexed(callee);
  if (callee == "bits") {
    const HostType type = expect_host_type();
    lexer_.expect(",");
    return info_.exprs->constant(HostValue{type, lexer_.expect_number("bits")});
  }
  if (const auto type = find_host_type(callee)) return info_.exprs->cast(parse_expr(), *type);
  const std::optional<HostOp> op = find_host_op(callee);
  if (!op || *op == HostOp::Cast || host_op_num_args(*op) == 0)
    lexer_.fail(fmt::format("unknown operation '{}'", callee));
  HostExprId args[3];
  for (int i = 0; i < host_op_num_args(*op); ++i) {
    if (i > 0) lexer_.expect(",");
    args[i] = parse_expr();
  }
  return make(*op, args[0], args[1], args[2]);
}

HostExprId HostParser::parse_indexed(std::string_view callee) {
  const std::uint32_t index = lexer_.expect_index("an index");
  if (callee == "count") {
    if (index >= info_.counts.size()) lexer_.fail("there is no such count");
    return info_.exprs->count(index, info_.counts[index].bound);
  }
  lexer_.expect(",");
  return info_.exprs->param(index, expect_host_type());
}

HostType HostParser::expect_host_type() {
  const auto type = find_host_type(lexer_.expect_name("a type"));
  if (!type) lexer_.fail("expected int, f32, f64 or bool");
  return *type;
}

DType HostParser::parse_dtype() {
  const std::optional<DType> dtype = cinch::parse_dtype(lexer_.expect_name("a type"));
  if (!dtype) lexer_.fail("unknown type");
  return *dtype;
}

rt::ArrayType HostParser::parse_type() {
  const bool is_array = lexer_.accept("[");
  rt::ArrayType type{parse_dtype(), 0, {}};
  if (!is_array) return type;
  lexer_.expect(";");
  type.dims[type.rank++] = parse_expr();
  if (lexer_.accept(",")) type.dims[type.rank++] = parse_expr();
  lexer_.expect("]");
  return type;
}

// Printing host expressions.

HostPrinter::HostPrinter(const rt::ProgramInfo& info, std::size_t visible_sizes) : info_(info) {
  for (std::string_view name : kReserved) ++uses_[std::string(name)];
  for (const auto& param : info.params) ++uses_[param.name];
  for (const auto& count : info.counts) ++uses_[count.name];
  for (const auto& size : info.sizes) ++uses_[size.name];
  for (std::size_t i = 0; i < info.sizes.size() && i < visible_sizes; ++i) name_size(info.sizes[i]);
}

void HostPrinter::name_size(const rt::SizeInfo& size) {
  const bool is_leaf = host_op_num_args(info_.exprs->node(size.value).op) == 0;
  if (is_leaf || uses_[size.name] != 1 || !is_plain_name(size.name)) return;
  size_name_.try_emplace(size.value, size.name);
}

std::string HostPrinter::print(HostExprId id, bool is_nested) const {
  if (!id.is_valid() || id.index() >= info_.exprs->num_nodes()) return "<invalid>";
  if (const auto named = size_name_.find(id); named != size_name_.end()) return named->second;
  return ++num_printed_ > kMostParts ? "…" : print_node(id, is_nested);
}

std::string HostPrinter::print_node(HostExprId id, bool is_nested) const {
  const HostExprNode& node = info_.exprs->node(id);
  switch (node.op) {
    case HostOp::Const:
      return print_constant(id);
    case HostOp::N:
    case HostOp::Rows:
    case HostOp::Cols:
    case HostOp::World:
    case HostOp::MachineRanks:
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
  const HostValue value = info_.exprs->const_value(id);
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

std::string HostPrinter::print(const rt::ArrayType& type) const {
  if (type.rank == 0) return dtype_name(type.dtype);
  const std::string first = print(type.dims[0]);
  if (type.rank == 1) return fmt::format("[{}; {}]", dtype_name(type.dtype), first);
  return fmt::format("[{}; {}, {}]", dtype_name(type.dtype), first, print(type.dims[1]));
}

std::string print_value(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) {
    return is_unsigned_int(dtype) ? fmt::format("{}", bits)
                                  : fmt::format("{}", static_cast<std::int64_t>(bits));
  }
  const double value = std::bit_cast<double>(bits);
  return value == value ? fmt::format("{}", value) : "nan";
}

std::uint64_t parse_value(Lexer& lexer, DType dtype) {
  if (is_float(dtype)) return std::bit_cast<std::uint64_t>(lexer.expect_double());
  const bool is_negative = lexer.accept("-");
  if (lexer.peek().kind != TokenKind::Number) lexer.fail("expected an integer");
  const std::uint64_t bits = integer_bits(lexer, lexer.peek().text);
  lexer.take();
  return is_negative ? ~bits + 1 : bits;
}

}  // namespace cinch::text
