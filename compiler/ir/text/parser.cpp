// Parses functions: ops in order, every value before its use; then the public ir::parse.
#include <fmt/format.h>

#include <unordered_map>

#include "compiler/ir/builder.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/text/lexer.h"
#include "compiler/ir/text/text.h"
#include "runtime/core/check.h"

namespace cinch::ir {
namespace {

constexpr int kMaxRegionDepth = 200;

// A value on the left of `=` or among a region's args.
struct NewValue {
  std::uint32_t number;
  std::string name;
  Type type;
};

class FunctionParser {
 public:
  FunctionParser(Lexer& lexer, Program& program, Function& function)
      : lexer_(lexer),
        host_(lexer, program.info),
        function_(function),
        builder_(program, function) {}

  void parse() {
    lexer_.expect("{");
    while (!lexer_.is("results")) parse_op();
    parse_results();
    lexer_.expect("}");
  }

 private:
  struct Statement {
    std::vector<NewValue> results;
    OpKind kind = OpKind::yield;
    Attrs attrs;
    ValueIds operands;
    std::vector<RegionId> regions;
    bool has_combiner_region = false;
  };

  NewValue parse_new_value() {
    if (lexer_.peek().kind != TokenKind::Value) lexer_.fail("expected a value");
    const Token token = lexer_.take();
    lexer_.expect(":");
    return {token.value, token.content, host_.parse_type()};
  }

  void define(const NewValue& value, ValueId id) {
    if (!values_.emplace(value.number, id).second) {
      lexer_.fail(fmt::format("%{} is defined twice", value.number));
    }
    builder_.set_name(id, value.name);
  }

  ValueId parse_use() {
    if (lexer_.peek().kind != TokenKind::Value) lexer_.fail("expected a value");
    const auto found = values_.find(lexer_.peek().value);
    if (found == values_.end()) {
      lexer_.fail(fmt::format("%{} is not defined", lexer_.peek().value));
    }
    lexer_.take();
    return found->second;
  }

  ValueIds parse_uses() {
    ValueIds values;
    if (lexer_.peek().kind != TokenKind::Value) return values;
    do values.push_back(parse_use());
    while (lexer_.accept(","));
    return values;
  }

  void parse_op() {
    Statement s;
    if (lexer_.peek().kind == TokenKind::Value) {
      do s.results.push_back(parse_new_value());
      while (lexer_.accept(","));
      lexer_.expect("=");
    }
    parse_title(s);
    // If the op has no operands, a following value begins the next line.
    if (op_info(s.kind).max_operands != 0) s.operands = parse_uses();
    if (lexer_.accept("{")) parse_attrs(s);
    while (lexer_.is("(")) s.regions.push_back(parse_region());
    if (s.has_combiner_region) take_combiner_region(s);
    add(s);
  }

  void parse_title(Statement& s) {
    const std::string_view title = lexer_.expect_name("an op");
    const std::size_t point = title.find('.');
    const std::optional<OpKind> kind = find_op_kind(title.substr(0, point));
    if (!kind || *kind == OpKind::arg) lexer_.fail(fmt::format("unknown op '{}'", title));
    s.kind = *kind;
    if (uses_attr(s.kind, AttrUse::Scalar) != (point != std::string_view::npos)) {
      lexer_.fail(fmt::format("'{}' needs an operation behind a point, and only map does", title));
    }
    if (point == std::string_view::npos) return;
    const auto op = find_scalar_op(title.substr(point + 1));
    if (!op) lexer_.fail(fmt::format("unknown operation '{}'", title));
    s.attrs.scalar_op = *op;
  }

  void parse_attrs(Statement& s) {
    do {
      const std::string_view name = lexer_.expect_name("an attribute");
      if (parse_flag(name, s.attrs)) continue;
      lexer_.expect("=");
      parse_attr(name, s);
    } while (lexer_.accept(","));
    lexer_.expect("}");
  }

  static bool parse_flag(std::string_view name, Attrs& attrs) {
    if (name == "exclusive") return attrs.exclusive = true;
    if (name == "descending") return attrs.descending = true;
    if (name == "mean") return attrs.mean = true;
    if (name == "proved") return attrs.proved = true;
    if (name == "in_rows") return attrs.in_rows = true;
    return false;
  }

