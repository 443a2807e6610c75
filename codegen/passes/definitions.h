// Finds the instruction that makes each value of a kernel.
#pragma once
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Valid while no instruction is added or moved.
class Definitions {
 public:
  explicit Definitions(const kir::Kernel& kernel)
      : made_(kernel.values.size(), nullptr), is_of_elements_(kernel.values.size(), false) {
    for (const kir::Section& section : kernel.sections) {
      const bool is_of_elements = section.kind == kir::SectionKind::Elements;
      for (const kir::Instr& instr : section.instrs) {
        for (const kir::ValueId result : instr.results) {
          made_[result.index()] = &instr;
          is_of_elements_[result.index()] = is_of_elements;
        }
      }
    }
  }
  /// Null for arguments and results of combiners.
  const kir::Instr* of(kir::ValueId value) const { return made_[value.index()]; }
  /// Does an element section make it, even as a result for the group?
  bool is_of_elements(kir::ValueId value) const { return is_of_elements_[value.index()]; }

 private:
  std::vector<const kir::Instr*> made_;
  std::vector<bool> is_of_elements_;
};

}  // namespace cinch::codegen
