// The kernel IR's text form: both ways for every instruction; what is no text is refused with its
// line.
#include "codegen/kir/text/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "codegen/kir/cost.h"
#include "codegen/kir/compute_type.h"
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
  const std::string text = R"(program "p \"quoted\""
param "tau" f32
param "k" u32
count "m" min(n, 7)
state "velocity" f32 [n]
wire_count "m" min(n, 7)
field "index" u32 [count(0, min(n, 7))] ascending limit=n
field "value" i5 [r, c] by=sum
size 0 = cast(mul(cast(n, f32), param(0, f32)), int)
size 1 = f64:3ff8000000000000
message 0 = "out of range"
constant 0 = "00ff10"
buffer @0 "table" u8 bits=8 role=constant index=0 elems=3 bytes=3
buffer @1 "flag" bool bits=8 role=workspace index=0 elems=1 bytes=1
buffer @2 "i" i64 bits=64 role=workspace index=0 elems=1 bytes=8
entry encode @0 @1 {
 zero @1
 copy @1 from @1
 check lt(n, -5) message 0
 if @1 {
  zero @1
 } else {
 }
 while @1 at_most 20 {
  zero @1
 } do {
  for @2 0 to n {
  }
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
  const std::string text = R"(program "p"
size 0 = n
kernel "k" sweep tile {
 extent n
 group_len 1024
 groups ceil_div(n, 1024)
 extent_value %0
 multiple 8
 ordered
 sequential
 fused "map"
 local f32
 local u64
 combiner 0 = max
 combiner 1 = (%1: f32, %2: f32) {
    %3: f32 = scalar.pow %1, %2
 } yield %3
 kernel:
    %0.count: i64 = host_size  // n
    %4: f32 = constant bits=0x3fc00000  // 1.5
 group:
    %5: i64 = group
 elements:
    %6: f32 = load_linear _, %5 @3
    %7: u32 = random_bits %8, %0 draw=shared.12
    %9: i32, %10: i32 = running_sum %11 exclusive
    argsort_row %0, %0 @0, @1, @2 descending
    %12: i32 = bitcast %13 from=bf16 dtype=i16
    %14: u64 = scalar.add %15, %15 dtype=u40
    fail_if %16 index=3
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
  EXPECT_THAT(error(""), StartsWith("line 1: expected program"));
  EXPECT_THAT(error("program \"p\nbuffer"), HasSubstr("without an end"));
  EXPECT_THAT(error("program \"p\"\nwhat"), StartsWith("line 2: unknown item 'what'"));
  EXPECT_THAT(error("program \"p\"\n\nsize 1 = n"), StartsWith("line 3: numbers of a table"));
  EXPECT_THAT(error("program \"p\"\nsize 0 = frob(n)"), HasSubstr("unknown expression 'frob'"));
  EXPECT_THAT(error("program \"p\"\nsize 0 = add(n"), HasSubstr("expected ','"));
  EXPECT_THAT(error("program \"p\"\nsize 0 = 99999999999999999999"), StartsWith("line 2"));
  EXPECT_NE(error("program \"p\"\nsize 0 = add(n, true)"), "parsed");
  EXPECT_THAT(error("program \"p\"\nkernel \"k\" sweep tile { kernel: %0: f32 = frob }"),
              HasSubstr("unknown instruction 'frob'"));
  EXPECT_THAT(error("program \"p\"\nkernel \"k\" sweep tile { kernel: %9999999: f32 = group }"),
              HasSubstr("not a value's number"));
  EXPECT_THAT(error("program \"p\"\nentry encode { jump 3 }"), HasSubstr("unknown step 'jump'"));
  EXPECT_THAT(error("program \"p\"\nconstant 0 = \"0\""), HasSubstr("two digits per byte"));
}

TEST(Text, deep_nesting_ends_in_an_error) {
  std::string deep = "program \"p\"\nsize 0 = ";
  for (int i = 0; i < 100000; ++i) deep += "neg(";
  const auto parsed = parse(deep);
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error().message, HasSubstr("nested too deeply"));
  std::string steps = "program \"p\"\nentry encode {";
  for (int i = 0; i < 100000; ++i) steps += " if @0 {";
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
