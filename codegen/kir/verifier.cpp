// Verifier of the kernel IR: program level, sections and dominance. Signatures of single
// instructions: verifier_instr.cpp.
#include "codegen/kir/verifier.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "codegen/kir/text/text.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {

// Walks the sections in order. Notes the level and the section in which every value is defined.
class KernelVerifier {
 public:
  KernelVerifier(const KernelProgram& program, const Kernel& kernel)
      : program_(program), kernel_(kernel), definitions_(kernel.values.size()) {}

  std::string run() {
    if (!head() || !combiners() || !sections()) return complaint_;
    for (std::size_t i = 0; i < definitions_.size(); ++i) {
      if (!need(definitions_[i].is_defined, fmt::format("%{} is never defined", i))) break;
    }
    const ValueId extent = kernel_.extent_value;
    if (extent && complaint_.empty()) {
      need(extent.index() < definitions_.size() &&
               kernel_.values[extent.index()].type == ComputeType::I64 &&
               definitions_[extent.index()].level == SectionKind::Kernel,
           "extent_value must be a kernel-level i64");
    }
    return complaint_;
  }

 private:
  struct Definition {
    bool is_defined = false;
    bool is_visible = false;  // arguments and body of a combiner: inside its body only
    SectionKind level = SectionKind::Kernel;
    std::size_t section = 0;
  };

  bool need(bool ok, std::string message) {
    if (!ok && complaint_.empty()) complaint_ = std::move(message);
    return complaint_.empty();
  }

  bool head() {
    const bool is_tile = kernel_.group_kind == GroupKind::Tile;
    const HostExprPool& pool = *program_.info.exprs;
    const std::string& symbol = kernel_.info.symbol;
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool is_identifier =
        !symbol.empty() && !is_digit(symbol[0]) && std::ranges::all_of(symbol, [&](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
        });
    need(is_identifier, "the symbol is not an identifier");
    for (HostExprId id : {kernel_.extent, kernel_.group_len, kernel_.info.num_groups}) {
      if (!need(id && id.index() < pool.num_nodes(), "a size of the kernel is missing")) break;
      need(pool.type(id) == HostType::Int, "a size of the kernel is not an integer");
      need(pool.is_const(id) || find_size(program_, id),
           "a size of the kernel is not an entry of size_exprs");
    }
    need(!kernel_.sections.empty() && kernel_.sections[0].kind == SectionKind::Kernel,
         "the first section must be the kernel section");
    need(kernel_.info.group_multiple >= 1, "group_multiple must be at least 1");
    const bool has_short_rows = kernel_.group_len && pool.is_const(kernel_.group_len) &&
                                pool.const_value(kernel_.group_len).as_int() <= 1024;
    need(kernel_.locals.empty() || is_tile || has_short_rows,
         "local arrays need tiles, or rows of a constant length up to 1024");
    for (std::size_t i = 1; i < kernel_.sections.size(); ++i) {
      need(kernel_.sections[i].kind != SectionKind::Kernel, "a second kernel section");
    }
    return complaint_.empty();
  }

  // Bodies of combiners use kernel values, so the kernel section goes first.
  bool combiners() {
    if (!section(0)) return false;
    for (std::size_t i = 0; i < kernel_.combiners.size(); ++i) {
      if (!combiner(kernel_.combiners[i])) {
        complaint_ = fmt::format("combiner {}: {}", i, complaint_);
        return false;
      }
    }
    return true;
  }

  bool combiner(const Combiner& c) {
    if (c.op) {
      need(is_builtin_combiner(*c.op), "the operation is not a builtin combiner");
      return need(c.args.empty() && c.body.empty() && c.results.empty(),
                  "an operation and a body at once");
    }
    need(!c.results.empty() && c.args.size() == 2 * c.results.size(),
         "two arguments per result are needed");
    if (!complaint_.empty()) return false;
    for (ValueId arg : c.args) define(arg, SectionKind::Elements, kCombinerSection);
    for (const Instr& instr : c.body) {
      need(is_allowed_in_combiner(instr.kind),
           fmt::format("{} in a combiner", instr_info(instr.kind).name));
      if (!instruction(instr, SectionKind::Elements, kCombinerSection)) return false;
    }
    for (std::size_t i = 0; i < c.results.size(); ++i) {
      if (!use(c.results[i], SectionKind::Elements, kCombinerSection)) return false;
      need(type(c.results[i]) == type(c.args[i]) &&
               type(c.args[i]) == type(c.args[i + c.results.size()]),
           "results and arguments differ in type");
    }
    for (Definition& d : definitions_) {
      if (d.section == kCombinerSection) d.is_visible = false;
    }
    return complaint_.empty();
  }

