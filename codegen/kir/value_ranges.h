// Ranges of a kernel's values, as far as its instructions tell: intervals by forward analysis.
#pragma once

#include "codegen/kir/kir.h"
#include "runtime/core/numbers/number_range.h"

namespace cinch::kir {

/// The ranges of one kernel's values, computed on demand.
class ValueRanges {
 public:
  /// `definitions`: by value, the instruction that makes it, or null (arguments of combiners).
  ValueRanges(const KernelProgram& program, const Kernel& kernel,
              const std::vector<const Instr*>& definitions)
      : program_(program), kernel_(kernel), definitions_(definitions) {}
  NumberRange of(ValueId value);

 private:
  NumberRange find(ValueId value);
  NumberRange of_param(std::uint32_t index, ComputeType type) const;
  NumberRange of_local(std::uint32_t index, ComputeType type);

  const KernelProgram& program_;
  const Kernel& kernel_;
  const std::vector<const Instr*>& definitions_;
  std::vector<std::optional<NumberRange>> found_;
};

}  // namespace cinch::kir
