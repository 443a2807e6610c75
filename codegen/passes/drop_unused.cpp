#include "codegen/passes/rewrites.h"

#include <algorithm>
#include <ranges>

#include "codegen/kir/instr_info.h"

namespace cinch::codegen {
namespace {

using kir::Instr;
using kir::ValueId;

class Unused {
 public:
  explicit Unused(kir::Kernel& kernel) : kernel_(kernel), is_used_(kernel.values.size(), false) {}

  void drop() {
    use(kernel_.extent_value);
    for (const kir::Combiner& combiner : kernel_.combiners) {
      for (const Instr& instr : combiner.body) use(instr);
      for (const auto* values : {&combiner.args, &combiner.results}) {
        for (const ValueId v : *values) use(v);
      }
      for (const Instr& instr : combiner.body) {
        for (const ValueId v : instr.results) use(v);
      }
    }
    for (kir::Section& section : kernel_.sections | std::views::reverse) drop_from(section);
    number_anew();
  }

 private:
  void use(ValueId v) {
    if (v) is_used_[v.index()] = true;
  }
  void use(const Instr& instr) {
    for (const ValueId v : instr.operands) use(v);
  }
  bool is_needed(const Instr& instr) const {
    const bool is_pure =
        kir::is_computed(instr.kind) || instr.kind == kir::InstrKind::stochastic_round;
    return !is_pure ||
           std::ranges::any_of(instr.results, [&](ValueId v) { return is_used_[v.index()]; });
  }

  void drop_from(kir::Section& section) {
    std::vector<Instr> kept;
    for (Instr& instr : section.instrs | std::views::reverse) {
      if (!is_needed(instr)) continue;
      use(instr);
      for (const ValueId v : instr.results) use(v);
      kept.push_back(std::move(instr));
    }
    std::ranges::reverse(kept);
    section.instrs = std::move(kept);
  }

  void number_anew() {
    std::vector<ValueId> place(kernel_.values.size());
    std::vector<kir::Value> kept;
    for (std::size_t v = 0; v < place.size(); ++v) {
      if (!is_used_[v]) continue;
      place[v] = ValueId(kept.size());
      kept.push_back(std::move(kernel_.values[v]));
    }
    kernel_.values = std::move(kept);
    const auto rename = [&](std::vector<ValueId>& values) {
      for (ValueId& v : values) {
        if (v) v = place[v.index()];
      }
    };
    const auto rename_all = [&](std::vector<Instr>& instrs) {
      for (Instr& instr : instrs) {
        rename(instr.operands);
        rename(instr.results);
      }
    };
    for (kir::Section& section : kernel_.sections) rename_all(section.instrs);
    for (kir::Combiner& combiner : kernel_.combiners) {
      rename(combiner.args);
      rename(combiner.results);
      rename_all(combiner.body);
    }
    if (kernel_.extent_value) kernel_.extent_value = place[kernel_.extent_value.index()];
  }

  kir::Kernel& kernel_;
  std::vector<bool> is_used_;
};

}  // namespace

void drop_unused(kir::Kernel& kernel) {
  Unused(kernel).drop();
}

}  // namespace cinch::codegen
