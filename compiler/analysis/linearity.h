// How values depend on an input: not at all, linearly (f(a + b) = f(a) + f(b) up to rounding), or
// otherwise. Conservative: what cannot be proved linear counts as otherwise.
#pragma once

#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

/// What is known of one value; zero is both constant and linear.
struct Dependence {
  bool is_constant = false;  // the same for every input, and on every rank
  bool is_linear = false;    // homogeneous and linear in the input
};

/// For each value of the function, its dependence on the input: the fields (decode), or gradient
/// and states together (encode, finish, sync).
std::vector<Dependence> find_dependences(const ir::Program& program, const ir::Function& function);

/// Can payloads be added field by field (language.md, `by sum`)? Gather if some field does not say
/// so or has a counted length; SumProved if decode is linear in the fields or encode in the
/// gradient; else SumToTest.
rt::Aggregation find_aggregation(const ir::Program& program);

/// Does the program have a `finish` whose update and new states are linear in the sum and in the
/// old states, except for saturation near the ends of f32?
bool is_finish_linear(const ir::Program& program);

}  // namespace cinch::analysis
