// One line per item. Prints everything that is not at its default, so that parse restores it.
#include <fmt/format.h>

#include <bit>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/text/text.h"
#include "codegen/kir/text/text_parser.h"

namespace cinch::kir {
namespace {

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

bool is_word(std::string_view text) {
  for (char c : text) {
    const bool ok = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                    c == '_' || c == '.';
    if (!ok) return false;
  }
  return !text.empty();
}

std::string host_const(const HostValue& value) {
  switch (value.type) {
    case HostType::Int:
      return fmt::format("{}", value.as_int());
    case HostType::Bool:
      return value.as_bool() ? "true" : "false";
    case HostType::F32:
      return fmt::format("f32:{:08x}", static_cast<std::uint32_t>(value.bits));
    case HostType::F64:
      return fmt::format("f64:{:016x}", value.bits);
  }
  return "?";
}

std::string ref(ValueId value) {
  return value ? fmt::format("%{}", value.index()) : std::string("_");
}

std::string refs(const std::vector<ValueId>& values) {
  std::string out;
  for (ValueId value : values) out += (out.empty() ? "" : ", ") + ref(value);
  return out;
}

std::string typed(const Kernel& kernel, ValueId value) {
  if (value.index() >= kernel.values.size()) return ref(value) + ": ?";
  const Value& info = kernel.values[value.index()];
  const std::string name = is_word(info.name) ? "." + info.name : "";
  return fmt::format("{}{}: {}", ref(value), name, compute_type_name(info.type));
}

std::string typed_list(const Kernel& kernel, const std::vector<ValueId>& values) {
  std::string out;
  for (ValueId value : values) out += (out.empty() ? "" : ", ") + typed(kernel, value);
  return out;
}

std::string attributes(const Instr& instr) {
  std::string out;
  if (instr.bits) out += fmt::format(" bits={:#x}", instr.bits);
  if (instr.index) out += fmt::format(" index={}", instr.index);
  if (instr.combiner != rt::kNoIndex) out += fmt::format(" combiner={}", instr.combiner);
  if (instr.from_dtype != DType{}) out += " from=" + dtype_name(instr.from_dtype);
  if (instr.dtype != DType{}) out += " dtype=" + dtype_name(instr.dtype);
  if (instr.draw.site || instr.draw.shared) {
    out += fmt::format(" draw={}{}", instr.draw.shared ? "shared." : "", instr.draw.site);
  }
  if (instr.exclusive) out += " exclusive";
  if (instr.descending) out += " descending";
  if (instr.is_alike) out += " alike";
  if (instr.is_compact) out += " compact";
  return out;
}

// What an instruction's numbers mean, as a comment for people.
std::string remark(const KernelProgram& program, const Kernel& kernel, const Instr& instr) {
  switch (instr.kind) {
    case InstrKind::constant: {
      if (instr.results.size() != 1 || instr.results[0].index() >= kernel.values.size()) return "";
      const ComputeType type = kernel.values[instr.results[0].index()].type;
      if (type == ComputeType::F32) {
        return fmt::format("  // {}", std::bit_cast<float>(static_cast<std::uint32_t>(instr.bits)));
      }
      if (type == ComputeType::F64)
        return fmt::format("  // {}", std::bit_cast<double>(instr.bits));
      return fmt::format("  // {}", static_cast<std::int64_t>(instr.bits));
    }
    case InstrKind::host_size:
      if (instr.index >= program.size_exprs.size()) return "";
      return "  // " + print_host_expr(program.info.exprs, program.size_exprs[instr.index]);
    case InstrKind::call_extern:
      if (instr.index >= program.info.externs.size()) return "";
      return "  // " + program.info.externs[instr.index].name;
    case InstrKind::fail_if:
      if (instr.index >= program.messages.size()) return "";
      return "  // " + in_quotes(program.messages[instr.index]);
    default:
      break;
  }
  if (instr.buffers.empty() || instr.buffers[0] >= program.buffers.size()) return "";
  return "  // " + program.buffers[instr.buffers[0]].name;
}

std::string instr_text(const Kernel& kernel, const Instr& instr) {
  std::string out = instr.results.empty() ? "" : typed_list(kernel, instr.results) + " = ";
  out += instr_info(instr.kind).name;
  if (instr.kind == InstrKind::scalar) {
    out += '.';
    out += scalar_op_info(instr.scalar_op).name;
  }
  if (!instr.operands.empty()) out += " " + refs(instr.operands);
  for (std::size_t i = 0; i < instr.buffers.size(); ++i) {
    out += fmt::format("{}@{}", i ? ", " : " ", instr.buffers[i]);
  }
  return out + attributes(instr);
}

class Printer {
 public:
  explicit Printer(const KernelProgram& program) : program_(program) {}
  std::string take() { return std::move(out_); }

