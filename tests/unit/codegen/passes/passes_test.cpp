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

// A kernel that copies; `reads` and `writes` name its versions.
std::string copies(int from, int from_version, int to, int to_version) {
  const std::string f = std::to_string(from), t = std::to_string(to);
  return "kernel \"copy_" + t + "\" sweep tile {\n extent n\n group_len 1024\n" +
         " groups ceil_div(n, 1024)\n reads @" + f + " " + std::to_string(from_version) +
         "\n writes @" + t + " " + std::to_string(to_version) +
         "\n kernel:\n elements:\n    %0: f32 = load_linear _ @" + f + "\n    store_linear %0 @" +
         t + "\n}\n";
}

std::string room(int index, const char* elems = "n") {
  return "buffer @" + std::to_string(index) +
         " \"room\" f32 bits=32 role=workspace index=0 elems=" + elems + " bytes=mul(4, n)\n";
}

// Rooms that are copied behind one another: @1 to @2, @2 to @3, @3 to @4.
std::string chain(const std::string& steps) {
  const std::string gradient =
      "buffer @0 \"gradient\" f32 bits=32 role=gradient index=0 elems=n bytes=mul(4, n)\n";
  return "program \"chain\"\n" + gradient + room(1) + room(2) + room(3) + room(4, "mul(2, n)") +
         copies(1, 5, 2, 6) + copies(2, 6, 3, 7) + copies(3, 7, 4, 8) + copies(4, 8, 1, 5) +
         "entry encode @1 @2 @3 @4 {\n" + steps + "}\n";
}

TEST(ShareWorkspace, GivesARoomToTheNextWhenNobodyNeedsIt) {
  kir::KernelProgram program = parsed(chain(" launch 0\n launch 1\n launch 2\n"));
  rt::StepLimit steps;
  share_workspace(program, steps);
  // @1 is done with when @3 is written; @4 is larger.
  EXPECT_EQ(program.buffers.size(), 4u);
  EXPECT_EQ(program.kernels[1].sections.back().instrs.back().buffers[0], 1u);
  EXPECT_EQ(steps.taken(), 1);
}

TEST(ShareWorkspace, KeepsWhatIsReadLater) {
  kir::KernelProgram program = parsed(chain(" launch 0\n launch 1\n launch 2\n launch 0\n"));
  rt::StepLimit steps;
  share_workspace(program, steps);
  EXPECT_EQ(program.buffers.size(), 5u);
}

TEST(ShareWorkspace, TakesALoopForOneStep) {
  kir::KernelProgram program = parsed(
      "program \"loop\"\n"
      "buffer @0 \"i\" i64 bits=64 role=workspace index=0 elems=1 bytes=8\n" +
      room(1) + room(2) + room(3) + copies(1, 5, 2, 6) + copies(2, 6, 3, 7) +
      "entry encode @0 @1 @2 @3 {\n for @0 0 to 3 {\n  launch 0\n  launch 1\n }\n}\n");
  rt::StepLimit steps;
  share_workspace(program, steps);
  EXPECT_EQ(program.buffers.size(), 4u);
}

TEST(ShareWorkspace, StopsAtTheLimit) {
  kir::KernelProgram program = parsed(chain(" launch 0\n launch 1\n launch 2\n"));
  rt::StepLimit steps(0);
  share_workspace(program, steps);
  EXPECT_EQ(program.buffers.size(), 5u);
}

std::string counting(const std::string& made) {
  return "program \"count\"\n"
         "buffer @0 \"gradient\" f32 bits=32 role=gradient index=0 elems=n bytes=mul(4, n)\n"
         "buffer @1 \"places\" u32 bits=32 role=workspace index=0 elems=n bytes=mul(4, n)\n"
         "kernel \"sweep\" sweep tile {\n extent n\n group_len 1024\n groups ceil_div(n, 1024)\n"
         " kernel:\n    %0: u32 = constant bits=1\n    %1: u32 = constant\n    %2: f32 = constant\n"
         " elements:\n    %3: f32 = load_linear _ @0\n    %4: bool = scalar.lt %2, %3\n" +
         made +
         "    %6: u32, %7: u32 = running_sum %5 exclusive\n    store_linear %6 @1\n}\n"
         "entry encode @0 @1 {\n launch 0\n}\n";
}

