// The rules of forced_sweeps.cpp: what single operators demand of sweeps over memory.
#pragma once
#include <cstddef>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

/// Does the array lie in memory? Small arrays (tables, histograms) of constant size are finished on
/// chip.
bool lies_in_memory(const ir::Program& program, const ir::Type& type);

/// How many sweeps over its operands the op needs before its result is known; 0: none.
std::size_t sweeps_forced_by(const ir::Program& program, const ir::Function& function,
                             const ir::Op& op);

/// Does recomputing a part of the result cost as much as recomputing all of it? If so, a result
/// that a forced sweep made lies in memory for later ones.
bool is_made_whole(ir::OpKind kind);

}  // namespace cinch::analysis
