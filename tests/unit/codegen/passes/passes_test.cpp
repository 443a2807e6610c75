// Passes over kernels: a text before, a text after.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "codegen/kir/text/text.h"
#include "codegen/kir/verifier.h"
#include "codegen/passes/passes.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

kir::KernelProgram parsed(const std::string& text) {
  auto program = kir::parse(text);
  EXPECT_TRUE(program) << program.error().message;
  return program ? std::move(*program) : kir::KernelProgram();
}

const std::string kGradient =
    "buffers[0] {name=gradient, dtype=f32, storage_bits=32, role=gradient, num_elems=n, "
    "size_bytes=mul(4, n)}\n";
const std::string kTiles =
    " role=sweep group_kind=tile\n extent=n group_len=1024 num_groups=ceil_div(n, 1024)\n";

// Steps, or those of a loop's body, that launch kernels.
std::string launches(const std::string& list, std::initializer_list<int> kernels) {
  std::string all;
  for (const int kernel : kernels) {
    all += " " + list + " {kind=launch, index=" + std::to_string(kernel) + "}\n";
  }
  return all;
}

// A kernel that copies; `reads` and `writes` name its versions.
std::string copies(int from, int from_version, int to, int to_version) {
  const std::string f = std::to_string(from), t = std::to_string(to);
  return "kernel {\n symbol=copy_" + t + " role=sweep group_kind=tile extent=n group_len=1024\n" +
         " num_groups=ceil_div(n, 1024)\n reads {buffer=" + f +
         ", version=" + std::to_string(from_version) + "}\n writes {buffer=" + t +
         ", version=" + std::to_string(to_version) +
         "}\n kernel:\n elements:\n    %0: f32 = load_linear _ @" + f + "\n    store_linear %0 @" +
         t + "\n}\n";
}

std::string room(int index, const char* elems = "n") {
  return "buffers[" + std::to_string(index) +
         "] {name=room, dtype=f32, storage_bits=32, role=workspace, num_elems=" + elems +
         ", size_bytes=mul(4, n)}\n";
}

// Rooms that are copied behind one another: @1 to @2, @2 to @3, @3 to @4.
std::string chain(const std::string& steps) {
  return "name=chain\n" + kGradient + room(1) + room(2) + room(3) + room(4, "mul(2, n)") +
         copies(1, 5, 2, 6) + copies(2, 6, 3, 7) + copies(3, 7, 4, 8) + copies(4, 8, 1, 5) +
         "encode {present buffers=(1, 2, 3, 4)\n" + steps + "}\n";
}

TEST(ShareWorkspace, GivesARoomToTheNextWhenNobodyNeedsIt) {
  kir::KernelProgram program = parsed(chain(launches("steps", {0, 1, 2})));
  rt::StepLimit steps;
  share_workspace(program, steps);
  // @1 is done with when @3 is written; @4 is larger.
  EXPECT_EQ(program.buffers.size(), 4u);
  EXPECT_EQ(program.kernels[1].sections.back().instrs.back().buffers[0], 1u);
  EXPECT_EQ(steps.taken(), 1);
}

TEST(ShareWorkspace, KeepsWhatIsReadLater) {
  kir::KernelProgram program = parsed(chain(launches("steps", {0, 1, 2, 0})));
  rt::StepLimit steps;
  share_workspace(program, steps);
  EXPECT_EQ(program.buffers.size(), 5u);
}

TEST(ShareWorkspace, TakesALoopForOneStep) {
  kir::KernelProgram program = parsed(
      "name=loop\n"
      "buffers[0] {name=i, dtype=i64, storage_bits=64, role=workspace, num_elems=1, "
      "size_bytes=8}\n" +
      room(1) + room(2) + room(3) + copies(1, 5, 2, 6) + copies(2, 6, 3, 7) +
      "encode {present buffers=(0, 1, 2, 3)\n steps {kind=for, index=0, expr=0, expr2=3\n" +
      launches("body", {0, 1}) + " }\n}\n");
  rt::StepLimit steps;
  share_workspace(program, steps);
  EXPECT_EQ(program.buffers.size(), 4u);
}

