// Kernel programs as text: members of structs by their descriptions, and instructions, one on a
// line.
//
//   program  = (member | kernel)*
//   kernel   = `kernel` `{` (member | combiner)* (section `:` instr*)* `}`
//   combiner = `combiner` N `=` (operation | `(` values `)` `{` instr* `}` `yield` operands)
//   instr    = [%N[.name]: type, … `=`] name[.scalar_op] operand, … @N, … [`{` members `}`]
#include "codegen/kir/text/text.h"

#include <bit>

#include "codegen/kir/compute_type.h"
#include "codegen/text/members.h"
#include "runtime/core/check.h"

namespace cinch::kir {

using text::HostParser;
using text::HostPrinter;
using text::Lexer;
using text::TokenKind;

// Found by the archives through the types of their arguments.

static constexpr std::array<std::string_view, 3> names_of(GroupKind) {
  return {"tile", "row", "single"};
}
static constexpr std::array<std::string_view, 7> names_of(ComputeType) {
  return {"bool", "i32", "u32", "i64", "u64", "f32", "f64"};
}

void describe(auto& a, Touch& x) {
  a.index("buffer", x.buffer)("version", x.version);
}
void describe(auto& a, StepTouch& x) {
  a.index("step", x.step).index("buffer", x.buffer);
  a("first", x.first)("second", x.second)("made", x.made);
}
void describe(auto& a, LocalArray& x) {
  a("type", x.type);
}
void describe(auto& a, Instr& x) {
  if (a.has(x.bits != 0)) a("bits", text::Hex{x.bits});
  if (a.has(x.index != 0)) a("index", x.index);
  a.index("combiner", x.combiner);
  if (a.has(x.from_dtype != DType{})) a("from", x.from_dtype);
  if (a.has(x.dtype != DType{})) a("dtype", x.dtype);
  if (a.has(x.draw.site != 0 || x.draw.shared)) a("site", x.draw.site)("shared", x.draw.shared);
  a("exclusive", x.exclusive)("descending", x.descending);
  a("alike", x.is_alike)("compact", x.is_compact);
}
void describe(auto& a, Kernel& x) {
  describe(a, x.info);
  a("group_kind", x.group_kind)("extent", x.extent)("group_len", x.group_len);
  a("extent_value", x.extent_value)("is_foldable", x.is_foldable);
  a("reads", x.reads)("writes", x.writes)("locals", x.locals);
}
void describe(auto& a, KernelProgram& x) {
  describe(a, x.info);
  a("size_exprs", x.size_exprs)("messages", x.messages)("constant_bytes", x.constants);
  a("buffers", x.buffers);
  const auto name = [](std::size_t i) { return entry_name(static_cast<rt::EntryKind>(i)); };
  for (std::size_t i = 0; i < rt::kNumEntries; ++i) a(name(i), x.entries[i]);
  a("step_touches", x.step_touches);
  for (std::size_t i = 0; i < rt::kNumEntries; ++i) {
    a(fmt::format("{}_leaves", name(i)), x.results[i]);
  }
}

namespace {

// The most values of a kernel's text, so that a wrong number cannot demand too much memory.
constexpr std::uint32_t kMaxValues = 1u << 20;

class Parser {
 public:
  explicit Parser(std::string_view text)
      : lexer_(text), host_(lexer_, program_.info), members_(lexer_, host_) {}

  KernelProgram parse() {
    do members_.members(program_);
    while (lexer_.accept("kernel") && kernel());
    if (!lexer_.is_at_end()) lexer_.fail("expected a member or a kernel");
    text::complete(lexer_, program_.info);
    return std::move(program_);
  }

 private:
  bool kernel() {
    kernel_ = &program_.kernels.emplace_back();
    lexer_.expect("{");
    do members_.members(*kernel_);
    while (lexer_.accept("combiner") && combiner());
    while (!lexer_.accept("}")) section();
    return true;
  }

  bool combiner() {
    const bool is_next = lexer_.expect_index("a number") == kernel_->combiners.size();
    if (!is_next) lexer_.fail("numbers of combiners must ascend from 0");
    lexer_.expect("=");
    Combiner made;
    if (lexer_.accept("(")) {
      made.args = value_defs();
      lexer_.expect(")");
      lexer_.expect("{");
      while (!lexer_.accept("}")) made.body.push_back(instr());
      lexer_.expect("yield");
      made.results = operands();
    } else {
      made.op = scalar_op(lexer_.expect_name("an operation"));
    }
    kernel_->combiners.push_back(std::move(made));
    return true;
  }

