// Computes how long values are needed: a program's arrays need as much memory as those alive at
// once.
#pragma once

#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::interp {

/// For each op, by number, the values that no op reads after it. An op also reads what the regions
/// that it holds read. Results of the function are in none of the lists.
std::vector<std::vector<ir::ValueId>> last_read_by(const ir::Function& function);

}  // namespace cinch::interp