TEST(ShareWorkspace, StopsAtTheLimit) {
  kir::KernelProgram program = parsed(chain(launches("steps", {0, 1, 2})));
  rt::StepLimit steps(0);
  share_workspace(program, steps);
  EXPECT_EQ(program.buffers.size(), 5u);
}

std::string counting(const std::string& made) {
  return "name=count\n" + kGradient +
         "buffers[1] {name=places, dtype=u32, storage_bits=32, role=workspace, num_elems=n, "
         "size_bytes=mul(4, n)}\n"
         "kernel {\n symbol=sweep" +
         kTiles +
         " kernel:\n    %0: u32 = constant {bits=1}\n    %1: u32 = constant\n    %2: f32 = "
         "constant\n"
         " elements:\n    %3: f32 = load_linear _ @0\n    %4: bool = scalar.lt %2, %3\n" +
         made +
         "    %6: u32, %7: u32 = running_sum %5 {exclusive}\n    store_linear %6 @1\n}\n"
         "encode {present buffers=(0, 1)\n" +
         launches("steps", {0}) + "}\n";
}

TEST(CountTruths, OfOnesAndZeros) {
  for (const char* made : {"    %5: u32 = scalar.select %4, %0, %1\n",
                           "    %5: u32 = convert %4 {from=bool, dtype=u32}\n"}) {
    kir::KernelProgram program = parsed(counting(made));
    rt::StepLimit steps;
    count_truths(program, steps);
    const std::string text = kir::print(program);
    EXPECT_THAT(text, ::testing::ContainsRegex("(%[0-9]): bool = scalar.lt"));
    EXPECT_THAT(text, ::testing::ContainsRegex("running_sum %[0-9] .exclusive."));
    EXPECT_THAT(text, Not(HasSubstr("select")));  // nobody uses what was summed up
    EXPECT_THAT(text, Not(HasSubstr("convert")));
    EXPECT_EQ(kir::print(parsed(text)), text);
    EXPECT_EQ(steps.taken(), 1);
  }
}

TEST(CountTruths, NotOfOtherNumbers) {
  for (const char* made :
       {"    %5: u32 = scalar.select %4, %1, %0\n", "    %5: u32 = scalar.add %0, %1\n"}) {
    kir::KernelProgram program = parsed(counting(made));
    rt::StepLimit steps;
    count_truths(program, steps);
    EXPECT_THAT(kir::print(program), HasSubstr("running_sum %5 {exclusive}"));
  }
}

std::string rounding(const std::string& made) {
  return "name=round\nsize_exprs=n\nsize_exprs=ceil_div(n, 1024)\n" + kGradient +
         "buffers[1] {name=codes, dtype=i8, storage_bits=8, role=workspace, num_elems=n, "
         "size_bytes=n}\n"
         "kernel {\n symbol=sweep" +
         kTiles +
         " kernel:\n elements:\n    %0: f32 = load_linear _ @0\n    %1: u32 = element\n"
         "    %2: f32 = stochastic_round %0, %1 {site=3}\n" +
         made + "}\nencode {present buffers=(0, 1)\n" + launches("steps", {0}) + "}\n";
}

TEST(RoundToIntegers, MakesOneInstructionOfTwo) {
  kir::KernelProgram program =
      parsed(rounding("    %3: i32 = convert %2 {dtype=i8}\n    store_linear %3 @1\n"));
  rt::StepLimit steps;
  round_to_integers(program, steps);
  const std::string text = kir::print(program);
  EXPECT_THAT(text, HasSubstr("%2: i32 = stochastic_round %0, %1 {dtype=i8, site=3}"));
  EXPECT_THAT(text, HasSubstr("store_linear %2 @1"));
  EXPECT_THAT(text, Not(HasSubstr("convert")));
  EXPECT_EQ(kir::first_complaint(program), "");
  EXPECT_EQ(kir::print(parsed(text)), text);
}

