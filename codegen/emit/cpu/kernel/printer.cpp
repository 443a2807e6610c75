#include "codegen/emit/cpu/kernel/printer.h"

#include <fmt/format.h>

#include "runtime/core/check.h"

namespace cinch::codegen {

std::string CpuPrinter::uniform(ValueId value) const {
  if (facts().is_constant(value)) return literal(type(value), facts().definition(value)->bits);
  CINCH_CHECK(!facts().is_element(value),
              "an element value where a uniform one must stand: " + name(value));
  return name(value);
}

std::string CpuPrinter::lanes(ValueId value) const {
  const bool is_of_rows = cx_.level == Level::Rows && cx_.facts.level(value) == Level::Group;
  if ((is_of_rows || facts().is_element(value)) && !facts().is_constant(value)) return name(value);
  return fmt::format("wide<{}>({})", c_type(type(value)), uniform(value));
}

std::string CpuPrinter::operand(ValueId value) const {
  return is_lanes() ? lanes(value) : uniform(value);
}

std::string CpuPrinter::acting(ValueId pred) const {
  if (!pred) return is_lanes() ? "live" : "true";
  return is_lanes() ? fmt::format("Truth(live & {})", lanes(pred)) : uniform(pred);
}

void CpuPrinter::define(ValueId value, const std::string& text) {
  const std::string held =
      fmt::format(fmt::runtime(is_lanes() ? "Lanes<{}>" : "{}"), c_type(type(value)));
  line(fmt::format("const {} {} = {};", held, name(value), text));
}

void CpuPrinter::assign(ValueId value, const std::string& text) {
  line(fmt::format("{} = {};", name(value), text));
}

std::string CpuPrinter::local(std::uint32_t index) const {
  return fmt::format("local_{}{}", index, cx().phases.is_kept(index) ? "[slot]" : "");
}

std::string CpuPrinter::stage_name(const Instr& instr) const {
  if (!instr.results.empty()) return "stage_" + name(instr.results[0]);
  return fmt::format("stage_{}_{}", cx().section, cx().instr);
}

std::string CpuPrinter::base_text(ValueId base, const char* place) const {
  if (!base) return fmt::format("i64({})", place);
  return fmt::format("i64({}) + {}", uniform(base), place);
}

std::string CpuPrinter::count_text(ValueId limit, const char* place, const char* count) const {
  if (!limit) return count;
  return fmt::format("places_below(i64({}), i64({}), {})", uniform(limit), place, count);
}

}  // namespace cinch::codegen
