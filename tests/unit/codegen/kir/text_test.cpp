// The kernel IR's text form: both ways for every instruction; what is no text is refused with its
// line.
#include "codegen/kir/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/cost.h"
#include "codegen/kir/verifier.h"
#include "tests/unit/codegen/kir/sample_programs.h"

namespace cinch::kir {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

void collect(const std::vector<Instr>& instrs, std::set<InstrKind>& kinds) {
  for (const Instr& instr : instrs) kinds.insert(instr.kind);
}

TEST(Samples, hold_every_instruction_and_verify) {
  std::set<InstrKind> kinds;
  for (const KernelProgram& program : all_samples()) {
    EXPECT_EQ(first_complaint(program), "") << print(program);
    for (const Kernel& kernel : program.kernels) {
      for (const Section& section : kernel.sections) collect(section.instrs, kinds);
      for (const Combiner& combiner : kernel.combiners) collect(combiner.body, kinds);
    }
  }
  for (std::size_t i = 0; i < kNumInstrKinds; ++i) {
    EXPECT_TRUE(kinds.count(static_cast<InstrKind>(i)))
        << instr_info(static_cast<InstrKind>(i)).name << " is in no sample";
  }
}

TEST(Text, round_trips) {
  for (KernelProgram& program : all_samples()) {
    annotate_costs(program);
    const std::string text = print(program);
    const auto parsed = parse(text);
    ASSERT_TRUE(parsed) << parsed.error().message << "\n" << text;
    EXPECT_EQ(print(*parsed), text);
    EXPECT_EQ(first_complaint(*parsed), "");
  }
}

TEST(Text, keeps_facts_tables_and_steps) {
  const std::string text = R"(name="p \"quoted\""
params[0] {name="tau", dtype=f32, default=0.5}
params[1] {name="k", dtype=u32, default=0}
counts[0] {name="m", bound=min(n, 7)}
states[0] {name="velocity", type=[f32; n]}
wire {
  counts[0] {name="m", bound=min(n, 7)}
  fields[0] {name="index", type=[u32; m], sum=none, ascending, index_limit=n}
  fields[1] {name="value", type=[i5; r, c], sum=sum}
}
aggregation=gather
size_exprs[0]=int(f64(n) * tau)
size_exprs[1]=1.5d
messages[0]="out of range"
constant_bytes[0]=(0, 255, 16)
buffers[0] {name="table", dtype=u8, storage_bits=8, num_elems=3, role=constant, role_index=0, size_bytes=3}
buffers[1] {name="flag", dtype=bool, storage_bits=8, num_elems=1, role=workspace, role_index=0, size_bytes=1}
buffers[2] {name="i", dtype=i64, storage_bits=64, num_elems=1, role=workspace, role_index=0, size_bytes=8}
encode {
  present
  buffers=(0, 1)
  steps[0] {kind=zero, index=1}
  steps[1] {kind=copy, index=1, index2=1}
  steps[2] {kind=check, index=0, expr=lt(n, -5)}
  steps[3] {
    kind=if
    index=1
    body[0] {kind=zero, index=1}
  }
  steps[4] {
    kind=while
    index=1
    expr=20
    cond[0] {kind=zero, index=1}
    body[0] {kind=for, index=2, expr=0, expr2=n}
  }
}
)";
  const auto parsed = parse(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(print(*parsed), text);
  EXPECT_EQ(first_complaint(*parsed), "");
  EXPECT_EQ(parsed->info.name, "p \"quoted\"");
  EXPECT_EQ(parsed->constants[0], (std::vector<std::uint8_t>{0, 255, 16}));
  EXPECT_TRUE(parsed->info.wire.fields[0].ascending);
}

TEST(Text, attributes_of_instructions_survive) {
  const std::string text = R"(name="p"
aggregation=gather
size_exprs[0]=n
kernel {
  symbol="k"
  role=sweep
  num_groups=ceil_div(n, 1024)
  group_multiple=8
  is_ordered
  is_sequential
  fused[0]="map"
  group_kind=tile
  extent=n
  group_len=1024
  extent_value=%0
  locals[0] {type=f32}
  locals[1] {type=u64}
  combiner 0 = max
  combiner 1 = (%1: f32, %2: f32) {
    %3: f32 = scalar.pow %1, %2
  } yield %3
  kernel:
    %0.count: i64 = host_size  // n
    %4: f32 = constant {bits=0x3fc00000}  // 1.5
  group:
    %5: i64 = group
  elements:
    %6: f32 = load_linear _, %5 @3
    %7: u32 = random_bits %8, %0 {site=12, shared}
    %9: i32, %10: i32 = running_sum %11 {exclusive}
    argsort_row %0, %0 @0, @1, @2 {descending}
    %12: i32 = bitcast %13 {from=bf16, dtype=i16}
    %14: u64 = scalar.add %15, %15 {dtype=u40}
    fail_if %16 {index=3}
}
)";
  const auto parsed = parse(text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(print(*parsed), text);
  EXPECT_NE(first_complaint(*parsed), "");
}

TEST(Text, refusals_name_the_line) {
  const auto error = [](std::string_view text) {
    const auto parsed = parse(text);
    return parsed ? std::string("parsed") : parsed.error().message;
  };
  EXPECT_THAT(error("name=\"p\nbuffers"), HasSubstr("does not end"));
  EXPECT_THAT(error("name=p\nwhat"), StartsWith("line 2, column 1: expected a member or a kernel"));
  EXPECT_THAT(error("name=p\n\nsize_exprs[1]=n"), StartsWith("line 3, column 13: numbers of a"));
  EXPECT_THAT(error("size_exprs=frob(n)"), HasSubstr("unknown operation 'frob'"));
  EXPECT_THAT(error("size_exprs=clamp(n"), HasSubstr("expected ','"));
  EXPECT_THAT(error("name=p\nsize_exprs=99999999999999999999"), StartsWith("line 2"));
  EXPECT_NE(error("size_exprs=add(n, true)"), "parsed");
  EXPECT_THAT(error("kernel { symbol=k kernel: %0: f32 = frob }"),
              HasSubstr("unknown instruction 'frob'"));
  EXPECT_THAT(error("kernel { kernel: %9999999: f32 = group }"),
              HasSubstr("too large a number of a value"));
  EXPECT_THAT(error("encode { steps {kind=jump} }"), HasSubstr("unknown kind 'jump'"));
  EXPECT_THAT(error("buffers {size=3}"), HasSubstr("expected a member or '}'"));
  EXPECT_THAT(error("constant_bytes=(256)"), HasSubstr("too large"));
}

TEST(Text, deep_nesting_ends_in_an_error) {
  std::string deep = "size_exprs=";
  for (int i = 0; i < 100000; ++i) deep += "neg(";
  const auto parsed = parse(deep);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("nested too deeply"));
  std::string steps = "encode { steps ";
  for (int i = 0; i < 100000; ++i) steps += "{body ";
  EXPECT_FALSE(parse(steps));
}

TEST(Text, cut_anywhere_is_no_crash) {
  const std::string text = print(sample_compact());
  for (std::size_t i = 0; i < text.size(); i += 7) {
    const auto parsed = parse(std::string_view(text).substr(0, i));
    if (parsed) (void)first_complaint(*parsed);
  }
}

}  // namespace
}  // namespace cinch::kir