// The number itself is drawn separately, from the same words.
TEST(RoundToIntegers, KeepsANumberThatIsUsedElsewhere) {
  kir::KernelProgram program =
      parsed(rounding("    %3: i32 = convert %2 {dtype=i8}\n    store_linear %3 @1\n"
                      "    flag_nonfinite %2\n"));
  rt::StepLimit steps;
  round_to_integers(program, steps);
  const std::string text = kir::print(program);
  EXPECT_THAT(text, HasSubstr("%2: f32 = stochastic_round %0, %1 {site=3}"));
  EXPECT_THAT(text, HasSubstr("%3: i32 = stochastic_round %0, %1 {dtype=i8, site=3}"));
}

TEST(RoundToIntegers, NotToSingleBitsOrLongIntegers) {
  for (const char* made :
       {"    %3: u32 = convert %2 {dtype=u1}\n", "    %3: i64 = convert %2 {dtype=i40}\n"}) {
    kir::KernelProgram program = parsed(rounding(made));
    rt::StepLimit steps;
    round_to_integers(program, steps);
    EXPECT_THAT(kir::print(program), HasSubstr("convert"));
    EXPECT_EQ(steps.taken(), 0);
  }
}

std::string by_rows(const std::string& divisor) {
  return "name=rows\n"
         "buffers[0] {name=norms, dtype=f32, storage_bits=32, role=workspace, num_elems=n, "
         "size_bytes=mul(4, n)}\n"
         "buffers[1] {name=out, dtype=f32, storage_bits=32, role=output, num_elems=n, "
         "size_bytes=mul(4, n)}\n"
         "kernel {\n symbol=sweep" +
         kTiles + " kernel:\n    %0: u32 = constant {bits=" + divisor +
         "}\n elements:\n    %1: u32 = element\n    %2: u32 = scalar.div %1, %0\n"
         "    %3: f32 = load_at %2 @0\n    %4: f32 = scalar.sqrt %3\n"
         "    %5: f32 = scalar.add %4, %4\n    store_linear %5 @1\n}\n"
         "encode {present buffers=(0, 1)\n" +
         launches("steps", {0}) + "}\n";
}

TEST(MarkAlike, WhatFollowsTheNumberOfARow) {
  kir::KernelProgram program = parsed(by_rows("0x200"));
  mark_alike(program);
  const std::string text = kir::print(program);
  for (const char* line :
       {"scalar.div %1, %0 {alike}", "load_at %2 @0 {alike}", "scalar.sqrt %3 {alike}"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("element {alike}")));
  EXPECT_EQ(kir::print(parsed(text)), text);
}

TEST(MarkAlike, NotWhereRowsAreShorter) {
  kir::KernelProgram program = parsed(by_rows("0xc0"));
  mark_alike(program);
  EXPECT_THAT(kir::print(program), Not(HasSubstr("alike")));
}

// Elements above zero, each to the place that `place` says, where `pred` holds.
std::string selects(const std::string& place, const std::string& pred) {
  return "name=selects\n" + kGradient + room(1) + "kernel {\n symbol=select" + kTiles +
         " reads {buffer=0, version=1}\n writes {buffer=1, version=5}\n kernel:\n"
         "    %0: f32 = constant {bits=0x0}\n    %1: u32 = constant {bits=0x5}\n elements:\n"
         "    %2: f32 = load_linear _ @0\n    %3: bool = scalar.gt %2, %0 {dtype=f32}\n"
         "    %4: u32, %5: u32 = running_sum %3 {exclusive}\n"
         "    %6: u32 = scalar.add %1, %4 {dtype=u32}\n"
         "    %7: bool = scalar.lt %6, %1 {dtype=u32}\n"
         "    %8: bool = scalar.bit_and %3, %7 {dtype=bool}\n"
         "    store_at " +
         place + ", %2, " + pred + " @1\n}\n";
}

std::string marked_compact(const std::string& place, const std::string& pred) {
  kir::KernelProgram program = parsed(selects(place, pred));
  mark_compact(program);
  check_facts(program, "mark_compact");
  return kir::print(program);
}

TEST(MarkCompact, WhatGoesToARunningPlace) {
  for (const char* pred : {"%3", "%8"})
    EXPECT_THAT(marked_compact("%6", pred), HasSubstr("@1 {compact}"));
  const std::string text = marked_compact("%6", "%3");
  EXPECT_EQ(kir::print(parsed(text)), text);
}

