// A program whose encode is built by hand, for tests of kernelize.
#pragma once
#include <gtest/gtest.h>

#include "codegen/kir/kir.h"
#include "codegen/kir/text/text.h"
#include "codegen/kir/verifier.h"
#include "compiler/ir/builder.h"
#include "compiler/kernelize/kernelize.h"

namespace cinch::codegen {

using ir::ValueId;

struct Sample {
  ir::Program program;
  ir::Function encode = ir::make_function(ir::FunctionKind::Encode);
  ir::Builder b{program, encode};
  ValueId g;

  Sample() {
    program.info.name = "sample";
    g = b.gradient();
  }
  HostExprPool& pool() { return *program.info.exprs; }
  void add_field(const std::string& name, ValueId v) {
    program.info.wire.fields.push_back({name, b.type(v)});
    encode.results.fields.push_back(v);
  }
  void add_state(const std::string& name) {
    program.info.states.push_back({name, {kF32, 1, {pool().n(), {}}}});
  }
  kir::KernelProgram kernels() {
    b.yield({});
    program.functions.push_back(encode);
    auto out = kernelize(program);
    kir::verify(out, "kernelize");
    return out;
  }
  // Expects this number of sweeps in encode; shows the text on failure.
  void expect_sweeps(int sweeps) {
    const auto out = kernels();
    EXPECT_EQ(kir::entry_structure(out, rt::EntryKind::Encode).sweeps, sweeps) << kir::print(out);
  }
};

// A sample program run on the CPU and by the interpreter.

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
