// What the emitters of both targets ask about a kernel's values. Inside of the emitters.
#pragma once
#include <optional>
#include <vector>

#include "codegen/emit/c_family.h"
#include "codegen/kir/kir.h"
#include "codegen/kir/value_ranges.h"

namespace cinch::codegen {

/// By value the instruction that makes it; null for arguments of combiners.
std::vector<const kir::Instr*> find_definitions(const kir::Kernel& kernel);

bool is_draw(kir::InstrKind kind);
/// Which operand of a draw is the element's index, and which the loop's iteration, if it has one.
/// Operands: [x,] index[, size][, iteration].
std::size_t index_operand(const kir::Instr& draw);
std::size_t iteration_operand(const kir::Instr& draw);

/// A value that goes up by one from element to element of a group: the element's place in the
/// group, or among all elements of the tensor, plus what is the same for the whole group.
struct IndexRun {
  bool is_of_tensor = false;
  std::vector<kir::ValueId> addends;
};
/// `levels`: value_levels(kernel).
std::optional<IndexRun> find_run(const kir::Kernel& kernel,
                                 const std::vector<const kir::Instr*>& definitions,
                                 const std::vector<Level>& levels, kir::ValueId value);

/// May all instructions of an element section be done again for the same elements, and does what
/// they did first leave no trace? What the first look computes for an element whose draw ties is a
/// wrong integer: whatever that may reach must be overwritten by the second. A failed check would
/// stay, as would a flag of what is computed from it.
bool is_repeatable(const std::vector<kir::Instr>& section,
                   const std::vector<const kir::Instr*>& definitions);

/// The lang::RoundedRange of a stochastic_round that becomes an integer.
const char* rounded_range(kir::ValueRanges& ranges, const kir::Instr& round);

}  // namespace cinch::codegen
