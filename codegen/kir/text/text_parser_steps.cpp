// Parser of the text form: host expressions and steps.
#include <algorithm>
#include <bit>

#include "codegen/kir/text/text_parser.h"

namespace cinch::kir {
namespace {

// The deepest nesting of expressions and steps that a text may have.
constexpr int kMaxDepth = 200;

std::optional<HostOp> find_host_op(std::string_view name) {
  static constexpr HostOp kOps[] = {
#define CINCH_HOST_OP(Op, spelling, num_args, rule) HostOp::Op,
#include "runtime/core/sizes/host_expr.def"
  };
  for (HostOp op : kOps) {
    if (host_op_name(op) == name) return op;
  }
  return std::nullopt;
}

}  // namespace

DType parse_dtype_word(Lexer& lexer) {
  const std::string word = lexer.expect_word("a type");
  const std::optional<DType> type = parse_dtype(word);
  if (!type) lexer.fail("unknown type '" + word + "'");
  return type.value_or(DType{});
}

HostExprId HostExprParser::number(bool is_negative) {
  const std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + is_negative;
  const std::uint64_t magnitude = lexer_.expect_number(limit);
  return pool_.const_int(static_cast<std::int64_t>(is_negative ? 0 - magnitude : magnitude));
}

HostExprId HostExprParser::float_bits(bool is_double) {
  lexer_.expect(':');
  const auto bits = parse_number("0x" + lexer_.expect_word("bits"));
  if (!bits) lexer_.fail("expected hexadecimal bits");
  if (is_double) return pool_.const_f64(std::bit_cast<double>(bits.value_or(0)));
  return pool_.const_f32(std::bit_cast<float>(static_cast<std::uint32_t>(bits.value_or(0))));
}

HostType HostExprParser::type() {
  return static_cast<HostType>(expect_name(lexer_, kHostTypeNames));
}

HostExprId HostExprParser::parse_nested(int depth) {
  if (depth > kMaxDepth) lexer_.fail("an expression nested too deeply");
  if (lexer_.failed()) return {};
  if (lexer_.accept('-')) return number(true);
  if (lexer_.peek().kind == TokenKind::Word && parse_number(lexer_.peek().text)) {
    return number(false);
  }
  const std::string name = lexer_.expect_word("an expression");
  if (name == "_") return {};
  if (name == "true" || name == "false") return pool_.const_bool(name == "true");
  if (name == "f32" || name == "f64") return float_bits(name == "f64");
  return operation(name, depth);
}

HostExprId HostExprParser::operation(const std::string& name, int depth) {
  const std::optional<HostOp> op = find_host_op(name);
  if (!op || *op == HostOp::Const)
    return lexer_.fail("unknown expression '" + name + "'"), HostExprId();
  switch (*op) {
    case HostOp::N:
      return pool_.n();
    case HostOp::Rows:
      return pool_.rows();
    case HostOp::Cols:
      return pool_.cols();
    case HostOp::World:
      return pool_.world();
    case HostOp::Step:
      return pool_.step();
    case HostOp::Worker:
      return pool_.worker();
    default:
      break;
  }
  lexer_.expect('(');
  HostExprId result;
  if (*op == HostOp::Param || *op == HostOp::Count) {
    const auto index = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
    lexer_.expect(',');
    result = *op == HostOp::Param ? pool_.param(index, type())
                                  : pool_.count(index, parse_nested(depth + 1));
  } else if (*op == HostOp::Cast) {
    const HostExprId inner = parse_nested(depth + 1);
    lexer_.expect(',');
    const HostType to = type();
    if (!lexer_.failed()) result = pool_.cast(inner, to);
  } else {
    HostExprId args[3];
    for (int i = 0; i < host_op_num_args(*op); ++i) {
      if (i) lexer_.expect(',');
      args[i] = parse_nested(depth + 1);
    }
    if (!lexer_.failed()) result = pool_.make(*op, args[0], args[1], args[2]);
  }
  lexer_.expect(')');
  return result;
}

BufferIndex parse_buffer(Lexer& lexer) {
  lexer.expect('@');
  return static_cast<BufferIndex>(lexer.expect_number(UINT32_MAX));
}

Touch parse_touch(Lexer& lexer) {
  const BufferIndex buffer = parse_buffer(lexer);
  return {buffer, static_cast<Version>(lexer.expect_number(UINT32_MAX))};
}

std::uint32_t StepParser::buffer() {
  return parse_buffer(lexer_);
}

std::vector<rt::Step> StepParser::block(int depth) {
  std::vector<rt::Step> steps;
  if (depth > kMaxDepth) lexer_.fail("steps nested too deeply");
  lexer_.expect('{');
  while (!lexer_.failed() && !lexer_.accept('}')) steps.push_back(step(depth));
  return steps;
}

rt::Step StepParser::step(int depth) {
  const std::string word = lexer_.expect_word("a step");
  rt::Step step;
  if (word == "launch") {
    step.kind = rt::StepKind::Launch;
    step.index = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
    if (lexer_.accept("beside")) {
      step.index2 = 1 + static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX - 1));
    }
  } else if (word == "zero") {
    step.kind = rt::StepKind::Zero;
    step.index = buffer();
  } else if (word == "copy") {
    step.kind = rt::StepKind::Copy;
    step.index = buffer();
    lexer_.expect("from");
    step.index2 = buffer();
  } else if (word == "check") {
    step.kind = rt::StepKind::CheckHost;
    step.expr = exprs_.parse();
    lexer_.expect("message");
    step.index = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
  } else if (word == "if") {
    step.kind = rt::StepKind::If;
    step.index = buffer();
    step.body = block(depth + 1);
    lexer_.expect("else");
    step.orelse = block(depth + 1);
  } else if (word == "while") {
    step.kind = rt::StepKind::While;
    step.index = buffer();
    lexer_.expect("at_most");
    step.expr = exprs_.parse();
    step.cond = block(depth + 1);
    lexer_.expect("do");
    step.body = block(depth + 1);
  } else if (word == "for") {
    step.kind = rt::StepKind::For;
    step.index = buffer();
    step.expr = exprs_.parse();
    lexer_.expect("to");
    step.expr2 = exprs_.parse();
    step.body = block(depth + 1);
  } else if (const auto kind = std::ranges::find(kCollectiveNames, word);
             kind != kCollectiveNames.end()) {
    step.collective.kind = static_cast<rt::CollectiveKind>(kind - kCollectiveNames.begin());
    collective(step);
  } else {
    lexer_.fail("unknown step '" + word + "'");
  }
  return step;
}

void StepParser::collective(rt::Step& step) {
  step.kind = rt::StepKind::Collective;
  step.index = buffer();
  lexer_.expect("from");
  step.index2 = buffer();
  lexer_.expect("by");
  step.collective.reduction = static_cast<rt::RankReduction>(expect_name(lexer_, kReductionNames));
  lexer_.expect("root");
  step.collective.root = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
  for (std::size_t i = 0; i < rt::num_scalars(step.collective.kind); ++i) {
    lexer_.expect("scalar");
    step.scalars.push_back(buffer());
  }
  if (!rt::names_receiver(step.collective.kind)) return;
  lexer_.expect("message");
  step.message = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
}

}  // namespace cinch::kir