TEST(CountTruths, OfOnesAndZeros) {
  for (const char* made : {"    %5: u32 = scalar.select %4, %0, %1\n",
                           "    %5: u32 = convert %4 from=bool dtype=u32\n"}) {
    kir::KernelProgram program = parsed(counting(made));
    rt::StepLimit steps;
    count_truths(program, steps);
    const std::string text = kir::print(program);
    EXPECT_THAT(text, ::testing::ContainsRegex("(%[0-9]): bool = scalar.lt"));
    EXPECT_THAT(text, ::testing::ContainsRegex("running_sum %[0-9] exclusive"));
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
    EXPECT_THAT(kir::print(program), HasSubstr("running_sum %5 exclusive"));
  }
}

std::string rounding(const std::string& made) {
  return "program \"round\"\nsize 0 = n\nsize 1 = ceil_div(n, 1024)\n"
         "buffer @0 \"gradient\" f32 bits=32 role=gradient index=0 elems=n bytes=mul(4, n)\n"
         "buffer @1 \"codes\" i8 bits=8 role=workspace index=0 elems=n bytes=n\n"
         "kernel \"sweep\" sweep tile {\n extent n\n group_len 1024\n groups ceil_div(n, 1024)\n"
         " kernel:\n elements:\n    %0: f32 = load_linear _ @0\n    %1: u32 = element\n"
         "    %2: f32 = stochastic_round %0, %1 draw=3\n" +
         made + "}\nentry encode @0 @1 {\n launch 0\n}\n";
}

TEST(RoundToIntegers, MakesOneInstructionOfTwo) {
  kir::KernelProgram program =
      parsed(rounding("    %3: i32 = convert %2 dtype=i8\n    store_linear %3 @1\n"));
  rt::StepLimit steps;
  round_to_integers(program, steps);
  const std::string text = kir::print(program);
  EXPECT_THAT(text, HasSubstr("%2: i32 = stochastic_round %0, %1 dtype=i8 draw=3"));
  EXPECT_THAT(text, HasSubstr("store_linear %2 @1"));
  EXPECT_THAT(text, Not(HasSubstr("convert")));
  EXPECT_EQ(kir::first_complaint(program), "");
  EXPECT_EQ(kir::print(parsed(text)), text);
}

// The number itself is drawn separately, from the same words.
TEST(RoundToIntegers, KeepsANumberThatIsUsedElsewhere) {
  kir::KernelProgram program =
      parsed(rounding("    %3: i32 = convert %2 dtype=i8\n    store_linear %3 @1\n"
                      "    flag_nonfinite %2\n"));
  rt::StepLimit steps;
  round_to_integers(program, steps);
  const std::string text = kir::print(program);
  EXPECT_THAT(text, HasSubstr("%2: f32 = stochastic_round %0, %1 draw=3"));
  EXPECT_THAT(text, HasSubstr("%3: i32 = stochastic_round %0, %1 dtype=i8 draw=3"));
}

TEST(RoundToIntegers, NotToSingleBitsOrLongIntegers) {
  for (const char* made :
       {"    %3: u32 = convert %2 dtype=u1\n", "    %3: i64 = convert %2 dtype=i40\n"}) {
    kir::KernelProgram program = parsed(rounding(made));
    rt::StepLimit steps;
    round_to_integers(program, steps);
    EXPECT_THAT(kir::print(program), HasSubstr("convert"));
    EXPECT_EQ(steps.taken(), 0);
  }
}

