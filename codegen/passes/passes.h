// The passes over kernel IR. run_kernel_passes runs them in order, each followed by the checker of
// buffer contents.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {
/// Where the new values of states are written.
enum class StateUpdate : std::uint8_t {
  SecondBuffer,  // to a second buffer; the runtime swaps the two when the call has succeeded
  InPlace,       // over the present values, wherever that is safe
};

/// Throws InternalError if a pass leaves a plan that would read data that are not there.
void run_kernel_passes(kir::KernelProgram& program, StateUpdate states, rt::StepLimit& steps);

// Passes that mark instructions, kernels and steps with facts on which emitters rely, and the check
// that proves the marks again.

/// Marks values as alike that are the same for the 128 elements of a row of a tile, like the norm
/// of their bucket. A target may compute such a value once for the row.
///
///   before:  %3: u32 = scalar.div %2, %512
///            %4: f32 = load_at %3 @1
///   after:   %3: u32 = scalar.div %2, %512 alike
///            %4: f32 = load_at %3 @1 alike
///
/// Sets Instr::is_alike, in kernels over tiles: for quotients of the element's number by a multiple
/// of 128, and for values that are computed or loaded from these and from values of the whole
/// group.
void mark_alike(kir::KernelProgram& program);

/// Marks stores of selected elements as compact: an element's place is the begin of its group's
/// output plus the number of selected elements before it. Storing lanes then write to neighbouring
/// places, and a target may store them side by side.
///
///   before:  %6: u32, %7: u32 = running_sum %5 exclusive
///            %8: u32 = scalar.add %start, %6
///            store_at %8, %4, %5 @1
///   after:   the same, and store_at %8, %4, %5 @1 compact
///
/// Sets Instr::is_compact for a store in an element section. Its place is the sum of a value of the
/// group and an exclusive running count of truths. Its condition is the counted truth, perhaps with
/// "the place is below a limit", which only cuts off the last ones.
void mark_compact(kir::KernelProgram& program);

/// Marks finishing kernels whose stored partials may be folded before they run (GpuFold of
/// runtime/image/kernel_abi.h).
///
///   before:  kernel finish "encode_scalars"
///   after:   kernel finish "encode_scalars"
///             foldable
///
/// Sets Kernel::is_foldable. A fold overwrites partials. So the partials must be written only by
/// the sweep after which the kernel always runs, nothing else may read them, and their buffers must
/// hold unpacked results. The fold does a part of the kernel's reductions and nothing else, so
/// their inputs must be ready before the kernel. Run this before share_workspace, which lets others
/// use the buffers of partials that are no longer needed.
void mark_foldable(kir::KernelProgram& program);

/// May these launches run in any order, or at the same time? Yes if all are of sequential kernels
/// without checks, and no launch uses what another writes.
bool run_beside(const kir::KernelProgram& program, std::span<const rt::Step> launches);

/// Marks launches that may run at the same time. A launch whose groups must come one after another
/// takes one thread; its neighbours may run beside it if they use none of its data.
///
///   before:  zero @6              after:  zero @6
///            launch 0                     zero @7
///            zero @7                      launch 0 beside 1
///            launch 1                     launch 1
///
/// Puts such launches side by side, after the zero fills that were between them, and sets their
/// number in the first one (rt::Step::index2).
void mark_beside(kir::KernelProgram& program);

/// Proves the marks again on which emitters rely. Throws an internal error with the program
/// attached, if an instruction is marked alike or compact and the kernel does not show it, or if
/// parallel launches use what one of them writes. `stage`: the last stage that ran.
void check_facts(const kir::KernelProgram& program, const std::string& stage);

// Passes that choose where values lie: in place, or in buffers that several of them share.

/// Makes states that encode updates overwrite their present values. That saves a buffer as large as
/// the state. It costs a sweep over the gradient if nothing else reads all of it before the update:
/// a non-finite value must be found before the first write.
///
///   before:  launch 0   encode_sweep      reads g, state; writes state', fields; checks finite
///   after:   launch 1   encode_check      reads g; checks finite
///            launch 0   encode_sweep      reads g, state; writes state, fields
///
/// A state is updated in place if
/// - one kernel, launched once, writes all its new values, each after the same lane has read the
/// present values that it needs, and nothing else reads present values later;
/// - no check of the program can fail in that kernel or later;
/// - it has whole elements, and only encode changes it.
/// From the first such kernel on, the call runs to its end even if its caller cancels it.
///
/// Counts one step for each state.
void update_in_place(kir::KernelProgram& program, rt::StepLimit& steps);

/// Writes values that a loop carries in place, if one thread computes them from everything that it
/// reads.
///
///   before:  for @1 {                      after:  for @1 {
///             launch 3   reads @5,                  launch 3   reads @5, writes @5
///                        writes @6                 }
///             copy @5 from @6
///            }
///
/// Only for scalars: a kernel of a single group that loads, computes and stores, and is the last of
/// a round to use the carried values. Its stores move behind its loads. Counts one step for each
/// copy that is saved.
void carry_in_place(kir::KernelProgram& program, rt::StepLimit& steps);

/// Merges workspace buffers that are never in use at the same time, like register allocation: by
/// live ranges over the steps of an entry.
///
///   before:  launch 0   writes @7          after:  launch 0   writes @7
///            launch 1   reads @7                   launch 1   reads @7
///            launch 2   writes @9                  launch 2   writes @7
///
/// Only arrays of the same element type and number of elements; never a step's private data (a
/// condition, a counter, what ranks exchange). A buffer that a loop uses is in use in the whole
/// loop. Counts one step for each buffer that is saved.
void share_workspace(kir::KernelProgram& program, rt::StepLimit& steps);

/// Replaces every use of buffer b by to[b]. Drops the replaced buffers, and renumbers the rest in
/// order.
void rename_buffers(kir::KernelProgram& program, const std::vector<rt::BufferIndex>& to);

// Passes that say the same with fewer or plainer instructions, and what rewriting passes use.

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
