// Functions as text: an op on a line, regions indented, every value before its use.
#include "compiler/ir/text/text.h"

#include <fmt/format.h>

#include <unordered_map>

#include "codegen/text/members.h"
#include "compiler/ir/builder.h"
#include "compiler/ir/ops.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"

namespace cinch::ir {
namespace {

using text::HostParser;
using text::Lexer;
using text::ParseFailure;
using text::Token;
using text::TokenKind;

constexpr int kMaxRegionDepth = 200;

// The attributes of an op, with what is written as a word.
struct OpAttrs {
  OpKind kind;
  DType dtype;  // of the first result
  Attrs& attrs;
  std::string axis = "all", combiner = {};
};

void describe(auto& a, OpAttrs& x) {
  Attrs& v = x.attrs;
  const auto uses = [&](std::uint32_t use) { return uses_attr(x.kind, use); };
  if (uses(AttrUse::Value)) a("value", text::Constant{x.dtype, v.bits});
  if (uses(AttrUse::Width)) a("width", v.bits);
  if (uses(AttrUse::Index)) a("index", v.index);
  if (uses(AttrUse::Size) || (uses(AttrUse::Limit) && a.has(v.has_limit))) {
    a(size_attr_name(x.kind), v.size);
  }
  if (uses(AttrUse::Size2)) a("end", v.size2);
  if (uses(AttrUse::Groups) && a.has(v.size.is_valid())) a("group", v.size)("stride", v.size2);
  if (uses(AttrUse::Axis)) a("axis", text::Word{x.axis});
  if (uses(AttrUse::Exclusive)) a("exclusive", v.exclusive);
  if (uses(AttrUse::Descending)) a("descending", v.descending);
  if (uses(AttrUse::Mean)) a("mean", v.mean);
  if (uses(AttrUse::Proved)) a("proved", v.proved);
  if (uses(AttrUse::InRows)) a("in_rows", v.in_rows);
  if (uses(AttrUse::Draw)) a("site", v.draw.site)("shared", v.draw.shared);
  if (uses(AttrUse::Combiner)) a("combiner", text::Word{x.combiner});
  if (uses(AttrUse::Text)) a("text", v.text);
}

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
    if (lexer_.is("{")) parse_attrs(s);
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
    OpAttrs read{s.kind, s.results.empty() ? kI64 : s.results[0].type.dtype, s.attrs};
    text::Reader(lexer_, host_).braces(read);
    s.attrs.has_limit = uses_attr(s.kind, AttrUse::Limit) && s.attrs.size.is_valid();
    if (read.axis != "all") {
      if (read.axis != "0" && read.axis != "1") lexer_.fail("an axis is 0, 1 or all");
      s.attrs.axis = read.axis == "1" ? 1 : 0;
    }
    s.has_combiner_region = read.combiner == "region";
    if (read.combiner.empty() || s.has_combiner_region) return;
    const auto op = find_scalar_op(read.combiner);
    if (!op) lexer_.fail(fmt::format("unknown operation '{}'", read.combiner));
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
    auto types = mapped<Type>(s.results, &NewValue::type);
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

Table parse_table(Lexer& lexer, HostParser& host) {
  lexer.expect_index("a number");
  lexer.expect(":");
  Table table{host.parse_type(), {}};
  lexer.expect("=");
  lexer.expect("(");
  while (!lexer.accept(")")) {
    if (!table.bits.empty()) lexer.expect(",");
    table.bits.push_back(text::parse_value(lexer, table.type.dtype));
  }
  return table;
}

std::string table_line(const HostPrinter& host, const Table& table, std::size_t index) {
  std::string text = fmt::format("table {}: {} = (", index, host.print(table.type));
  for (std::size_t i = 0; i < table.bits.size(); ++i) {
    text += (i ? ", " : "") + text::print_value(table.type.dtype, table.bits[i]);
  }
  return text + ")\n";
}

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

class FunctionPrinter {
 public:
  FunctionPrinter(const Program& program, const Function& function)
      : function_(function), host_(program.info), numbers_(function.values.size(), -1) {}

  std::string print(std::string_view title) {
    text_ = fmt::format("{} {{\n", title);
    indent_ = 1;
    print_ops(function_.body);
    line(results_text());
    return text_ + "}\n";
  }

 private:
  void line(const std::string& content) {
    text_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + content + '\n';
  }

  // Numbers values in order of appearance; invalid ids print as %?.
  std::string define(ValueId value) {
    if (value.index() >= numbers_.size()) return "%?";
    numbers_[value.index()] = next_++;
    const Value& v = function_.values[value.index()];
    const std::string name = text::is_plain_name(v.name) ? "." + v.name : "";
    return fmt::format("%{}{}: {}", numbers_[value.index()], name, host_.print(v.type));
  }
  std::string use(ValueId value) const {
    if (value.index() >= numbers_.size() || numbers_[value.index()] < 0) return "%?";
    return fmt::format("%{}", numbers_[value.index()]);
  }
  std::string uses(const std::vector<ValueId>& values) const {
    std::string text;
    for (ValueId value : values) text += (text.empty() ? "" : ", ") + use(value);
    return text;
  }
  std::string defines(const std::vector<ValueId>& values) {
    std::string text;
    for (ValueId value : values) text += (text.empty() ? "" : ", ") + define(value);
    return text;
  }

