#include "codegen/kir/structure.h"

#include <fmt/format.h>

#include <algorithm>

#include "codegen/kir/text/text_lexer.h"

namespace cinch::kir {
namespace {

void count_steps(const KernelProgram& program, const std::vector<rt::Step>& steps,
                 EntryStructure& out) {
  for (const rt::Step& step : steps) {
    switch (step.kind) {
      case rt::StepKind::Launch: {
        const bool is_sweep = program.kernels[step.index].info.role == rt::KernelRole::Sweep;
        ++(is_sweep ? out.sweeps : out.finishes);
        if (std::find(out.kernels.begin(), out.kernels.end(), step.index) == out.kernels.end()) {
          out.kernels.push_back(step.index);
        }
        break;
      }
      case rt::StepKind::Zero:
        ++out.zeros;
        break;
      case rt::StepKind::Copy:
        ++out.copies;
        break;
      case rt::StepKind::CheckHost:
        break;
      case rt::StepKind::Collective:
        ++out.collectives;
        break;
      case rt::StepKind::If:
        ++out.branches;
        break;
      case rt::StepKind::While:
      case rt::StepKind::For:
        ++out.loops;
        break;
    }
    for (const auto* inner : {&step.cond, &step.body, &step.orelse}) {
      count_steps(program, *inner, out);
    }
  }
}

void append(std::string& out, int count, const char* singular, const char* plural) {
  if (count == 0) return;
  out += fmt::format("{}{} {}", out.empty() ? "" : ", ", count, count == 1 ? singular : plural);
}

}  // namespace

const char* entry_name(rt::EntryKind entry) {
  return kEntryNames[static_cast<std::size_t>(entry)].data();
}

EntryStructure entry_structure(const KernelProgram& program, rt::EntryKind entry) {
  EntryStructure out;
  count_steps(program, program.entries[static_cast<std::size_t>(entry)].steps, out);
  return out;
}

std::string describe_structure(const KernelProgram& program, rt::EntryKind entry) {
  if (!program.entries[static_cast<std::size_t>(entry)].present) return {};
  const EntryStructure s = entry_structure(program, entry);
  std::string counts;
  append(counts, s.sweeps, "sweep", "sweeps");
  append(counts, s.finishes, "finish", "finishes");
  append(counts, s.zeros, "zero", "zeros");
  append(counts, s.copies, "copy", "copies");
  append(counts, s.loops, "loop", "loops");
  append(counts, s.branches, "branch", "branches");
  append(counts, s.collectives, "collective", "collectives");
  return fmt::format("{}: {}", entry_name(entry), counts.empty() ? "nothing" : counts);
}

void for_each_step(const rt::Step& step, const std::function<void(const rt::Step&)>& visit) {
  visit(step);
  for (const std::vector<rt::Step>* list : {&step.cond, &step.body, &step.orelse}) {
    for (const rt::Step& inner : *list) for_each_step(inner, visit);
  }
}

bool touches(const KernelProgram& program, const rt::Step& step, rt::BufferIndex buffer) {
  const auto names = [buffer](const auto& buffers) {
    return std::ranges::find(buffers, buffer) != buffers.end();
  };
  const auto kernel_names = [&](const Kernel& kernel) {
    const auto in = [&](const std::vector<Instr>& instrs) {
      return std::ranges::any_of(instrs, names, &Instr::buffers);
    };
    return std::ranges::any_of(kernel.sections, in, &Section::instrs) ||
           std::ranges::any_of(kernel.combiners, in, &Combiner::body);
  };
  bool found = false;
  for_each_step(step, [&](const rt::Step& s) {
    if (s.kind == rt::StepKind::Launch) {
      found |= kernel_names(program.kernels[s.index]);
    } else if (s.kind != rt::StepKind::CheckHost) {
      found |= s.index == buffer || (s.has_source() && s.index2 == buffer) || names(s.scalars);
    }
  });
  return found;
}

bool is_of_scalars(const Kernel& kernel) {
  if (kernel.group_kind != GroupKind::Single || kernel.sections.size() != 1) return false;
  return std::ranges::none_of(kernel.sections[0].instrs, [](const Instr& instr) {
    return instr.kind == InstrKind::finish_reduce || instr.kind == InstrKind::finish_scan;
  });
}

bool adds_in_any_order(DType dtype) {
  return is_int(dtype) && (dtype.bits == 32 || dtype.bits == 64);
}

bool adds_in_any_order(const rt::BufferInfo& buffer) {
  return adds_in_any_order(buffer.dtype) && buffer.storage_bits == buffer.dtype.bits;
}

}  // namespace cinch::kir
