// Printing functions: one op per line, regions indented.
#include "compiler/ir/text/text.h"

#include <fmt/format.h>

#include "compiler/ir/ops.h"
#include "compiler/ir/text/lexer.h"

namespace cinch::ir {
namespace {

class FunctionPrinter {
 public:
  FunctionPrinter(const Program& program, const Function& function)
      : info_(program.info),
        function_(function),
        host_(program.info),
        numbers_(function.values.size(), -1) {}

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
    const std::string name = is_plain_name(v.name) ? "." + v.name : "";
    return fmt::format("%{}{}: {}", numbers_[value.index()], name, print_type(host_, v.type));
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
    const std::string attrs = attrs_text(op);
    if (!attrs.empty()) head += " {" + attrs + "}";
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

  std::string attrs_text(const Op& op) const {
    const Attrs& a = op.attrs;
    std::vector<std::string> parts;
    const auto has = [&](std::uint32_t use) { return uses_attr(op.kind, use); };
    if (has(AttrUse::Value)) parts.push_back("value=" + constant_text(op));
    if (has(AttrUse::Width)) parts.push_back(fmt::format("width={}", a.bits));
    if (has(AttrUse::Index)) parts.push_back(fmt::format("index={}", a.index));
    if (has(AttrUse::Size) || (has(AttrUse::Limit) && a.has_limit)) {
      parts.push_back(fmt::format("{}={}", size_attr_name(op.kind), host_.print(a.size)));
    }
    if (has(AttrUse::Size2)) parts.push_back("end=" + host_.print(a.size2));
    if (has(AttrUse::Axis)) {
      parts.push_back(a.axis == kAll ? "axis=all" : fmt::format("axis={}", a.axis));
    }
    if (has(AttrUse::Exclusive) && a.exclusive) parts.emplace_back("exclusive");
    if (has(AttrUse::Descending) && a.descending) parts.emplace_back("descending");
    if (has(AttrUse::Mean) && a.mean) parts.emplace_back("mean");
    if (has(AttrUse::Proved) && a.proved) parts.emplace_back("proved");
    if (has(AttrUse::InRows) && a.in_rows) parts.emplace_back("in_rows");
    if (has(AttrUse::Draw)) {
      parts.push_back(fmt::format("{}={}", a.draw.shared ? "shared_site" : "site", a.draw.site));
    }
    if (has(AttrUse::Combiner)) parts.push_back("combiner=" + combiner_text(op));
    if (has(AttrUse::Text)) parts.push_back("text=" + quote(a.text));
    std::string text;
    for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
    return text;
  }

  std::string constant_text(const Op& op) const {
    const bool is_known = !op.results.empty() && op.results[0].index() < function_.values.size();
    const DType dtype = is_known ? function_.values[op.results[0].index()].type.dtype : kI64;
    return print_value(dtype, op.attrs.bits);
  }

  std::string combiner_text(const Op& op) const {
    const Combiner* combiner = combiner_of(op);
    if (!combiner) return "<invalid>";
    return combiner->op ? std::string(scalar_op_info(*combiner->op).name) : "region";
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

  const rt::ProgramInfo& info_;
  const Function& function_;
  HostPrinter host_;
  std::vector<int> numbers_;
  int next_ = 0;
  int indent_ = 0;
  std::string text_;
};

}  // namespace

std::string print_type(const rt::ProgramInfo& info, const Type& type) {
  return type.rank == 0 ? dtype_name(type.dtype) : print_type(HostPrinter(info), type);
}

std::string print_type(const HostPrinter& host, const Type& type) {
  if (type.rank == 0) return dtype_name(type.dtype);
  const std::string first = host.print(type.dims[0]);
  if (type.rank == 1) return fmt::format("[{}; {}]", dtype_name(type.dtype), first);
  return fmt::format("[{}; {}, {}]", dtype_name(type.dtype), first, host.print(type.dims[1]));
}

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
  std::string text = print_info(program);
  for (const Function& init : program.state_inits) {
    text += FunctionPrinter(program, init).print("init");
  }
  for (const Function& function : program.functions) text += print(program, function);
  return text;
}

}  // namespace cinch::ir