  void all() {
    line("program {}", in_quotes(program_.info.name));
    facts();
    tables();
    for (const Kernel& k : program_.kernels) kernel(k);
    for (std::size_t i = 0; i < rt::kNumEntries; ++i) {
      if (program_.entries[i].present) entry(kEntryNames[i], program_.entries[i]);
    }
    for (const StepTouch& touch : program_.step_touches) {
      line("step @{} @{} {} {} {}", touch.step, touch.buffer, touch.first, touch.second,
           touch.made);
    }
    for (std::size_t i = 0; i < rt::kNumEntries; ++i) {
      for (const Touch& touch : program_.results[i]) {
        line("result {} @{} {}", kEntryNames[i], touch.buffer, touch.version);
      }
    }
  }

  void kernel(const Kernel& k) {
    line("kernel {} {} {} {{", in_quotes(k.info.symbol),
         kKernelRoleNames[static_cast<std::size_t>(k.info.role)],
         kGroupKindNames[static_cast<std::size_t>(k.group_kind)]);
    kernel_head(k);
    for (std::size_t i = 0; i < k.combiners.size(); ++i) combiner(k, i);
    for (const Section& section : k.sections) {
      line(" {}:", section_name(section.kind));
      for (const Instr& instr : section.instrs) instruction(k, instr, 4);
    }
    line("}}");
  }

 private:
  template <typename... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    out_ += '\n';
  }
  std::string expr(HostExprId id) const { return print_host_expr(program_.info.exprs, id); }

  std::string array(const rt::ArrayType& type) const {
    std::string dims;
    for (int i = 0; i < type.rank; ++i) dims += (i ? ", " : "") + expr(type.dims[i]);
    return dtype_name(type.dtype) + " [" + dims + "]";
  }

  void facts() {
    for (const rt::ParamInfo& p : program_.info.params) {
      line("param {} {}", in_quotes(p.name), dtype_name(p.dtype));
    }
    for (const rt::CountInfo& c : program_.info.counts) {
      line("count {} {}", in_quotes(c.name), expr(c.bound));
    }
    for (const rt::StateInfo& s : program_.info.states) {
      line("state {} {}", in_quotes(s.name), array(s.type));
    }
    for (const rt::ExternInfo& function : program_.info.externs) extern_line(function);
    for (const rt::CountInfo& c : program_.info.wire.counts) {
      line("wire_count {} {}", in_quotes(c.name), expr(c.bound));
    }
    for (const rt::FieldInfo& f : program_.info.wire.fields) field(f);
  }

  void extern_line(const rt::ExternInfo& function) {
    std::string types;
    for (const DType param : function.params) {
      types += (types.empty() ? "" : ", ") + dtype_name(param);
    }
    line("extern {} ({}) {} work={} {}", in_quotes(function.name), types,
         dtype_name(function.result), function.work, in_quotes(function.source));
  }

