// A sample program run on the CPU and by the interpreter.
#pragma once
#include "tests/unit/compiler/kernelize/sample.h"

namespace cinch::codegen {

/// Takes two steps at every edge size, on each level of vectors of the machine: payloads and states
/// must be equal bit for bit. Adds test failures.
void compare(Sample& s);
/// Compares decode and decode-add of encode's results in the same way. `s` must not have been
/// passed to compare.
void compare_decode(Sample& s, ir::Function decode);

/// A state [f32; n] that starts as zeros.
void add_zero_state(Sample& s, const std::string& name);
/// A selection that is also wire count 0.
ir::Builder::Nonzero select(Sample& s, ValueId mask, HostExprId bound, HostExprId limit = {});
/// A field with the length of that selection: the wire has its own count.
void add_counted_field(Sample& s, const std::string& name, ValueId v, HostExprId bound);

}  // namespace cinch::codegen