  ScalarOp scalar_op(std::string_view name) const {
    const auto op = find_scalar_op(name);
    if (!op) lexer_.fail(fmt::format("unknown operation '{}'", name));
    return *op;
  }

  std::optional<SectionKind> section_ahead() const {
    for (const auto kind : {SectionKind::Kernel, SectionKind::Group, SectionKind::Elements}) {
      // `group` is an instruction too, but then a value stands in front of it.
      if (lexer_.is(section_name(kind))) return kind;
    }
    return std::nullopt;
  }

  void section() {
    const auto kind = section_ahead();
    if (!kind) lexer_.fail("expected a member, a combiner, a section or '}'");
    lexer_.take();
    lexer_.expect(":");
    Section made{*kind, {}};
    while (!lexer_.is("}") && !section_ahead()) made.instrs.push_back(instr());
    kernel_->sections.push_back(std::move(made));
  }

  std::vector<ValueId> value_defs() {
    std::vector<ValueId> values;
    if (lexer_.peek().kind != TokenKind::Value) return values;
    do {
      if (lexer_.peek().kind != TokenKind::Value) lexer_.fail("expected a value");
      if (lexer_.peek().value >= kMaxValues) lexer_.fail("too large a number of a value");
      const text::Token token = lexer_.take();
      lexer_.expect(":");
      const auto type = parse_compute_type(lexer_.expect_name("a compute type"));
      if (!type) lexer_.fail("unknown compute type");
      if (token.value >= kernel_->values.size()) kernel_->values.resize(token.value + 1);
      kernel_->values[token.value] = {*type, token.content};
      values.emplace_back(token.value);
    } while (lexer_.accept(","));
    return values;
  }

  Instr instr() {
    Instr made{};
    made.results = value_defs();
    if (!made.results.empty()) lexer_.expect("=");
    const std::string_view word = lexer_.expect_name("an instruction");
    const std::size_t point = word.find('.');
    const auto kind = find_instr(word.substr(0, point));
    if (!kind) lexer_.fail(fmt::format("unknown instruction '{}'", word));
    made.kind = *kind;
    if (point != std::string_view::npos) made.scalar_op = scalar_op(word.substr(point + 1));
    made.operands = operands();
    if (lexer_.is("@")) {
      do {
        lexer_.expect("@");
        made.buffers.push_back(lexer_.expect_index("a buffer"));
      } while (lexer_.accept(","));
    }
    if (lexer_.is("{")) members_.braces(made);
    return made;
  }

  // A value on another line is the next instruction's result.
  std::vector<ValueId> operands() {
    std::vector<ValueId> values;
    while (!lexer_.peek().starts_line &&
           (lexer_.peek().kind == TokenKind::Value || lexer_.is("_"))) {
      const text::Token token = lexer_.take();
      values.push_back(token.kind == TokenKind::Value ? ValueId(token.value) : ValueId());
      if (!lexer_.accept(",")) break;
    }
    return values;
  }

  KernelProgram program_;
  Lexer lexer_;
  HostParser host_;
  text::Reader members_;
  Kernel* kernel_ = nullptr;
};

std::string ref(ValueId value) {
  return value ? fmt::format("%{}", value.index()) : std::string("_");
}

std::string refs(const std::vector<ValueId>& values) {
  std::string out;
  for (ValueId value : values) out += (out.empty() ? "" : ", ") + ref(value);
  return out;
}

class Printer {
 public:
  Printer(const KernelProgram& program, const Kernel& kernel, HostPrinter& host)
      : program_(program), kernel_(kernel), host_(host) {}

  std::string print() {
    text::Writer head(host_);
    describe(head, const_cast<Kernel&>(kernel_));
    std::string out = "kernel {\n" + text::Writer::indented(head.lines());
    for (std::size_t i = 0; i < kernel_.combiners.size(); ++i) out += combiner(i);
    for (const Section& section : kernel_.sections) {
      out += fmt::format("  {}:\n{}", section_name(section.kind), instrs(section.instrs));
    }
    return out + "}\n";
  }

