// A sample program run on the CPU and by the interpreter.
#pragma once
#include "tests/unit/compiler/kernelize/sample.h"

namespace cinch::codegen {

/// Two steps at every edge size, on each level of vectors that the machine has: payloads and states
/// must be equal bit for bit. Adds test failures.
void compare(Sample& s);
/// decode and decode-add of what encode gives, likewise. `s` has not been given to compare.
void compare_decode(Sample& s, ir::Function decode);

/// A state [f32; n] that starts as zeros.
void add_zero_state(Sample& s, const std::string& name);
/// A selection that is also wire count 0.
ir::Builder::Nonzero select(Sample& s, ValueId mask, HostExprId bound, HostExprId limit = {});
/// A field whose length is that selection's: the wire has its own count.
void add_counted_field(Sample& s, const std::string& name, ValueId v, HostExprId bound);

}  // namespace cinch::codegen