std::string by_rows(const std::string& divisor) {
  return "program \"rows\"\n"
         "buffer @0 \"norms\" f32 bits=32 role=workspace index=0 elems=n bytes=mul(4, n)\n"
         "buffer @1 \"out\" f32 bits=32 role=output index=0 elems=n bytes=mul(4, n)\n"
         "kernel \"sweep\" sweep tile {\n extent n\n group_len 1024\n groups ceil_div(n, 1024)\n"
         " kernel:\n    %0: u32 = constant bits=" +
         divisor +
         "\n elements:\n    %1: u32 = element\n    %2: u32 = scalar.div %1, %0\n"
         "    %3: f32 = load_at %2 @0\n    %4: f32 = scalar.sqrt %3\n"
         "    %5: f32 = scalar.add %4, %4\n    store_linear %5 @1\n}\n"
         "entry encode @0 @1 {\n launch 0\n}\n";
}

TEST(MarkAlike, WhatFollowsTheNumberOfARow) {
  kir::KernelProgram program = parsed(by_rows("0x200"));
  mark_alike(program);
  const std::string text = kir::print(program);
  for (const char* line :
       {"scalar.div %1, %0 alike", "load_at %2 @0 alike", "scalar.sqrt %3 alike"})
    EXPECT_THAT(text, HasSubstr(line));
  EXPECT_THAT(text, Not(HasSubstr("element alike")));
  EXPECT_EQ(kir::print(parsed(text)), text);
}

TEST(MarkAlike, NotWhereRowsAreShorter) {
  kir::KernelProgram program = parsed(by_rows("0xc0"));
  mark_alike(program);
  EXPECT_THAT(kir::print(program), Not(HasSubstr("alike")));
}

// Elements above zero, each to the place that `place` says, where `pred` holds.
std::string selects(const std::string& place, const std::string& pred) {
  return "program \"selects\"\n"
         "buffer @0 \"gradient\" f32 bits=32 role=gradient index=0 elems=n bytes=mul(4, n)\n" +
         room(1) +
         "kernel \"select\" sweep tile {\n extent n\n group_len 1024\n groups ceil_div(n, 1024)\n"
         " reads @0 1\n writes @1 5\n kernel:\n"
         "    %0: f32 = constant bits=0x0\n    %1: u32 = constant bits=0x5\n elements:\n"
         "    %2: f32 = load_linear _ @0\n    %3: bool = scalar.gt %2, %0 dtype=f32\n"
         "    %4: u32, %5: u32 = running_sum %3 exclusive\n"
         "    %6: u32 = scalar.add %1, %4 dtype=u32\n"
         "    %7: bool = scalar.lt %6, %1 dtype=u32\n"
         "    %8: bool = scalar.bit_and %3, %7 dtype=bool\n"
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
    EXPECT_THAT(marked_compact("%6", pred), HasSubstr("@1 compact"));
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
  return "kernel \"add_" + t + "\" sweep tile {\n extent n\n group_len 1024\n" +
         " groups ceil_div(n, 1024)\n sequential\n reads @0 5\n reads @" + t + " 1\n writes @" + t +
         " " + std::to_string(5 + to) + "\n kernel:\n    %0: u32 = constant  // 0\n elements:\n" +
         "    %1: f32 = load_linear _ @0\n    add_at %0, %1, _ @" + t + "\n}\n";
}

std::string marked_beside(const std::string& steps) {
  kir::KernelProgram program = parsed(
      "program \"adds\"\n"
      "buffer @0 \"gradient\" f32 bits=32 role=gradient index=0 elems=n bytes=mul(4, n)\n" +
      room(1) + room(2) + adds_up(1) + adds_up(2) + copies(1, 6, 2, 7) +
      "entry encode @0 @1 @2 {\n" + steps + "}\n");
  mark_beside(program);
  check_facts(program, "mark_beside");
  const std::string text = kir::print(program);
  EXPECT_EQ(kir::print(parsed(text)), text);
  return text.substr(text.find("entry"));
}