  bool sections() {
    for (std::size_t i = 1; i < kernel_.sections.size(); ++i) {
      if (!section(i)) return false;
    }
    return true;
  }

  bool section(std::size_t index) {
    const Section& s = kernel_.sections[index];
    for (const Instr& instr : s.instrs) {
      if (!instruction(instr, s.kind, index)) {
        complaint_ = fmt::format("section {} ({}): {}: {}", index, section_name(s.kind),
                                 print(program_, kernel_, instr), complaint_);
        return false;
      }
    }
    // Results of reductions become known behind their section.
    for (const Instr& instr : s.instrs) {
      for (ValueId result : instr.results) definitions_[result.index()].is_visible = true;
    }
    return true;
  }

  bool instruction(const Instr& instr, SectionKind level, std::size_t section) {
    need(instr_info(instr.kind).allowed_at(level), "not allowed at this level");
    for (ValueId operand : instr.operands) {
      if (operand && !use(operand, level, section)) return false;
    }
    for (std::size_t i = 0; i < instr.results.size(); ++i) {
      const bool is_late = has_group_result(instr.kind, i);
      const SectionKind at = is_late ? SectionKind::Group : level;
      if (!define(instr.results[i], at, section)) return false;
      definitions_[instr.results[i].index()].is_visible = !is_late;
    }
    if (!complaint_.empty()) return false;
    const std::string complaint = complaint_about(program_, kernel_, instr, [this](ValueId value) {
      return definitions_[value.index()].level;
    });
    return need(complaint.empty(), complaint);
  }

  bool define(ValueId value, SectionKind level, std::size_t section) {
    if (!need(value.index() < definitions_.size(), "a result out of the table of values"))
      return false;
    Definition& d = definitions_[value.index()];
    if (!need(!d.is_defined, fmt::format("%{} is defined twice", value.index()))) return false;
    d = {true, true, level, section};
    return true;
  }

  bool use(ValueId value, SectionKind level, std::size_t section) {
    if (!need(value.index() < definitions_.size(), "an operand out of the table of values"))
      return false;
    const Definition& d = definitions_[value.index()];
    const std::string name = fmt::format("%{}", value.index());
    need(d.is_defined && d.is_visible, name + " is used before its definition");
    need(d.level <= level, name + " belongs to a deeper level");
    need(d.level != SectionKind::Elements || d.section == section,
         name + " belongs to another element section");
    return complaint_.empty();
  }

  ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }

  static constexpr std::size_t kCombinerSection = SIZE_MAX;
  const KernelProgram& program_;
  const Kernel& kernel_;
  std::vector<Definition> definitions_;
  std::string complaint_;
};

std::string check_buffer(const KernelProgram& program, const rt::BufferInfo& buffer) {
  const HostExprPool& pool = *program.info.exprs;
  if (buffer.storage_bits < 1 || buffer.storage_bits > 64) return "storage_bits out of range";
  if (buffer.storage_bits < buffer.dtype.bits) return "storage_bits less than the type's";
  for (HostExprId id : {buffer.num_elems, buffer.size_bytes}) {
    if (!id || id.index() >= pool.num_nodes()) return "a size is missing";
    if (pool.type(id) != HostType::Int) return "a size is not an integer";
  }
  if (buffer.role == rt::BufferRole::Constant && buffer.role_index >= program.constants.size()) {
    return "no such constant";
  }
  return {};
}

bool has_buffer(const KernelProgram& program, std::uint32_t index) {
  return index < program.buffers.size();
}

std::string check_step(const KernelProgram& program, const rt::Step& step);

std::string check_steps(const KernelProgram& program, const std::vector<rt::Step>& steps) {
  for (const rt::Step& step : steps) {
    std::string complaint = check_step(program, step);
    if (!complaint.empty()) return complaint;
  }
  return {};
}

