// The head of the IR's text form: one function per kind of line, read and printed.
#include <fmt/format.h>

#include <bit>

#include "compiler/ir/text/lexer.h"
#include "compiler/ir/text/text.h"
#include "runtime/core/hash.h"

namespace cinch::ir {
namespace {

class InfoParser {
 public:
  InfoParser(Lexer& lexer, Program& program)
      : lexer_(lexer), program_(program), info_(program.info), host_(lexer, program.info) {}

  bool parse_line() {
    if (lexer_.accept("program")) return info_.name = lexer_.expect_text("a name"), true;
    if (lexer_.accept("source")) return info_.source = lexer_.expect_text("a name"), true;
    if (lexer_.accept("doc")) return info_.doc = lexer_.expect_text("a text"), true;
    if (lexer_.accept("constant")) return parse_constant(), true;
    if (lexer_.accept("param")) return parse_param(), true;
    if (lexer_.accept("size")) return parse_size(), true;
    if (lexer_.accept("count")) return parse_count(), true;
    if (lexer_.accept("state")) return parse_state(), true;
    if (lexer_.accept("wire")) return parse_wire(), true;
    if (lexer_.accept("extern")) return parse_extern(), true;
    if (lexer_.accept("flag")) return parse_flag(), true;
    if (lexer_.accept("aggregation")) return parse_aggregation(), true;
    if (lexer_.accept("table")) return parse_table(), true;
    return false;
  }

 private:
  void parse_constant() {
    rt::ConstantInfo constant;
    constant.name = lexer_.expect_text("a name");
    lexer_.expect("=");
    constant.value = lexer_.expect_double();
    info_.constants.push_back(std::move(constant));
  }

  void parse_param() {
    rt::ParamInfo param;
    param.name = lexer_.expect_text("a name");
    lexer_.expect(":");
    param.dtype = host_.parse_type().dtype;
    lexer_.expect("=");
    param.default_value = lexer_.expect_double();
    if (lexer_.accept("in")) param.range = parse_range();
    info_.params.push_back(std::move(param));
  }

  rt::ParamRange parse_range() {
    rt::ParamRange range;
    range.low_open = lexer_.is("(");
    if (!lexer_.accept("(")) lexer_.expect("[");
    if (!lexer_.accept("none")) range.low = lexer_.expect_double();
    lexer_.expect(",");
    if (!lexer_.accept("none")) range.high = lexer_.expect_double();
    range.high_open = lexer_.is(")");
    if (!lexer_.accept(")")) lexer_.expect("]");
    return range;
  }

  void parse_size() {
    rt::SizeInfo size;
    size.name = lexer_.expect_text("a name");
    lexer_.expect("=");
    size.value = host_.parse_expr();
    info_.sizes.push_back(std::move(size));
  }

  void parse_count() {
    rt::CountInfo count;
    count.name = lexer_.expect_text("a name");
    lexer_.expect("<=");
    count.bound = host_.parse_expr();
    info_.counts.push_back(std::move(count));
  }

  void parse_state() {
    rt::StateInfo state;
    state.name = lexer_.expect_text("a name");
    lexer_.expect(":");
    state.type = host_.parse_type();
    info_.states.push_back(std::move(state));
  }

  void parse_extern() {
    rt::ExternInfo function;
    function.name = lexer_.expect_text("a name");
    lexer_.expect("(");
    while (!lexer_.accept(")")) {
      if (!function.params.empty()) lexer_.expect(",");
      function.params.push_back(host_.parse_type().dtype);
    }
    lexer_.expect("-");
    lexer_.expect(">");
    function.result = host_.parse_type().dtype;
    lexer_.expect("work");
    function.work = lexer_.expect_index("a number of operations");
    function.source = lexer_.expect_text("a text");
    const Hash128 digest = hash128(function.source);
    function.digest = {digest.low, digest.high};
    info_.externs.push_back(std::move(function));
  }