TEST(MarkCompact, NotWhatGoesElsewhereOrWhereOthersHold) {
  EXPECT_THAT(marked_compact("%4", "%3"), Not(HasSubstr("compact")));
  EXPECT_THAT(marked_compact("%6", "%7"), Not(HasSubstr("compact")));
}

// A kernel of one task that adds the gradient's elements up in the buffer's first cell.
std::string adds_up(int to) {
  const std::string t = std::to_string(to);
  return "kernel {\n symbol=add_" + t + " role=sweep group_kind=tile extent=n group_len=1024\n" +
         " num_groups=ceil_div(n, 1024)\n is_sequential\n reads {buffer=0, version=5}\n"
         " reads {buffer=" +
         t + ", version=1}\n writes {buffer=" + t + ", version=" + std::to_string(5 + to) +
         "}\n kernel:\n    %0: u32 = constant  // 0\n elements:\n" +
         "    %1: f32 = load_linear _ @0\n    add_at %0, %1, _ @" + t + "\n}\n";
}

std::string marked_beside(const std::string& steps) {
  kir::KernelProgram program =
      parsed("name=adds\n" + kGradient + room(1) + room(2) + adds_up(1) + adds_up(2) +
             copies(1, 6, 2, 7) + "encode {present buffers=(0, 1, 2)\n" + steps + "}\n");
  mark_beside(program);
  check_facts(program, "mark_beside");
  const std::string text = kir::print(program);
  EXPECT_EQ(kir::print(parsed(text)), text);
  return text.substr(text.find("encode {"));
}

TEST(MarkBeside, LaunchesOfOneTaskThatShareNothing) {
  EXPECT_THAT(marked_beside(" steps {kind=zero, index=1}\n" + launches("steps", {0}) +
                            " steps {kind=zero, index=2}\n" + launches("steps", {1, 2})),
              HasSubstr("  steps[0] {kind=zero, index=1}\n  steps[1] {kind=zero, index=2}\n"
                        "  steps[2] {kind=launch, index=0, index2=2}\n"
                        "  steps[3] {kind=launch, index=1}\n  steps[4] {kind=launch, index=2}\n"));
}

TEST(MarkBeside, NotThoseThatTouchTheSameOrAreManyTasks) {
  for (const std::string& steps :
       {launches("steps", {0, 0}),
        launches("steps", {0}) + " steps {kind=zero, index=1}\n" + launches("steps", {1}),
        launches("steps", {0, 2}), launches("steps", {2, 1})}) {
    EXPECT_THAT(marked_beside(steps), Not(HasSubstr("index2"))) << steps;
  }
}

// A loop that carries two scalars, @1 and @2, through @3 and @4; `round` holds a round's launches.
std::string carrying(const std::string& round) {
  const auto scalar = [](int index) {
    return "buffers[" + std::to_string(index) +
           "] {name=x, dtype=f32, storage_bits=32, role=workspace, num_elems=1, size_bytes=4}\n";
  };
  const auto kernel = [](const std::string& touches, const std::string& body) {
    return "kernel {\n symbol=k role=finish group_kind=single\n extent=1 group_len=1 "
           "num_groups=1\n" +
           touches + " kernel:\n    %0: i64 = constant\n" + body + "}\n";
  };
  return "name=carry\n"
         "buffers[0] {name=i, dtype=i64, storage_bits=64, role=workspace, num_elems=1, "
         "size_bytes=8}\n" +
         scalar(1) + scalar(2) + scalar(3) + scalar(4) + scalar(5) +
         kernel(
             " reads {buffer=1, version=5}\n reads {buffer=2, version=6}\n writes {buffer=3, "
             "version=6}\n writes {buffer=4, version=5}\n",
             "    %1: f32 = load_at %0 @2\n    store_at %0, %1 @3\n"
             "    %2: f32 = load_at %0 @1\n    store_at %0, %2 @4\n") +
         kernel(" reads {buffer=1, version=5}\n writes {buffer=5, version=9}\n",
                "    %1: f32 = load_at %0 @1\n    store_at %0, %1 @5\n") +
         "encode {present buffers=(0, 1, 2, 3, 4, 5)\n steps {kind=for, index=0, expr=0, "
         "expr2=3\n" +
         round +
         "  body {kind=copy, index=1, index2=3}\n  body {kind=copy, index=2, index2=4}\n }\n}\n";
}