  void field(const rt::FieldInfo& f) {
    std::string rest;
    if (f.sum != rt::FieldSum::None) {
      rest += fmt::format(" by={}", kFieldSumNames[static_cast<std::size_t>(f.sum)]);
    }
    if (f.ascending) rest += " ascending";
    if (f.index_limit) rest += " limit=" + expr(*f.index_limit);
    if (!f.packing.empty()) rest += " packs=" + in_quotes(f.packing);
    line("field {} {}{}", in_quotes(f.name), array(f.type), rest);
  }

  void tables() {
    for (std::size_t i = 0; i < program_.size_exprs.size(); ++i) {
      line("size {} = {}", i, expr(program_.size_exprs[i]));
    }
    for (std::size_t i = 0; i < program_.messages.size(); ++i) {
      line("message {} = {}", i, in_quotes(program_.messages[i]));
    }
    for (std::size_t i = 0; i < program_.constants.size(); ++i) {
      std::string hex;
      for (std::uint8_t byte : program_.constants[i]) hex += fmt::format("{:02x}", byte);
      line("constant {} = {}", i, in_quotes(hex));
    }
    for (std::size_t i = 0; i < program_.buffers.size(); ++i) {
      const rt::BufferInfo& b = program_.buffers[i];
      line("buffer @{} {} {} bits={} role={} index={} elems={} bytes={}", i, in_quotes(b.name),
           dtype_name(b.dtype), b.storage_bits, kRoleNames[static_cast<std::size_t>(b.role)],
           b.role_index, expr(b.num_elems), expr(b.size_bytes));
    }
  }

  void kernel_head(const Kernel& k) {
    line(" extent {}", expr(k.extent));
    line(" group_len {}", expr(k.group_len));
    line(" groups {}", expr(k.info.num_groups));
    if (k.extent_value) line(" extent_value {}", ref(k.extent_value));
    if (k.info.group_multiple != 1) line(" multiple {}", k.info.group_multiple);
    if (k.info.is_ordered) line(" ordered");
    if (k.info.is_sequential) line(" sequential");
    if (k.is_foldable) line(" foldable");
    for (const std::string& what : k.info.fused) line(" fused {}", in_quotes(what));
    if (k.info.bytes_read) line(" bytes_read {}", expr(k.info.bytes_read));
    if (k.info.bytes_written) line(" bytes_written {}", expr(k.info.bytes_written));
    for (const Touch& touch : k.reads) line(" reads @{} {}", touch.buffer, touch.version);
    for (const Touch& touch : k.writes) line(" writes @{} {}", touch.buffer, touch.version);
    for (const LocalArray& local : k.locals) line(" local {}", compute_type_name(local.type));
  }

  void combiner(const Kernel& k, std::size_t index) {
    const Combiner& c = k.combiners[index];
    if (c.op) return line(" combiner {} = {}", index, scalar_op_info(*c.op).name);
    line(" combiner {} = ({}) {{", index, typed_list(k, c.args));
    for (const Instr& instr : c.body) instruction(k, instr, 4);
    line(" }} yield {}", refs(c.results));
  }

  void instruction(const Kernel& k, const Instr& instr, int indent) {
    line("{:{}}{}{}", "", indent, instr_text(k, instr), remark(program_, k, instr));
  }

  void entry(std::string_view name, const rt::Entry& e) {
    std::string buffers;
    for (rt::BufferIndex b : e.buffers) buffers += fmt::format(" @{}", b);
    const bool commits = e.commit_step != rt::kNoIndex;
    line("entry {}{}{} {{", name, buffers,
         commits ? fmt::format(" commits {}", e.commit_step) : std::string());
    steps(e.steps, 1);
    line("}}");
  }

  void steps(const std::vector<rt::Step>& list, int indent) {
    for (const rt::Step& s : list) step(s, indent);
  }