  void parse_wire() {
    lexer_.expect("counts");
    const std::uint32_t counts = lexer_.expect_index("a number of counts");
    if (counts > info_.counts.size()) lexer_.fail("the wire has more counts than the program");
    info_.wire.counts.assign(info_.counts.begin(), info_.counts.begin() + counts);
    lexer_.expect("{");
    while (!lexer_.accept("}")) info_.wire.fields.push_back(parse_field());
  }

  rt::FieldInfo parse_field() {
    rt::FieldInfo field;
    field.name = lexer_.expect_text("a field");
    lexer_.expect(":");
    field.type = host_.parse_type();
    if (lexer_.accept("by")) {
      if (lexer_.accept("sum"))
        field.sum = rt::FieldSum::Sum;
      else if (lexer_.accept("min"))
        field.sum = rt::FieldSum::Min;
      else if (lexer_.accept("max"))
        field.sum = rt::FieldSum::Max;
      else
        lexer_.fail("expected sum, min or max");
    }
    field.ascending = lexer_.accept("ascending");
    if (lexer_.accept("below")) field.index_limit = host_.parse_expr();
    if (lexer_.accept("packs")) field.packing = lexer_.expect_text("what is packed");
    return field;
  }

  void parse_flag() {
    const std::string_view name = lexer_.expect_name("a flag");
    if (name == "matrix")
      info_.is_matrix = true;
    else if (name == "decode_draws")
      info_.decode_draws = true;
    else if (name == "decode_world")
      info_.decode_world = true;
    else if (name == "decode_step")
      info_.decode_step = true;
    else if (name == "has_finish")
      info_.has_finish = true;
    else if (name == "linear_finish")
      info_.is_finish_linear = true;
    else if (name == "is_local")
      info_.is_local = true;
    else if (name == "has_sync")
      info_.has_sync = true;
    else
      lexer_.fail(fmt::format("unknown flag '{}'", name));
  }

  void parse_aggregation() {
    const std::string_view name = lexer_.expect_name("a kind");
    if (name == "gather")
      info_.aggregation = rt::Aggregation::Gather;
    else if (name == "sum_proved")
      info_.aggregation = rt::Aggregation::SumProved;
    else if (name == "sum_to_test")
      info_.aggregation = rt::Aggregation::SumToTest;
    else
      lexer_.fail(fmt::format("unknown aggregation '{}'", name));
  }

  void parse_table() {
    lexer_.expect_index("a number");
    lexer_.expect(":");
    Table table;
    table.type = host_.parse_type();
    lexer_.expect("=");
    lexer_.expect("(");
    while (!lexer_.accept(")")) {
      if (!table.bits.empty()) lexer_.expect(",");
      table.bits.push_back(parse_value(lexer_, table.type.dtype));
    }
    program_.tables.push_back(std::move(table));
  }

