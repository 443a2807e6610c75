// What single operators ask of sweeps over memory: the rules of forced_sweeps.cpp.
#pragma once
#include <cstddef>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

/// Small arrays (tables, histograms), whose size is a constant, are finished on chip.
bool lies_in_memory(const ir::Program& program, const ir::Type& type);

/// Sweeps over its operands after which the op's result is known; 0: as soon as they are.
std::size_t sweeps_forced_by(const ir::Program& program, const ir::Function& function,
                             const ir::Op& op);

/// Does making a part of the result again cost as much as making all of it? What a forced sweep
/// made then lies in memory for later ones.
bool is_made_whole(ir::OpKind kind);

}  // namespace cinch::analysis
