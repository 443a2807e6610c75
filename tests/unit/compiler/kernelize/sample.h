// A program whose encode is built by hand, for tests of kernelize.
#pragma once
#include <gtest/gtest.h>

#include "codegen/kir/structure.h"
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
  HostExprPool& pool() { return program.info.exprs; }
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

}  // namespace cinch::codegen
