// How long values are wanted: memory for a program's arrays is that of those alive together.
#pragma once

#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::interp {

/// For each op, by number, the values that nobody reads once it has run; an op reads what the
/// regions it holds read. Results of the function are in none of the lists.
std::vector<std::vector<ir::ValueId>> last_read_by(const ir::Function& function);

}  // namespace cinch::interp
