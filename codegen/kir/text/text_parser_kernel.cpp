// The parser of the text form: host expressions and steps, kernels, combiners, sections and
// instructions.
#include <algorithm>
#include <bit>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/text/text_parser.h"

namespace cinch::kir {
namespace {

// The most values of a kernel's text, so that a wrong number cannot demand too much memory.
constexpr std::uint64_t kMaxValues = 1u << 20;

}  // namespace

Kernel KernelParser::parse() {
  kernel_.info.symbol = lexer_.expect_string();
  kernel_.info.role = static_cast<rt::KernelRole>(expect_name(lexer_, kKernelRoleNames));
  kernel_.group_kind = static_cast<GroupKind>(expect_name(lexer_, kGroupKindNames));
  lexer_.expect('{');
  while (!lexer_.failed() && !at_section() && head_item()) {
  }
  while (!lexer_.failed() && !lexer_.accept('}')) section();
  return std::move(kernel_);
}

bool KernelParser::at_section() const {
  return lexer_.is_word("kernel") || lexer_.is_word("group") || lexer_.is_word("elements");
}

bool KernelParser::head_item() {
  if (lexer_.is_mark('}')) return false;
  const std::string word = lexer_.expect_word("a line of the kernel's head");
  rt::KernelInfo& info = kernel_.info;
  if (word == "extent") {
    kernel_.extent = exprs_.parse();
  } else if (word == "group_len") {
    kernel_.group_len = exprs_.parse();
  } else if (word == "groups") {
    info.num_groups = exprs_.parse();
  } else if (word == "extent_value") {
    kernel_.extent_value = value_ref();
  } else if (word == "multiple") {
    info.group_multiple = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
  } else if (word == "ordered") {
    info.is_ordered = true;
  } else if (word == "sequential") {
    info.is_sequential = true;
  } else if (word == "foldable") {
    kernel_.is_foldable = true;
  } else if (word == "fused") {
    info.fused.push_back(lexer_.expect_string());
  } else if (word == "bytes_read") {
    info.bytes_read = exprs_.parse();
  } else if (word == "bytes_written") {
    info.bytes_written = exprs_.parse();
  } else if (word == "reads") {
    kernel_.reads.push_back(parse_touch(lexer_));
  } else if (word == "writes") {
    kernel_.writes.push_back(parse_touch(lexer_));
  } else if (word == "local") {
    const std::string type = lexer_.expect_word("a compute type");
    const auto parsed = parse_compute_type(type);
    if (!parsed) lexer_.fail("unknown compute type '" + type + "'");
    kernel_.locals.push_back({parsed.value_or(ComputeType::F32)});
  } else if (word == "combiner") {
    combiner();
  } else {
    lexer_.fail("unknown line '" + word + "' in a kernel's head");
  }
  return true;
}

void KernelParser::combiner() {
  if (lexer_.expect_number() != kernel_.combiners.size()) {
    lexer_.fail("numbers of combiners must ascend from 0");
  }
  lexer_.expect('=');
  Combiner made;
  if (!lexer_.accept('(')) {
    const std::string name = lexer_.expect_word("an operation");
    made.op = find_scalar_op(name);
    if (!made.op) lexer_.fail("unknown operation '" + name + "'");
  } else {
    made.args = value_defs();
    lexer_.expect(')');
    lexer_.expect('{');
    while (!lexer_.failed() && !lexer_.accept('}')) made.body.push_back(instr());
    lexer_.expect("yield");
    while (lexer_.is_mark('%')) {
      made.results.push_back(value_ref());
      lexer_.accept(',');
    }
  }
  kernel_.combiners.push_back(std::move(made));
}

void KernelParser::section() {
  const std::string word = lexer_.expect_word("a section");
  SectionKind kind = SectionKind::Kernel;
  if (word == "group") {
    kind = SectionKind::Group;
  } else if (word == "elements") {
    kind = SectionKind::Elements;
  } else if (word != "kernel") {
    return lexer_.fail("unknown section '" + word + "'");
  }
  lexer_.expect(':');
  Section made{kind, {}};
  while (!lexer_.failed() && !lexer_.is_mark('}')) {
    // `group` is an instruction too, but then a value stands in front of it.
    if (at_section()) break;
    made.instrs.push_back(instr());
  }
  kernel_.sections.push_back(std::move(made));
}

ValueId KernelParser::value_ref() {
  if (lexer_.accept("_")) return {};
  lexer_.expect('%');
  const std::uint64_t index = lexer_.expect_number(kMaxValues);
  return ValueId(index);
}

ValueId KernelParser::value_def() {
  lexer_.expect('%');
  const std::string word = lexer_.expect_word("a value's number");
  const std::size_t dot = word.find('.');
  const auto index = parse_number(word.substr(0, dot));
  if (!index || *index >= kMaxValues)
    return lexer_.fail("not a value's number: " + word), ValueId();
  lexer_.expect(':');
  const std::string type = lexer_.expect_word("a compute type");
  const auto parsed = parse_compute_type(type);
  if (!parsed) return lexer_.fail("unknown compute type '" + type + "'"), ValueId();
  if (*index >= kernel_.values.size()) kernel_.values.resize(*index + 1);
  kernel_.values[*index].type = *parsed;
  if (dot != std::string::npos) kernel_.values[*index].name = word.substr(dot + 1);
  return ValueId(*index);
}

std::vector<ValueId> KernelParser::value_defs() {
  std::vector<ValueId> values;
  while (lexer_.is_mark('%')) {
    values.push_back(value_def());
    if (!lexer_.accept(',')) break;
  }
  return values;
}

DType KernelParser::dtype() {
  lexer_.expect('=');
  return parse_dtype_word(lexer_);
}

Instr KernelParser::instr() {
  Instr made{};
  made.results = value_defs();
  if (!made.results.empty()) lexer_.expect('=');
  const int line = lexer_.peek().line;
  const std::string word = lexer_.expect_word("an instruction");
  const std::size_t dot = word.find('.');
  const auto kind = find_instr(word.substr(0, dot));
  if (!kind) return lexer_.fail("unknown instruction '" + word + "'"), made;
  made.kind = *kind;
  if (dot != std::string::npos) {
    const auto op = find_scalar_op(word.substr(dot + 1));
    if (!op) lexer_.fail("unknown operation '" + word + "'");
    made.scalar_op = op.value_or(ScalarOp::add);
  }
  operands(made, line);
  while (!lexer_.failed() && attribute(made)) {
  }
  return made;
}

// A value on another line is the next instruction's result.
void KernelParser::operands(Instr& instr, int line) {
  const auto on_line = [&] { return lexer_.peek().line == line; };
  while (on_line() && (lexer_.is_mark('%') || lexer_.is_word("_"))) {
    instr.operands.push_back(value_ref());
    if (!lexer_.accept(',')) break;
  }
  while (on_line() && lexer_.accept('@')) {
    instr.buffers.push_back(static_cast<BufferIndex>(lexer_.expect_number(UINT32_MAX)));
    if (!lexer_.accept(',')) break;
  }
}

bool KernelParser::attribute(Instr& instr) {
  if (lexer_.accept("exclusive")) return instr.exclusive = true;
  if (lexer_.accept("descending")) return instr.descending = true;
  if (lexer_.accept("alike")) return instr.is_alike = true;
  if (lexer_.accept("compact")) return instr.is_compact = true;
  if (lexer_.accept("dtype")) return instr.dtype = dtype(), true;
  if (lexer_.accept("from")) return instr.from_dtype = dtype(), true;
  if (lexer_.accept("bits")) {
    lexer_.expect('=');
    instr.bits = lexer_.expect_number();
  } else if (lexer_.accept("index")) {
    lexer_.expect('=');
    instr.index = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
  } else if (lexer_.accept("combiner")) {
    lexer_.expect('=');
    instr.combiner = static_cast<std::uint32_t>(lexer_.expect_number(UINT32_MAX));
  } else if (lexer_.accept("draw")) {
    lexer_.expect('=');
    std::string word = lexer_.expect_word("a draw");
    instr.draw.shared = word.starts_with("shared.");
    const auto site = parse_number(instr.draw.shared ? std::string_view(word).substr(7) : word);
    if (!site || *site > UINT32_MAX) return lexer_.fail("not a draw's number: " + word), false;
    instr.draw.site = static_cast<std::uint32_t>(*site);
  } else {
    return false;
  }
  return true;
}

// Parser of the text form: host expressions and steps.

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