  std::string print(const Instr& instr) {
    std::string out = instr.results.empty() ? "" : typed(instr.results) + " = ";
    out += instr_info(instr.kind).name;
    if (instr.kind == InstrKind::scalar) {
      out += '.';
      out += scalar_op_info(instr.scalar_op).name;
    }
    if (!instr.operands.empty()) out += " " + refs(instr.operands);
    for (std::size_t i = 0; i < instr.buffers.size(); ++i) {
      out += fmt::format("{}@{}", i ? ", " : " ", instr.buffers[i]);
    }
    text::Writer attributes(host_);
    describe(attributes, const_cast<Instr&>(instr));
    if (!attributes.is_empty()) out += " " + attributes.braces();
    const std::string remark = remark_of(instr);
    return remark.empty() ? out : out + "  // " + remark;
  }

 private:
  std::string instrs(const std::vector<Instr>& list) {
    std::string out;
    for (const Instr& instr : list) out += "    " + print(instr) + '\n';
    return out;
  }

  std::string combiner(std::size_t index) {
    const Combiner& c = kernel_.combiners[index];
    if (c.op) return fmt::format("  combiner {} = {}\n", index, scalar_op_info(*c.op).name);
    return fmt::format("  combiner {} = ({}) {{\n{}  }} yield {}\n", index, typed(c.args),
                       instrs(c.body), refs(c.results));
  }

  std::string typed(const std::vector<ValueId>& values) const {
    std::string out;
    for (const ValueId value : values) {
      out += (out.empty() ? "" : ", ") + ref(value);
      if (value.index() >= kernel_.values.size()) {
        out += ": ?";
        continue;
      }
      const Value& info = kernel_.values[value.index()];
      if (text::is_plain_name(info.name)) out += '.' + info.name;
      out += fmt::format(": {}", compute_type_name(info.type));
    }
    return out;
  }

  // What an instruction's numbers mean, as a comment for people.
  std::string remark_of(const Instr& instr) const {
    const std::uint32_t index = instr.index;
    switch (instr.kind) {
      case InstrKind::constant: {
        if (instr.results.size() != 1 || instr.results[0].index() >= kernel_.values.size()) break;
        const ComputeType type = kernel_.values[instr.results[0].index()].type;
        if (type == ComputeType::F32) {
          return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(instr.bits)));
        }
        return text::print_value(type == ComputeType::F64 ? kF64 : kI64, instr.bits);
      }
      case InstrKind::host_size:
        return index < program_.size_exprs.size() ? host_.print(program_.size_exprs[index]) : "";
      case InstrKind::call_extern:
        return index < program_.info.externs.size() ? program_.info.externs[index].name : "";
      case InstrKind::fail_if:
        return index < program_.messages.size() ? text::quote(program_.messages[index]) : "";
      default:
        break;
    }
    const bool has_buffer = !instr.buffers.empty() && instr.buffers[0] < program_.buffers.size();
    return has_buffer ? program_.buffers[instr.buffers[0]].name : "";
  }

  const KernelProgram& program_;
  const Kernel& kernel_;
  HostPrinter& host_;
};

}  // namespace

std::string print(const KernelProgram& program) {
  HostPrinter host(program.info, 0);
  text::Writer members(host);
  describe(members, const_cast<KernelProgram&>(program));
  // Emitted sources hold this text, and are the same wherever the program was.
  for (const char* name : {"source", "doc"}) members.drop(name);
  std::string out = members.lines();
  for (const Kernel& kernel : program.kernels) out += Printer(program, kernel, host).print();
  return out;
}

std::string print(const KernelProgram& program, const Kernel& kernel) {
  HostPrinter host(program.info);
  return Printer(program, kernel, host).print();
}

std::string print(const KernelProgram& program, const Kernel& kernel, const Instr& instr) {
  HostPrinter host(program.info);
  return Printer(program, kernel, host).print(instr);
}

rt::Result<KernelProgram> parse(std::string_view text) {
  try {
    return Parser(text).parse();
  } catch (const text::ParseFailure& failure) {
    return rt::fail(rt::ErrorKind::InvalidArgument, failure.message);
  } catch (const InternalError& error) {
    // The pool rejects arguments of the wrong type. Here, that is an error of the text.
    return rt::fail(rt::ErrorKind::InvalidArgument, error.message());
  }
}

}  // namespace cinch::kir
