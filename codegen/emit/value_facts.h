// Facts about a kernel's values, for the emitters of both targets. Inside of the emitters.
#pragma once
#include <optional>

#include "codegen/emit/c_family.h"
#include "codegen/kir/compute_type.h"
#include "codegen/kir/value_ranges.h"

namespace cinch::codegen {

/// Which operand of a draw is the element's index, and which is the loop's iteration, if it has
/// one. Operands: [x,] index[, size][, iteration].
std::size_t index_operand(const kir::Instr& draw);
std::size_t iteration_operand(const kir::Instr& draw);

/// A value that grows by one from element to element of a group: the element's place in the group
/// or in the tensor, plus values that are the same for the whole group.
struct IndexRun {
  bool is_of_tensor = false;
  std::vector<kir::ValueId> addends;
};

/// A kernel's values: where they are computed, how often, and what they can be. Computed before the
/// first line is printed, and constant afterwards.
class ValueFacts {
 public:
  ValueFacts(const kir::KernelProgram& program, const kir::Kernel& kernel);
  ValueFacts(const ValueFacts&) = delete;
  ValueFacts& operator=(const ValueFacts&) = delete;

  const kir::KernelProgram& program() const { return program_; }
  const kir::Kernel& kernel() const { return kernel_; }
  kir::ComputeType type(kir::ValueId value) const { return kernel_.values[value.index()].type; }
  std::string name(kir::ValueId value) const { return value_name(kernel_, value); }
  Level level(kir::ValueId value) const { return levels_[value.index()]; }
  /// The instruction that makes the value; null for arguments of combiners.
  const kir::Instr* definition(kir::ValueId value) const { return definitions_[value.index()]; }
  bool is_constant(kir::ValueId value) const;
  /// The value's definition if it is this operator, else null.
  const kir::Instr* scalar_of(kir::ValueId value, ScalarOp op) const;
  NumberRange range(kir::ValueId value) const { return ranges_.of(value); }

  std::optional<IndexRun> find_run(kir::ValueId value) const;
  /// May all instructions of an element section run a second time for the same elements, without a
  /// trace of the first run? In the first run, an element whose draw ties gets a wrong integer, so
  /// the second run must overwrite everything that depends on it. A failed check would stay, and so
  /// would a flag.
  bool is_repeatable(const std::vector<kir::Instr>& section) const;
  /// A function of runtime/core/lang that gives an instruction's bits in fewer steps than the one
  /// of its operator, or null; and what it takes.
  const char* short_form(const kir::Instr& instr) const;
  kir::ValueId short_operand(const kir::Instr& instr) const;
  /// The lang::RoundedRange of a stochastic_round that becomes an integer.
  const char* rounded_range(const kir::Instr& round) const;

 private:
  bool is_done_again(const kir::Instr& instr) const;

  const kir::KernelProgram& program_;
  const kir::Kernel& kernel_;
  std::vector<Level> levels_;
  std::vector<const kir::Instr*> definitions_;
  mutable kir::ValueRanges ranges_;  // caches ranges
};

}  // namespace cinch::codegen
