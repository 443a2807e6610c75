// The CPU emitter's door: comment, prelude, kernels.
#include "codegen/emit/cpu.h"

#include <fmt/format.h>

#include <cstddef>

#include "codegen/emit/cpu_kernel.h"
#include "codegen/emit/cpu_prelude.h"
#include "codegen/kir/text.h"

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
  source.text += cpu_prelude(program);
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
