#include "codegen/emit/c_family.h"

#include <fmt/format.h>

#include "codegen/kir/compute_type.h"

namespace cinch::codegen {
namespace {

void note_calls(const std::vector<kir::Instr>& instrs, std::set<std::uint32_t>& called) {
  for (const kir::Instr& instr : instrs) {
    if (instr.kind == kir::InstrKind::call_extern) called.insert(instr.index);
  }
}

}  // namespace

std::set<std::uint32_t> called_externs(std::span<const kir::Kernel* const> kernels) {
  std::set<std::uint32_t> called;
  for (const kir::Kernel* kernel : kernels) {
    for (const kir::Section& section : kernel->sections) note_calls(section.instrs, called);
    for (const kir::Combiner& combiner : kernel->combiners) note_calls(combiner.body, called);
  }
  return called;
}

std::string extern_definition(const rt::ExternInfo& function, std::uint32_t index) {
  return fmt::format("namespace extern_{} {{  // {}\n{}}}\n", index, function.name,
                     function.source);
}

std::string extern_definitions(const rt::ProgramInfo& info, const std::set<std::uint32_t>& which) {
  std::string text;
  for (const std::uint32_t index : which) text += extern_definition(info.externs[index], index);
  return text;
}

std::string extern_call(const rt::ProgramInfo& info, std::uint32_t index,
                        std::span<const std::string> operands) {
  const rt::ExternInfo& function = info.externs[index];
  std::string arguments;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    arguments +=
        fmt::format("{}{}({})", i ? ", " : "", dtype_name(function.params[i]), operands[i]);
  }
  return fmt::format("{}(extern_{}::call({}))", c_type(kir::compute_type(function.result)), index,
                     arguments);
}

}  // namespace cinch::codegen
