// Passes that say the same with fewer or plainer instructions, and what rewriting passes use.
#pragma once
#include <vector>

#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {

/// Turns running sums of ones and zeros into counts of truths, which targets compute from bits.
///
///   before:  %7: u32 = scalar select %5, %one, %zero    after:  %8: u32, %9: u32 = running_sum %5
///            %8: u32, %9: u32 = running_sum %7
///
/// Also handles conversions from bool. Counts one step for each sum.
void count_truths(kir::KernelProgram& program, rt::StepLimit& steps);

/// Turns a random rounding and its conversion to a short integer into one instruction: targets
/// round in fixed point.
///
///   before:  %5: f32 = stochastic_round %4, %3 draw=1    after:  %6: i32 = stochastic_round %4, %3
///            %6: i32 = convert %5 dtype=i8                       dtype=i8 draw=1
///
/// For f32, to integers of 2 to 32 bits, per element. If the rounded number itself is used, too,
/// its draw is the same. Counts one step for each conversion.
void round_to_integers(kir::KernelProgram& program, rt::StepLimit& steps);

/// Drops computing and drawing instructions whose results are unused, and renumbers values in
/// order. Loads stay: a kernel declares what it reads.
void drop_unused(kir::Kernel& kernel);

/// Finds the instruction that makes each value of a kernel. Valid while no instruction is added or
/// moved.
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
