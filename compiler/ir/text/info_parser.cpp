// One function per kind of line of the head.
#include "compiler/ir/text/head.h"

#include <fmt/format.h>

#include <bit>

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

}  // namespace cinch::ir