  Lexer& lexer_;
  Program& program_;
  rt::ProgramInfo& info_;
  HostParser host_;
};

}  // namespace

std::uint64_t parse_value(Lexer& lexer, DType dtype) {
  if (is_float(dtype)) return std::bit_cast<std::uint64_t>(lexer.expect_double());
  const bool is_negative = lexer.accept("-");
  if (lexer.peek().kind != TokenKind::Number) lexer.fail("expected an integer");
  const std::uint64_t bits = integer_bits(lexer, lexer.peek().text);
  lexer.take();
  return is_negative ? ~bits + 1 : bits;
}

void parse_info(Lexer& lexer, Program& program) {
  InfoParser parser(lexer, program);
  while (parser.parse_line()) {
  }
}

// Printing ProgramInfo and constant tables.

namespace {

std::string name_text(const std::string& name) {
  return is_plain_name(name) ? name : quote(name);
}

std::string print_range(const rt::ParamRange& range) {
  const auto side = [](const std::optional<double>& x) {
    return x ? fmt::format("{}", *x) : std::string("none");
  };
  return fmt::format(" in {}{}, {}{}", range.low_open ? '(' : '[', side(range.low),
                     side(range.high), range.high_open ? ')' : ']');
}

std::string param_line(const rt::ParamInfo& param) {
  return fmt::format("param {}: {} = {}{}\n", name_text(param.name), dtype_name(param.dtype),
                     param.default_value, param.range ? print_range(*param.range) : "");
}

std::string extern_line(const rt::ExternInfo& function) {
  std::string types;
  for (const DType param : function.params) {
    types += (types.empty() ? "" : ", ") + dtype_name(param);
  }
  return fmt::format("extern {}({}) -> {} work {} {}\n", name_text(function.name), types,
                     dtype_name(function.result), function.work, quote(function.source));
}

std::string wire_block(const rt::ProgramInfo& info, const HostPrinter& host) {
  constexpr const char* kSums[] = {"", " by sum", " by min", " by max"};
  std::string text = fmt::format("wire counts {} {{\n", info.wire.counts.size());
  for (const rt::FieldInfo& field : info.wire.fields) {
    text += fmt::format("  {}: {}{}{}", name_text(field.name), print_type(host, field.type),
                        kSums[static_cast<int>(field.sum)], field.ascending ? " ascending" : "");
    if (field.index_limit) text += " below " + host.print(*field.index_limit);
    if (!field.packing.empty()) text += " packs " + quote(field.packing);
    text += '\n';
  }
  return text + "}\n";
}

std::string flag_lines(const rt::ProgramInfo& info) {
  std::string text;
  if (info.is_matrix) text += "flag matrix\n";
  if (info.decode_draws) text += "flag decode_draws\n";
  if (info.decode_world) text += "flag decode_world\n";
  if (info.decode_step) text += "flag decode_step\n";
  if (info.has_finish) text += "flag has_finish\n";
  if (info.is_finish_linear) text += "flag linear_finish\n";
  if (info.is_local) text += "flag is_local\n";
  if (info.has_sync) text += "flag has_sync\n";
  constexpr const char* kNames[] = {"gather", "sum_proved", "sum_to_test"};
  return text + fmt::format("aggregation {}\n", kNames[static_cast<int>(info.aggregation)]);
}

std::string table_line(const Program& program, const HostPrinter& host, std::size_t index) {
  const Table& table = program.tables[index];
  std::string text = fmt::format("table {}: {} = (", index, print_type(host, table.type));
  for (std::size_t i = 0; i < table.bits.size(); ++i) {
    text += (i ? ", " : "") + print_value(table.type.dtype, table.bits[i]);
  }
  return text + ")\n";
}

}  // namespace

std::string print_value(DType dtype, std::uint64_t bits) {
  if (!is_float(dtype)) {
    return is_unsigned_int(dtype) ? fmt::format("{}", bits)
                                  : fmt::format("{}", static_cast<std::int64_t>(bits));
  }
  const double value = std::bit_cast<double>(bits);
  return value == value ? fmt::format("{}", value) : "nan";
}

std::string print_info(const Program& program) {
  const rt::ProgramInfo& info = program.info;
  const HostPrinter host(info);
  std::string text = "program " + quote(info.name) + "\n";
  if (!info.source.empty()) text += "source " + quote(info.source) + "\n";
  if (!info.doc.empty()) text += "doc " + quote(info.doc) + "\n";
  for (const auto& constant : info.constants) {
    text += fmt::format("constant {} = {}\n", name_text(constant.name), constant.value);
  }
  for (const auto& param : info.params) text += param_line(param);
  HostPrinter earlier(info, 0);
  for (const auto& size : info.sizes) {
    text += fmt::format("size {} = {}\n", name_text(size.name), earlier.print(size.value));
    earlier.name_size(size);
  }
  for (const auto& count : info.counts) {
    text += fmt::format("count {} <= {}\n", name_text(count.name), host.print(count.bound));
  }
  for (const auto& state : info.states) {
    text += fmt::format("state {}: {}\n", name_text(state.name), print_type(host, state.type));
  }
  for (const auto& function : info.externs) text += extern_line(function);
  if (!info.wire.fields.empty() || !info.wire.counts.empty()) text += wire_block(info, host);
  text += flag_lines(info);
  for (std::size_t i = 0; i < program.tables.size(); ++i) text += table_line(program, host, i);
  return text;
}

}  // namespace cinch::ir