  void print_ops(RegionId region) {
    for (OpId id : function_.regions[region.index()].ops) {
      if (id.index() >= function_.ops.size()) {
        line("<invalid op>");
        continue;
      }
      const Op& op = function_.ops[id.index()];
      if (op.kind != OpKind::arg) print_op(op);
    }
  }

  void print_op(const Op& op) {
    const std::string operands = uses(op.operands);
    std::string head = defines(op.results);
    if (!head.empty()) head += " = ";
    head += op_title(op);
    if (!operands.empty()) head += " " + operands;
    head += attrs_text(op);
    std::vector<RegionId> regions = op.regions;
    if (const Combiner* combiner = combiner_of(op)) {
      if (!combiner->op) regions.push_back(combiner->region);
    }
    print_with_regions(head, regions);
  }

  void print_with_regions(const std::string& head, const std::vector<RegionId>& regions) {
    std::string pending = head;
    for (RegionId region : regions) {
      if (region.index() >= function_.regions.size()) {
        pending += " (<invalid region>)";
        continue;
      }
      line(pending + " (" + defines(function_.regions[region.index()].args) + ") {");
      ++indent_;
      print_ops(region);
      --indent_;
      pending = "}";
    }
    line(pending);
  }

  const Combiner* combiner_of(const Op& op) const {
    const bool reads = uses_attr(op.kind, AttrUse::Combiner);
    if (!reads || op.attrs.combiner.index() >= function_.combiners.size()) return nullptr;
    return &function_.combiners[op.attrs.combiner.index()];
  }

  std::string attrs_text(const Op& op) {
    const bool is_known = !op.results.empty() && op.results[0].index() < function_.values.size();
    const DType dtype = is_known ? function_.values[op.results[0].index()].type.dtype : kI64;
    OpAttrs attrs{op.kind, dtype, const_cast<Attrs&>(op.attrs)};
    if (op.attrs.axis != kAll) attrs.axis = fmt::format("{}", op.attrs.axis);
    const Combiner* combiner = combiner_of(op);
    attrs.combiner = !combiner      ? "<invalid>"
                     : combiner->op ? std::string(scalar_op_info(*combiner->op).name)
                                    : "region";
    text::Writer writer(host_);
    describe(writer, attrs);
    return writer.is_empty() ? std::string() : ' ' + writer.braces();
  }

  std::string results_text() const {
    const Results& r = function_.results;
    std::string text = "results";
    if (r.output.is_valid()) text += fmt::format(" output({})", use(r.output));
    if (!r.fields.empty()) text += fmt::format(" fields({})", uses(r.fields));
    if (!r.counts.empty()) text += fmt::format(" counts({})", uses(r.counts));
    if (!r.states.empty()) text += fmt::format(" states({})", uses(r.states));
    return text;
  }

  const Function& function_;
  HostPrinter host_;
  std::vector<int> numbers_;
  int next_ = 0;
  int indent_ = 0;
  std::string text_;
};

}  // namespace

std::string op_title(const Op& op) {
  std::string title(op_info(op.kind).name);
  if (uses_attr(op.kind, AttrUse::Scalar)) {
    title += "." + std::string(scalar_op_info(op.attrs.scalar_op).name);
  }
  return title;
}

std::string_view size_attr_name(OpKind kind) {
  switch (kind) {
    case OpKind::slice:
    case OpKind::for_loop:
      return "begin";
    case OpKind::while_loop:
      return "at_most";
    case OpKind::nonzero:
      return "limit";
    case OpKind::check_index:
    case OpKind::random_index:
      return "below";
    case OpKind::check_unique:
      return "cells";
    case OpKind::check_host:
      return "holds";
    default:
      return "size";
  }
}

std::string print(const Program& program, const Function& function) {
  return FunctionPrinter(program, function).print(function_kind_name(function.kind));
}

std::string print(const Program& program) {
  HostPrinter host(program.info, 0);
  text::Writer head(host);
  describe(head, const_cast<rt::ProgramInfo&>(program.info));
  std::string text = head.lines();
  for (std::size_t i = 0; i < program.tables.size(); ++i) {
    text += table_line(host, program.tables[i], i);
  }
  for (const Function& init : program.state_inits) {
    text += FunctionPrinter(program, init).print("init");
  }
  for (const Function& function : program.functions) text += print(program, function);
  return text;
}

rt::Result<Program> parse(std::string_view text) {
  try {
    Lexer lexer(text);
    Program program;
    HostParser host(lexer, program.info);
    text::Reader members(lexer, host);
    members.members(program.info);
    while (lexer.accept("table")) {
      program.tables.push_back(parse_table(lexer, host));
      members.members(program.info);
    }
    text::complete(lexer, program.info);
    while (!lexer.is_at_end()) parse_function(lexer, program);
    return program;
  } catch (const ParseFailure& failure) {
    return rt::fail(rt::ErrorKind::InvalidArgument, failure.message);
  } catch (const InternalError& error) {
    return rt::fail(rt::ErrorKind::InvalidArgument, error.message());
  }
}

}  // namespace cinch::ir