  void step(const rt::Step& s, int indent) {
    out_.append(static_cast<std::size_t>(indent), ' ');
    switch (s.kind) {
      case rt::StepKind::Launch: {
        const bool known = s.index < program_.kernels.size();
        const std::string beside = s.index2 == rt::kNoIndex || s.index2 == 0
                                       ? std::string()
                                       : fmt::format(" beside {}", s.index2 - 1);
        return line("launch {}{}{}", s.index, beside,
                    known ? "  // " + program_.kernels[s.index].info.symbol : "");
      }
      case rt::StepKind::Zero:
        return line("zero @{}", s.index);
      case rt::StepKind::Copy:
        return line("copy @{} from @{}", s.index, s.index2);
      case rt::StepKind::CheckHost:
        return line("check {} message {}", expr(s.expr), s.index);
      case rt::StepKind::If:
        line("if @{} {{", s.index);
        return braces(s.body, s.orelse, "else", indent);
      case rt::StepKind::While:
        line("while @{} at_most {} {{", s.index, expr(s.expr));
        return braces(s.cond, s.body, "do", indent);
      case rt::StepKind::For:
        line("for @{} {} to {} {{", s.index, expr(s.expr), expr(s.expr2));
        steps(s.body, indent + 1);
        return line("{:{}}}}", "", indent);
      case rt::StepKind::Collective: {
        const rt::CollectiveInfo& c = s.collective;
        std::string more;
        for (const BufferIndex scalar : s.scalars) more += fmt::format(" scalar @{}", scalar);
        if (s.message != rt::kNoIndex) more += fmt::format(" message {}", s.message);
        return line("{} @{} from @{} by {} root {}{}",
                    kCollectiveNames[static_cast<std::size_t>(c.kind)], s.index, s.index2,
                    kReductionNames[static_cast<std::size_t>(c.reduction)], c.root, more);
      }
    }
  }

  void braces(const std::vector<rt::Step>& first, const std::vector<rt::Step>& second,
              std::string_view between, int indent) {
    steps(first, indent + 1);
    line("{:{}}}} {} {{", "", indent, between);
    steps(second, indent + 1);
    line("{:{}}}}", "", indent);
  }

  const KernelProgram& program_;
  std::string out_;
};

}  // namespace

namespace {

// A formula prints as a tree, which may have far more parts than the formula. After this many parts
// the text is "…", which does not parse.
constexpr std::size_t kMostParts = 10000;

std::string print_expr(const HostExprPool& pool, HostExprId id, std::size_t& num_printed) {
  if (!id) return "_";
  if (++num_printed > kMostParts) return "…";
  const HostExprNode& node = pool.node(id);
  switch (node.op) {
    case HostOp::Const:
      return host_const({node.type, node.payload});
    case HostOp::Param:
      return fmt::format("param({}, {})", node.payload, host_type_name(node.type));
    case HostOp::Count:
      return fmt::format("count({}, {})", node.payload,
                         print_expr(pool, node.args[0], num_printed));
    case HostOp::Cast:
      return fmt::format("cast({}, {})", print_expr(pool, node.args[0], num_printed),
                         host_type_name(node.type));
    default:
      break;
  }
  std::string out = host_op_name(node.op);
  for (int i = 0; i < host_op_num_args(node.op); ++i) {
    out += (i ? ", " : "(") + print_expr(pool, node.args[i], num_printed);
  }
  return host_op_num_args(node.op) ? out + ")" : out;
}

}  // namespace

std::string print_host_expr(const HostExprPool& pool, HostExprId id) {
  std::size_t num_printed = 0;
  return print_expr(pool, id, num_printed);
}

std::string print(const KernelProgram& program) {
  Printer printer(program);
  printer.all();
  return printer.take();
}

std::string print(const KernelProgram& program, const Kernel& kernel) {
  Printer printer(program);
  printer.kernel(kernel);
  return printer.take();
}

std::string print(const KernelProgram& program, const Kernel& kernel, const Instr& instr) {
  return instr_text(kernel, instr) + remark(program, kernel, instr);
}

}  // namespace cinch::kir
