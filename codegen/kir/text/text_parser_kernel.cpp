// Parser of the text form: kernels, their combiners, sections and instructions.
#include "codegen/kir/compute_type.h"
#include "codegen/kir/instr_info.h"
#include "codegen/kir/text/text_lexer.h"
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

}  // namespace cinch::kir