  void parse_attr(std::string_view name, Statement& s) {
    Attrs& a = s.attrs;
    if (name == "value") {
      a.bits = parse_value(lexer_, s.results.empty() ? kI64 : s.results[0].type.dtype);
    } else if (name == "width") {
      a.bits = lexer_.expect_index("a width");
    } else if (name == "index") {
      a.index = lexer_.expect_index("an index");
    } else if (name == "end") {
      a.size2 = host_.parse_expr();
    } else if (name == "axis") {
      a.axis = parse_axis();
    } else if (name == "site" || name == "shared_site") {
      a.draw = {lexer_.expect_index("a site"), name == "shared_site"};
    } else if (name == "combiner") {
      parse_combiner(s);
    } else if (name == "text") {
      a.text = lexer_.expect_text("a text");
    } else if (name == size_attr_name(s.kind)) {
      a.size = host_.parse_expr();
      a.has_limit = uses_attr(s.kind, AttrUse::Limit);
    } else {
      lexer_.fail(fmt::format("unknown attribute '{}'", name));
    }
  }

  std::int8_t parse_axis() {
    if (lexer_.accept("all")) return kAll;
    const std::uint32_t axis = lexer_.expect_index("an axis");
    if (axis > 1) lexer_.fail("an axis is 0, 1 or all");
    return static_cast<std::int8_t>(axis);
  }

  void parse_combiner(Statement& s) {
    const std::string_view name = lexer_.expect_name("an operation");
    s.has_combiner_region = name == "region";
    if (s.has_combiner_region) return;
    const auto op = find_scalar_op(name);
    if (!op) lexer_.fail(fmt::format("unknown operation '{}'", name));
    s.attrs.combiner = builder_.combiner(*op);
  }

  void take_combiner_region(Statement& s) {
    if (s.regions.empty()) lexer_.fail("expected the region of the combiner");
    function_.combiners.push_back({std::nullopt, s.regions.back()});
    s.attrs.combiner = CombinerId(function_.combiners.size() - 1);
    s.regions.pop_back();
  }

  RegionId parse_region() {
    if (++depth_ > kMaxRegionDepth) lexer_.fail("regions nested too deeply");
    const RegionId outer = builder_.region();
    const RegionId region = builder_.new_region();
    lexer_.expect("(");
    while (!lexer_.accept(")")) {
      if (!function_.regions[region.index()].args.empty()) lexer_.expect(",");
      const NewValue arg = parse_new_value();
      define(arg, builder_.add_arg(region, arg.type));
    }
    builder_.set_insertion(region);
    lexer_.expect("{");
    while (!lexer_.accept("}")) parse_op();
    builder_.set_insertion(outer);
    --depth_;
    return region;
  }

  void add(Statement& s) {
    std::vector<Type> types;
    types.reserve(s.results.size());
    for (const NewValue& value : s.results) types.push_back(value.type);
    const OpId op = builder_.add(s.kind, std::move(s.operands), std::move(types),
                                 std::move(s.attrs), std::move(s.regions));
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      define(s.results[i], builder_.result(op, i));
    }
  }

  ValueIds parse_list() {
    lexer_.expect("(");
    ValueIds values = parse_uses();
    lexer_.expect(")");
    return values;
  }

  void parse_results() {
    Results& results = function_.results;
    lexer_.expect("results");
    if (lexer_.accept("output")) {
      const ValueIds output = parse_list();
      if (output.size() != 1) lexer_.fail("expected one output");
      results.output = output.front();
    }
    if (lexer_.accept("fields")) results.fields = parse_list();
    if (lexer_.accept("counts")) results.counts = parse_list();
    if (lexer_.accept("states")) results.states = parse_list();
  }

  Lexer& lexer_;
  HostParser host_;
  Function& function_;
  Builder builder_;
  std::unordered_map<std::uint32_t, ValueId> values_;
  int depth_ = 0;
};

void parse_function(Lexer& lexer, Program& program) {
  const std::string_view title = lexer.expect_name("a function");
  if (title == "init") {
    Function function = make_function(FunctionKind::Encode);
    FunctionParser(lexer, program, function).parse();
    program.state_inits.push_back(std::move(function));
    return;
  }
  for (FunctionKind kind :
       {FunctionKind::Encode, FunctionKind::Decode, FunctionKind::Finish, FunctionKind::Sync}) {
    if (title != function_kind_name(kind)) continue;
    if (program.find(kind)) lexer.fail(fmt::format("a second '{}'", title));
    Function function = make_function(kind);
    FunctionParser(lexer, program, function).parse();
    program.functions.push_back(std::move(function));
    return;
  }
  lexer.fail(fmt::format("expected a function, found '{}'", title));
}

}  // namespace

rt::Result<Program> parse(std::string_view text) {
  try {
    Lexer lexer(text);
    Program program;
    parse_info(lexer, program);
    while (!lexer.is_at_end()) parse_function(lexer, program);
    return program;
  } catch (const ParseFailure& failure) {
    return rt::fail(rt::ErrorKind::InvalidArgument, failure.message);
  } catch (const InternalError& error) {
    return rt::fail(rt::ErrorKind::InvalidArgument, error.message());
  }
}

}  // namespace cinch::ir
