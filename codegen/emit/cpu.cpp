// The CPU emitter's door: comment, prelude, kernels.
#include "codegen/emit/cpu.h"

#include <fmt/format.h>

#include <cstddef>

#include "codegen/emit/cpu_kernel.h"
#include "codegen/emit/prelude_text.h"
#include "codegen/kir/text.h"
#include "runtime/core/lang/embed.h"

namespace cinch::codegen {
namespace {

void add_comment(std::string& text, const std::string& lines) {
  std::size_t begin = 0;
  while (begin < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    std::string comment = lines.substr(begin, end - begin);
    // A backslash at the end would join the next line to the comment.
    if (comment.ends_with('\\')) comment += '.';
    text += comment.empty() ? "//\n" : "// " + comment + "\n";
    begin = end + 1;
  }
}

bool uses_draws(const kir::KernelProgram& program) {
  for (const kir::Kernel& kernel : program.kernels) {
    for (const kir::Section& section : kernel.sections) {
      for (const kir::Instr& instr : section.instrs) {
        switch (instr.kind) {
          case kir::InstrKind::random:
          case kir::InstrKind::random_bits:
          case kir::InstrKind::normal:
          case kir::InstrKind::random_index:
          case kir::InstrKind::stochastic_round:
            return true;
          default:
            break;
        }
      }
    }
  }
  return false;
}

bool uses_kind(const kir::KernelProgram& program, kir::InstrKind kind) {
  for (const kir::Kernel& kernel : program.kernels) {
    for (const kir::Section& section : kernel.sections) {
      for (const kir::Instr& instr : section.instrs) {
        if (instr.kind == kind) return true;
      }
    }
  }
  return false;
}

// Only what the program uses: parsing all of it would be a third of the compile time.
void add_prelude(std::string& text, const kir::KernelProgram& program) {
  const bool draws = uses_draws(program);
  for (const lang::SourcePart& part : lang::source_parts()) {
    const bool is_draw_part = part.name.starts_with("random");
    if (!is_draw_part || draws) text += part.text;
  }
  text += prelude_text("scalar_ops.h");
  for (const char* part : {"vectors", "memory", "packed", "reduce", "tuples", "scan", "ordered"}) {
    text += prelude_text(fmt::format("cpu/{}.h", part));
  }
  if (uses_kind(program, kir::InstrKind::argsort_row)) text += prelude_text("cpu/sort.h");
  if (draws) text += prelude_text("cpu/draws.h");
}

// The argument's layout, as the host has it.
void add_layout_checks(std::string& text) {
  const auto check = [&](const char* member, std::size_t offset) {
    text +=
        fmt::format("static_assert(__builtin_offsetof(KernelArgs, {}) == {});\n", member, offset);
  };
  check("buffers", offsetof(rt::KernelArgs, buffers));
  check("sizes", offsetof(rt::KernelArgs, sizes));
  check("params", offsetof(rt::KernelArgs, params));
  check("draw", offsetof(rt::KernelArgs, draw));
  check("status", offsetof(rt::KernelArgs, status));
  check("counters", offsetof(rt::KernelArgs, counters));
}

}  // namespace

KernelSource emit_cpu(const kir::KernelProgram& program, const CpuOptions& options) {
  KernelSource source;
  source.target = {TargetKind::Cpu, options.arch};
  add_comment(source.text, kir::print(program));
  add_prelude(source.text, program);
  source.text += "\nnamespace cinch {\n";
  add_layout_checks(source.text);
  for (const kir::Kernel& kernel : program.kernels) {
    source.text += '\n';
    source.text += CpuKernelEmitter(program, kernel, options).emit();
    source.symbols.push_back(kernel.info.symbol);
  }
  source.text += "\n}  // namespace cinch\n";
  return source;
}

}  // namespace cinch::codegen
