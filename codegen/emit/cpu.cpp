// The entry of the CPU emitter: comment, prelude, kernels.
#include "codegen/emit/cpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "codegen/emit/c_family.h"
#include "codegen/emit/cpu/kernel/kernel.h"
#include "codegen/emit/cpu/prelude.h"
#include "codegen/emit/cpu/reuse.h"
#include "codegen/kir/text/text.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

void add_comment(std::string& text, const std::string& lines) {
  std::size_t begin = 0;
  while (begin < lines.size()) {
    const std::size_t end = std::min(lines.find('\n', begin), lines.size());
    std::string comment = lines.substr(begin, end - begin);
    // A backslash at the line's end would make the next line a part of the comment.
    if (comment.ends_with('\\')) comment += '.';
    text += comment.empty() ? "//\n" : "// " + comment + "\n";
    begin = end + 1;
  }
}

// The argument's layout, as on the host.
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

// If the kernels' text is shorter, another part costs more for its prelude than it saves. More than
// two parts wait for each other on machines with few cores, and each part compiles the prelude's
// templates again.
constexpr std::size_t kLeastPartBytes = 2000;
constexpr std::size_t kLeastManyPartsBytes = 12000;

// The units of each part, by index. Parts have about the same length, and are the same on every
// machine.
std::vector<std::vector<std::size_t>> split(const std::vector<CpuUnit>& units,
                                            std::size_t max_parts) {
  std::size_t total = 0;
  for (const CpuUnit& unit : units) total += unit.text.size();
  const std::size_t wanted =
      std::max(std::min<std::size_t>(total / kLeastPartBytes, 2), total / kLeastManyPartsBytes);
  const std::size_t num_parts = std::clamp<std::size_t>(wanted, 1, max_parts);
  std::vector<std::size_t> order(units.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(units[b].text.size(), a) < std::pair(units[a].text.size(), b);
  });
  std::vector<std::vector<std::size_t>> parts(num_parts);
  std::vector<std::size_t> lengths(num_parts);
  for (std::size_t unit : order) {
    const auto shortest = std::min_element(lengths.begin(), lengths.end()) - lengths.begin();
    parts[shortest].push_back(unit);
    lengths[shortest] += units[unit].text.size();
  }
  std::erase_if(parts, [&](const auto& part) { return part.empty() && num_parts > 1; });
  for (auto& part : parts) std::sort(part.begin(), part.end());
  return parts;
}

KernelSource join(const kir::KernelProgram& program, const CpuOptions& options,
                  const std::vector<CpuUnit>& units, const std::vector<std::size_t>& part) {
  KernelSource source{.target = {TargetKind::Cpu, options.arch},
                      .links_helpers = options.links_helpers};
  std::vector<const kir::Kernel*> kernels;
  for (std::size_t unit : part) {
    for (std::size_t i : units[unit].kernels) kernels.push_back(&program.kernels[i]);
  }
  if (options.max_parts == 1) add_comment(source.text, kir::print(program));
  if (!options.links_helpers) source.text += cpu_prelude(program, kernels);
  source.text += "\nnamespace cinch {\n";
  source.text += extern_definitions(program.info, called_externs(kernels));
  add_layout_checks(source.text);
  for (std::size_t unit : part) source.text += '\n' + units[unit].text;
  // Symbols of a part are in the order of kernel indices.
  std::ranges::sort(kernels);
  for (const kir::Kernel* kernel : kernels) source.symbols.push_back(kernel->info.symbol);
  source.text += "\n}  // namespace cinch\n";
  return source;
}

}  // namespace

const CpuArch& cpu_arch(std::string_view name) {
  const auto* const found = std::ranges::find(kCpuArchs, name, &CpuArch::name);
  CINCH_CHECK(found != std::end(kCpuArchs), "unknown CPU architecture " + std::string(name));
  return *found;
}

std::vector<KernelSource> emit_cpu_parts(const kir::KernelProgram& program,
                                         const CpuOptions& options) {
  kir::KernelProgram kept = program;
  if (!options.count_accesses) {
    for (kir::Kernel& kernel : kept.kernels) keep_in_tiles(kernel, *kept.info.exprs);
  }
  std::vector<std::string> texts;
  texts.reserve(kept.kernels.size());
  for (const kir::Kernel& kernel : kept.kernels) {
    texts.push_back(emit_cpu_kernel(kept, kernel, options));
  }
  const std::vector<CpuUnit> units = share_kernels(kept, texts);
  std::vector<KernelSource> sources;
  for (const std::vector<std::size_t>& part : split(units, options.max_parts)) {
    sources.push_back(join(kept, options, units, part));
  }
  return sources;
}

KernelSource emit_cpu(const kir::KernelProgram& program, const CpuOptions& options) {
  CpuOptions whole = options;
  whole.max_parts = 1;
  return std::move(emit_cpu_parts(program, whole)[0]);
}

}  // namespace cinch::codegen