TEST(CarryInPlace, StoresBehindAllLoads) {
  kir::KernelProgram program = parsed(carrying(launches("body", {1, 0})));
  rt::StepLimit steps;
  carry_in_place(program, steps);
  EXPECT_EQ(steps.taken(), 2);
  EXPECT_EQ(program.buffers.size(), 4u);
  const auto& instrs = program.kernels[0].sections[0].instrs;
  ASSERT_EQ(instrs.size(), 5u);
  EXPECT_EQ(instrs[2].kind, kir::InstrKind::load_at);
  EXPECT_EQ(instrs[3].kind, kir::InstrKind::store_at);
  EXPECT_EQ(instrs[3].buffers[0], 1u);
  EXPECT_EQ(instrs[4].buffers[0], 2u);
  EXPECT_EQ(program.entries[static_cast<std::size_t>(rt::EntryKind::Encode)].steps[0].body.size(),
            2u);
}

// The host reads a collective's scalars when its turn comes.
TEST(CarryInPlace, NotAReceiverThatACollectiveReadsAfterwards) {
  const std::string collective =
      "  body {kind=collective, index=5, index2=4, scalars=(1), message=0,\n"
      "   collective {kind=send_receive, reduction=none, root=0}}\n";
  std::string text = carrying(launches("body", {0}) + collective);
  text.insert(text.find("kernel"), "messages=receivers\n");
  kir::KernelProgram program = parsed(text);
  rt::StepLimit steps;
  carry_in_place(program, steps);
  // @1 is a scalar of the collective, @4 is sent by it.
  EXPECT_EQ(steps.taken(), 0);
}

TEST(CarryInPlace, NotWhatIsReadAfterwardsOrAtTheLimit) {
  kir::KernelProgram program = parsed(carrying(launches("body", {0, 1})));
  rt::StepLimit steps;
  carry_in_place(program, steps);
  EXPECT_EQ(steps.taken(), 1);  // @2 alone: @1 is read behind
  kir::KernelProgram other = parsed(carrying(launches("body", {1, 0})));
  rt::StepLimit none(0);
  carry_in_place(other, none);
  EXPECT_EQ(other.buffers.size(), 6u);
}

// A mark that the kernel does not justify is rejected, whoever set it.
TEST(CheckFacts, BelievesNoMark) {
  kir::KernelProgram places = parsed(selects("%6", "%7"));
  places.kernels[0].sections.back().instrs.back().is_compact = true;
  EXPECT_THROW(check_facts(places, "test"), InternalError);
  kir::KernelProgram rows = parsed(by_rows("0xc0"));
  rows.kernels[0].sections.back().instrs[1].is_alike = true;
  EXPECT_THROW(check_facts(rows, "test"), InternalError);
  kir::KernelProgram beside =
      parsed(chain(" steps {kind=launch, index=0, index2=2}\n" + launches("steps", {1})));
  EXPECT_THROW(check_facts(beside, "test"), InternalError);
}

// Versions of buffer contents are part of the text.
TEST(Versions, AreInTheText) {
  const std::string text =
      kir::print(parsed(chain(launches("steps", {0})) +
                        "step_touches {step=1, buffer=2, first=3, second=4, made=5}\n" +
                        "encode_leaves {buffer=2, version=6}\n"));
  EXPECT_THAT(text,
              HasSubstr("  reads[0] {buffer=1, version=5}\n  writes[0] {buffer=2, version=6}\n"));
  EXPECT_THAT(text, HasSubstr("step_touches[0] {step=1, buffer=2, first=3, second=4, made=5}\n"
                              "encode_leaves[0] {buffer=2, version=6}\n"));
  EXPECT_EQ(kir::print(parsed(text)), text);
}

}  // namespace
}  // namespace cinch::codegen