std::string check_step(const KernelProgram& program, const rt::Step& step) {
  const HostExprPool& pool = *program.info.exprs;
  const auto has_type = [&](HostExprId id, HostType type) {
    return id && id.index() < pool.num_nodes() && pool.type(id) == type;
  };
  switch (step.kind) {
    case rt::StepKind::Launch:
      return step.index < program.kernels.size() ? "" : "a launch of an unknown kernel";
    case rt::StepKind::Zero:
      return has_buffer(program, step.index) ? "" : "a zero of an unknown buffer";
    case rt::StepKind::Copy:
    case rt::StepKind::Collective:
      if ((step.collective.kind != rt::CollectiveKind::None) !=
          (step.kind == rt::StepKind::Collective)) {
        return "an unknown collective";
      }
      if (step.scalars.size() != rt::num_scalars(step.collective.kind)) {
        return "a collective without the scalars of its kind";
      }
      if (rt::names_rank(step.collective.kind) && step.message >= program.messages.size()) {
        return "a collective without a message";
      }
      for (const BufferIndex scalar : step.scalars) {
        if (!has_buffer(program, scalar)) return "a collective with a scalar in an unknown buffer";
      }
      return has_buffer(program, step.index) && has_buffer(program, step.index2)
                 ? ""
                 : "a copy of an unknown buffer";
    case rt::StepKind::CheckHost:
      if (step.index >= program.messages.size()) return "a check without a message";
      return has_type(step.expr, HostType::Bool) ? "" : "a check of something other than a bool";
    case rt::StepKind::If:
      if (!has_buffer(program, step.index)) return "an if on an unknown buffer";
      break;
    case rt::StepKind::While:
      if (!has_buffer(program, step.index)) return "a while on an unknown buffer";
      if (!has_type(step.expr, HostType::Int)) return "a while without a bound";
      break;
    case rt::StepKind::For:
      if (!has_buffer(program, step.index)) return "a for with no buffer";
      if (!has_type(step.expr, HostType::Int) || !has_type(step.expr2, HostType::Int)) {
        return "a for without bounds";
      }
      break;
  }
  for (const auto* steps : {&step.cond, &step.body, &step.orelse}) {
    std::string complaint = check_steps(program, *steps);
    if (!complaint.empty()) return complaint;
  }
  return {};
}

std::string check_tables(const KernelProgram& program) {
  const HostExprPool& pool = *program.info.exprs;
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const std::string complaint = check_buffer(program, program.buffers[i]);
    if (!complaint.empty()) {
      return fmt::format("buffer @{} {}: {}", i, program.buffers[i].name, complaint);
    }
  }
  for (std::size_t i = 0; i < program.size_exprs.size(); ++i) {
    const HostExprId id = program.size_exprs[i];
    if (!id || id.index() >= pool.num_nodes()) return fmt::format("size {} is missing", i);
  }
  return {};
}

std::string check_entries(const KernelProgram& program) {
  for (const rt::Entry& entry : program.entries) {
    for (rt::BufferIndex buffer : entry.buffers) {
      if (!has_buffer(program, buffer)) return "an entry touches no such buffer";
    }
    std::string complaint = check_steps(program, entry.steps);
    if (!complaint.empty()) return complaint;
  }
  return {};
}

// Leaves in `culprit` the kernel that the complaint is about.
std::string check_kernels(const KernelProgram& program, const Kernel*& culprit) {
  std::set<std::string> symbols;
  for (const Kernel& kernel : program.kernels) {
    culprit = &kernel;
    if (!symbols.insert(kernel.info.symbol).second) return "the symbol is taken";
    std::string complaint = KernelVerifier(program, kernel).run();
    if (!complaint.empty()) return complaint;
  }
  culprit = nullptr;
  return {};
}

std::string find_complaint(const KernelProgram& program, const Kernel*& culprit) {
  std::string complaint = check_tables(program);
  if (complaint.empty()) complaint = check_kernels(program, culprit);
  if (complaint.empty()) complaint = check_entries(program);
  return culprit ? "kernel " + culprit->info.symbol + ": " + complaint : complaint;
}

}  // namespace

std::string first_complaint(const KernelProgram& program) {
  const Kernel* culprit = nullptr;
  return find_complaint(program, culprit);
}

void verify(const KernelProgram& program, const std::string& stage) {
  const Kernel* culprit = nullptr;
  const std::string complaint = find_complaint(program, culprit);
  if (complaint.empty()) return;
  InternalError error(InternalErrorKind::Bug, complaint, "codegen/kir/verifier.cpp");
  error.attach(stage, culprit ? print(program, *culprit) : print(program));
  throw error;
}

}  // namespace cinch::kir
