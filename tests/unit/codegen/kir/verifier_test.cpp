// The verifier refuses one broken rule after another, each made from a sound sample.
#include "codegen/kir/verifier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/kir/text/text.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"
#include "tests/unit/codegen/kir/sample_programs.h"

namespace cinch::kir {
namespace {

using ::testing::HasSubstr;

Instr& find(Kernel& kernel, InstrKind kind) {
  for (Section& section : kernel.sections) {
    for (Instr& instr : section.instrs) {
      if (instr.kind == kind) return instr;
    }
  }
  throw std::runtime_error("no such instruction in the sample");
}

// The complaint after `change` was made to kernel `index` of a sample.
template <typename Change>
std::string complaint(KernelProgram program, std::size_t index, Change change) {
  change(program, program.kernels[index]);
  return first_complaint(program);
}

TEST(Verifier, throws_with_stage_and_dump) {
  KernelProgram program = sample_reduce();
  program.kernels[0].info.symbol = "not an identifier";
  try {
    verify(program, "kernelize");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_EQ(error.kind(), InternalErrorKind::Bug);
    EXPECT_EQ(error.stage(), "kernelize");
    EXPECT_THAT(error.program(), HasSubstr("not an identifier"));
  }
  EXPECT_NO_THROW(verify(sample_reduce(), "kernelize"));
}

TEST(Verifier, levels) {
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) {
                          Instr moved = find(k, InstrKind::element);
                          moved.results = {ValueId(k.values.size())};
                          k.values.push_back({ComputeType::U32, ""});
                          k.sections[0].instrs.push_back(moved);
                        }),
              HasSubstr("not allowed at this level"));
  EXPECT_THAT(complaint(sample_rows(512, 4), 0,
                        [](KernelProgram&, Kernel& k) {
                          // The base of a load comes from inside the element section.
                          Instr& load = find(k, InstrKind::load_linear);
                          const ValueId inner = load.results[0];
                          k.values[inner.index()].type = ComputeType::I64;
                          load.operands[0] = inner;
                        }),
              HasSubstr("used before its definition"));
}

TEST(Verifier, dominance_over_sections) {
  // The sum is used in the group section in front of its reduction.
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) { std::swap(k.sections[2], k.sections[3]); }),
              HasSubstr("used before its definition"));
  // An element value of the first element section is used in the second.
  EXPECT_THAT(complaint(sample_rows(512, 4), 0,
                        [](KernelProgram&, Kernel& k) {
                          const ValueId first = find(k, InstrKind::load_linear).results[0];
                          for (Instr& instr : k.sections.back().instrs) {
                            if (instr.kind == InstrKind::scalar) instr.operands[0] = first;
                          }
                        }),
              HasSubstr("belongs to another element section"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) {
                          // The reduction's own result inside its section.
                          const ValueId sum = find(k, InstrKind::reduce).results[0];
                          find(k, InstrKind::flag_nonfinite).operands[0] = sum;
                        }),
              HasSubstr("used before its definition"));
}

TEST(Verifier, values) {
  EXPECT_THAT(
      complaint(sample_reduce(), 0,
                [](KernelProgram&, Kernel& k) { k.values.push_back({ComputeType::F32, ""}); }),
      HasSubstr("never defined"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) {
                          find(k, InstrKind::load_linear).results[0] =
                              find(k, InstrKind::element).results[0];
                        }),
              HasSubstr("defined twice"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) {
                          find(k, InstrKind::flag_nonfinite).operands[0] = ValueId(9999);
                        }),
              HasSubstr("out of the table"));
}

TEST(Verifier, types) {
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) {
                          find(k, InstrKind::flag_nonfinite).operands[0] =
                              find(k, InstrKind::store_linear).operands[0];
                        }),
              HasSubstr("operand 0 is bool"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram& p, Kernel&) {
                          p.buffers[0].dtype = kF64;
                          p.buffers[0].storage_bits = 64;
                        }),
              HasSubstr("result 0 must be f64"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) { k.combiners[0].op = ScalarOp::bit_xor; }),
              HasSubstr("the combiner does not take f32"));
  EXPECT_THAT(
      complaint(sample_odds(), 0,
                [](KernelProgram&, Kernel& k) { find(k, InstrKind::bitcast).dtype = kF16; }),
      HasSubstr("a bitcast between widths"));
  EXPECT_THAT(complaint(sample_compact(), 0,
                        [](KernelProgram&, Kernel& k) {
                          Instr& sub = find(k, InstrKind::scalar);
                          sub.operands.push_back(sub.operands[0]);
                        }),
              HasSubstr("operands"));
}

