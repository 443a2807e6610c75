// What tests of passes share: programs from short texts, passes run under the verifier, and a check
// that a program means the same before and after.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/passes/passes.h"

namespace cinch::passes {

using PassFunction = void (*)(ir::Program&, PassContext&);

/// A finish with %0 ([f32; n], the sum), %1 (f32 1.5), %2 ([u32; n] iota), %3 (bool true), %4 (f32
/// param), and one table (3, 1, 2, 0.5). `ops` defines %9, the output.
ir::Program finish_of(const std::string& ops);
/// Evaluates through the interpreter.
PassContext context_with_interpreter();
/// Runs the passes in order and verifies after each; returns the text of finish.
std::string after(ir::Program& program, const std::vector<PassFunction>& passes);
/// Runs the passes and compares results bit for bit at edge sizes and on awkward data.
void expect_same_meaning(const ir::Program& program, const std::vector<PassFunction>& passes);
/// How often `part` occurs in `text`.
int count_of(const std::string& text, const std::string& part);

}  // namespace cinch::passes
