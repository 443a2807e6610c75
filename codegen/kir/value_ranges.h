// What values of a kernel can be, as far as its instructions tell: intervals by forward analysis.
#pragma once
#include <optional>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::kir {

/// A closed interval of numbers; zeros of both signs count as 0. Where nothing is known, all of the
/// type.
struct ValueRange {
  double low, high;
  bool may_be_nan = false;

  bool is_within(double least, double most) const {
    return !may_be_nan && low >= least && high <= most;
  }
};

/// The ranges of one kernel's values, worked out when asked for.
class ValueRanges {
 public:
  /// `definitions`: by value the instruction that makes it, or null (arguments of combiners).
  ValueRanges(const KernelProgram& program, const Kernel& kernel,
              const std::vector<const Instr*>& definitions)
      : program_(program), kernel_(kernel), definitions_(definitions) {}
  ValueRange of(ValueId value);

 private:
  ValueRange find(ValueId value);
  ValueRange of_scalar(const Instr& instr, ComputeType type);
  ValueRange of_arithmetic(const Instr& instr, ComputeType type);
  ValueRange of_bits(const Instr& instr, ComputeType type);
  ValueRange of_convert(const Instr& instr);
  ValueRange of_param(std::uint32_t index, ComputeType type) const;
  ValueRange of_load(const Instr& instr, ComputeType type) const;

  const KernelProgram& program_;
  const Kernel& kernel_;
  const std::vector<const Instr*>& definitions_;
  std::vector<std::optional<ValueRange>> found_;
};

}  // namespace cinch::kir