TEST(Verifier, buffers) {
  EXPECT_THAT(
      complaint(sample_reduce(), 0,
                [](KernelProgram&, Kernel& k) { find(k, InstrKind::load_linear).buffers = {99}; }),
      HasSubstr("no buffer @99"));
  EXPECT_THAT(
      complaint(sample_reduce(), 0,
                [](KernelProgram& p, Kernel&) { p.buffers[1].role = rt::BufferRole::State; }),
      HasSubstr("read-only"));
  EXPECT_THAT(complaint(sample_compact(), 0,
                        [](KernelProgram& p, Kernel&) { p.buffers[1].storage_bits = 37; }),
              HasSubstr("packed buffer"));
  EXPECT_THAT(
      complaint(sample_compact(), 0, [](KernelProgram& p, Kernel&) { p.buffers[4].dtype = kU32; }),
      HasSubstr("not a u64 workspace"));
  EXPECT_THAT(complaint(sample_compact(), 0,
                        [](KernelProgram& p, Kernel&) { p.buffers[1].num_elems = {}; }),
              HasSubstr("buffer @1 index: a size is missing"));
}

TEST(Verifier, attributes) {
  EXPECT_THAT(
      complaint(sample_compact(), 0, [](KernelProgram&, Kernel& k) { k.info.is_ordered = false; }),
      HasSubstr("not ordered"));
  EXPECT_THAT(
      complaint(sample_odds(), 2, [](KernelProgram&, Kernel& k) { k.info.is_sequential = false; }),
      HasSubstr("not sequential"));
  EXPECT_THAT(complaint(sample_odds(), 0,
                        [](KernelProgram&, Kernel& k) { find(k, InstrKind::fail_if).index = 5; }),
              HasSubstr("no such message"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) { find(k, InstrKind::param).index = 5; }),
              HasSubstr("no such parameter"));
  EXPECT_THAT(
      complaint(sample_odds(), 0,
                [](KernelProgram&, Kernel& k) { find(k, InstrKind::call_extern).index = 5; }),
      HasSubstr("no such C++ function"));
  EXPECT_THAT(complaint(sample_odds(), 0,
                        [](KernelProgram& p, Kernel&) { p.info.externs[0].params = {kF32}; }),
              HasSubstr("2 operands"));
  EXPECT_THAT(complaint(sample_odds(), 0,
                        [](KernelProgram& p, Kernel&) { p.info.externs[0].params[1] = kU32; }),
              HasSubstr("operand 1 is i32"));
  EXPECT_THAT(
      complaint(sample_odds(), 0,
                [](KernelProgram& p, Kernel&) { p.info.externs[0].params[1] = *make_uint(5); }),
      HasSubstr("no type of C++"));
  EXPECT_THAT(complaint(sample_reduce(), 1,
                        [](KernelProgram&, Kernel& k) { k.info.role = rt::KernelRole::Sweep; }),
              HasSubstr("outside a Finish kernel"));
  EXPECT_THAT(complaint(sample_scan(), 0, [](KernelProgram&, Kernel& k) { k.locals.clear(); }),
              HasSubstr("no such local array"));
  EXPECT_THAT(complaint(sample_scan(), 0,
                        [](KernelProgram& p, Kernel& k) {
                          k.group_kind = GroupKind::Row;
                          k.group_len = p.info.exprs->const_int(2048);
                        }),
              HasSubstr("local arrays need tiles"));
  const auto scan_becomes = [](InstrKind kind) {
    return complaint(sample_scan(), 0, [&](KernelProgram& p, Kernel& k) {
      k.group_kind = GroupKind::Row;
      k.group_len = p.info.exprs->const_int(24);
      Instr& scan = find(k, InstrKind::local_scan);
      scan.kind = kind;
      scan.buffers.assign(kind == InstrKind::local_product ? 1 : 0, 0);
    });
  };
  EXPECT_THAT(scan_becomes(InstrKind::local_butterflies), HasSubstr("not a power of two"));
  EXPECT_THAT(scan_becomes(InstrKind::local_product), HasSubstr("no such local arrays"));
  EXPECT_THAT(scan_becomes(InstrKind::local_largest), HasSubstr("operands"));
}

TEST(Verifier, kernels_and_steps) {
  EXPECT_THAT(
      complaint(sample_scan(), 1, [](KernelProgram&, Kernel& k) { k.info.symbol = "scan_tiles"; }),
      HasSubstr("the symbol is taken"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram&, Kernel& k) { k.sections.erase(k.sections.begin()); }),
              HasSubstr("the first section"));
  EXPECT_THAT(
      complaint(sample_reduce(), 0, [](KernelProgram& p, Kernel&) { p.size_exprs.clear(); }),
      HasSubstr("not an entry of size_exprs"));
  EXPECT_THAT(complaint(sample_reduce(), 0,
                        [](KernelProgram& p, Kernel&) { p.entries[1].steps[0].index = 7; }),
              HasSubstr("a launch of an unknown kernel"));
  EXPECT_THAT(complaint(sample_compact(), 0,
                        [](KernelProgram& p, Kernel&) { p.entries[1].steps[0].index = 70; }),
              HasSubstr("a zero of an unknown buffer"));
}

}  // namespace
}  // namespace cinch::kir
