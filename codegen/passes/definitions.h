// What makes each value of a kernel.
#pragma once
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// As long as no instruction is added or moved.
class Definitions {
 public:
  explicit Definitions(const kir::Kernel& kernel) : made_(kernel.values.size(), nullptr) {
    for (const kir::Section& section : kernel.sections) {
      for (const kir::Instr& instr : section.instrs) {
        for (const kir::ValueId result : instr.results) made_[result.index()] = &instr;
      }
    }
  }
  /// Null for what a combiner gets or makes.
  const kir::Instr* of(kir::ValueId value) const { return made_[value.index()]; }

 private:
  std::vector<const kir::Instr*> made_;
};

}  // namespace cinch::codegen