TEST(MarkBeside, LaunchesOfOneTaskThatShareNothing) {
  EXPECT_THAT(marked_beside(" zero @1\n launch 0\n zero @2\n launch 1\n launch 2\n"),
              HasSubstr(" zero @1\n zero @2\n launch 0 beside 1  // add_1\n"
                        " launch 1  // add_2\n launch 2  // copy_2\n"));
}

TEST(MarkBeside, NotThoseThatTouchTheSameOrAreManyTasks) {
  for (const char* steps : {" launch 0\n launch 0\n", " launch 0\n zero @1\n launch 1\n",
                            " launch 0\n launch 2\n", " launch 2\n launch 1\n"}) {
    EXPECT_THAT(marked_beside(steps), Not(HasSubstr("beside"))) << steps;
  }
}

// A loop that carries two scalars, @1 and @2, through @3 and @4; `round` holds a round's launches.
std::string carrying(const std::string& round) {
  const auto scalar = [](int index) {
    return "buffer @" + std::to_string(index) +
           " \"x\" f32 bits=32 role=workspace index=0 elems=1 bytes=4\n";
  };
  const auto kernel = [](const std::string& touches, const std::string& body) {
    return "kernel \"k\" finish single {\n extent 1\n group_len 1\n groups 1\n" + touches +
           " kernel:\n    %0: i64 = constant\n" + body + "}\n";
  };
  return "program \"carry\"\n"
         "buffer @0 \"i\" i64 bits=64 role=workspace index=0 elems=1 bytes=8\n" +
         scalar(1) + scalar(2) + scalar(3) + scalar(4) + scalar(5) +
         kernel(" reads @1 5\n reads @2 6\n writes @3 6\n writes @4 5\n",
                "    %1: f32 = load_at %0 @2\n    store_at %0, %1 @3\n"
                "    %2: f32 = load_at %0 @1\n    store_at %0, %2 @4\n") +
         kernel(" reads @1 5\n writes @5 9\n",
                "    %1: f32 = load_at %0 @1\n    store_at %0, %1 @5\n") +
         "entry encode @0 @1 @2 @3 @4 @5 {\n for @0 0 to 3 {\n" + round +
         "  copy @1 from @3\n  copy @2 from @4\n }\n}\n";
}

TEST(CarryInPlace, StoresBehindAllLoads) {
  kir::KernelProgram program = parsed(carrying("  launch 1\n  launch 0\n"));
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
  const std::string collective = "  send_receive @5 from @4 by none root 0 scalar @1 message 0\n";
  std::string text = carrying("  launch 0\n" + collective);
  text.insert(text.find("kernel"), "message 0 = \"receivers\"\n");
  kir::KernelProgram program = parsed(text);
  rt::StepLimit steps;
  carry_in_place(program, steps);
  // @1 is a scalar of the collective, @4 is sent by it.
  EXPECT_EQ(steps.taken(), 0);
}

TEST(CarryInPlace, NotWhatIsReadAfterwardsOrAtTheLimit) {
  kir::KernelProgram program = parsed(carrying("  launch 0\n  launch 1\n"));
  rt::StepLimit steps;
  carry_in_place(program, steps);
  EXPECT_EQ(steps.taken(), 1);  // @2 alone: @1 is read behind
  kir::KernelProgram other = parsed(carrying("  launch 1\n  launch 0\n"));
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
  kir::KernelProgram beside = parsed(chain(" launch 0 beside 1\n launch 1\n"));
  EXPECT_THROW(check_facts(beside, "test"), InternalError);
}

// Versions of buffer contents are part of the text.
TEST(Versions, AreInTheText) {
  const std::string text =
      kir::print(parsed(chain(" launch 0\n") + "step @1 @2 3 4 5\n" + "result encode @2 6\n"));
  EXPECT_THAT(text, HasSubstr(" reads @1 5\n writes @2 6\n"));
  EXPECT_THAT(text, HasSubstr("step @1 @2 3 4 5\nresult encode @2 6\n"));
  EXPECT_EQ(kir::print(parsed(text)), text);
}

}  // namespace
}  // namespace cinch::codegen
