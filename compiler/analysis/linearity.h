// How values depend on an input: not at all, linearly (f(a + b) = f(a) + f(b) up to rounding), or
// otherwise. Conservative: what is not seen to be linear counts as otherwise.
#pragma once

#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

/// What is known of one value; zero is both.
struct Dependence {
  bool is_constant = false;  // the same whatever the input is, and on every rank
  bool is_linear = false;    // homogeneous and linear in the input
};

/// For each value of the function, its dependence on the input: the fields (decode), or gradient
/// and states together (encode, finish, sync).
std::vector<Dependence> find_dependences(const ir::Program& program, const ir::Function& function);

/// Whether payloads add up field by field (language.md, `by sum`): Gather where some field does not
/// say so or has a counted length; SumProved where decode is linear in the fields or encode in the
/// gradient; else SumToTest.
rt::Aggregation find_aggregation(const ir::Program& program);

/// Whether the program has a `finish` whose update, and what it leaves in states, is linear in the
/// sum and in the states before, but for saturating near the ends of f32.
bool is_finish_linear(const ir::Program& program);

}  // namespace cinch::analysis
