// The executor on hand-made images whose kernels are functions of this file: control flow, checks,
// task splits, ordered tasks, cancellation, floating-point modes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <immintrin.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "runtime/core/numbers/floats.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/program_buffers.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
namespace {

// An image under construction with its functions; buffers are u64 workspaces unless stated
// otherwise.
struct HandProgram {
  ProgramImage image;
  std::vector<KernelFunction> functions;

  HostExprPool& pool() { return *image.info.exprs; }
  HostExprId number(std::int64_t value) { return pool().const_int(value); }

  BufferIndex buffer(DType dtype, std::int64_t elems) {
    const int bytes = element_bytes(dtype);
    image.buffers.push_back({"b", dtype, static_cast<std::uint8_t>(8 * bytes), number(elems),
                             BufferRole::Workspace, 0, number(elems * bytes)});
    entry().buffers.push_back(static_cast<BufferIndex>(image.buffers.size() - 1));
    return entry().buffers.back();
  }
  std::uint32_t kernel(KernelFunction function, std::int64_t groups) {
    KernelInfo info;
    info.symbol = "kernel" + std::to_string(functions.size());
    info.num_groups = number(groups);
    image.kernels.push_back(info);
    functions.push_back(function);
    return static_cast<std::uint32_t>(functions.size() - 1);
  }
  Entry& entry() { return image.entries[static_cast<std::size_t>(EntryKind::Encode)]; }
};

struct RunOptions {
  std::uint32_t threads = 1;
  std::uint64_t groups_per_task = 0;
  const std::atomic<bool>* cancelled = nullptr;
};

// Runs the encode entry; `buffers` keeps its results.
Result<CallOutcome> run(HandProgram& program, ProgramBuffers& buffers, RunOptions options = {},
                        std::vector<std::int64_t>* rounds = nullptr) {
  program.entry().present = true;
  const Status valid = validate_image(program.image);
  EXPECT_TRUE(valid) << (valid ? "" : valid.error().message);
  TaskRunner runner(options.threads);
  Executor executor(program.image, program.functions, runner,
                    {options.groups_per_task, options.cancelled});
  EXPECT_TRUE(buffers.prepare(EntryKind::Encode, {}, true));
  CallInputs inputs;
  inputs.buffers = buffers.pointers();
  inputs.buffer_bytes = buffers.bytes();
  auto outcome = executor.run(EntryKind::Encode, inputs);
  if (rounds != nullptr) *rounds = executor.loop_rounds();
  return outcome;
}

std::uint64_t* words(const KernelArgs* args, BufferIndex buffer) {
  return static_cast<std::uint64_t*>(args->buffers[buffer]);
}
std::uint64_t word(const ProgramBuffers& buffers, BufferIndex buffer, std::size_t i = 0) {
  return static_cast<const std::uint64_t*>(buffers.pointers()[buffer])[i];
}

// ---- kernels; buffer 0 is the u64 array that they all write ----

void square_groups(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i) words(args, 0)[i] = i * i;
}
// Marks the first group of each task with 1.
void mark_begin(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i) words(args, 0)[i] = i == begin;
}
void increment(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  ++words(args, 0)[0];
}
void append_loop_index(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  words(args, 0)[0] = words(args, 0)[0] * 10 + words(args, 1)[0];
}
void is_below_five(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  *static_cast<std::uint8_t*>(args->buffers[1]) = words(args, 0)[0] < 5;
}
// Prefix sums that wait for the group before: they are right, and end, only if tasks start in
// ascending order.
void look_back(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  for (std::uint64_t i = begin; i < end; ++i) {
    std::uint64_t before = 0;
    if (i > 0) {
      std::atomic_ref<std::uint64_t> previous(words(args, 0)[i - 1]);
      while ((before = previous.load(std::memory_order_acquire)) == 0) _mm_pause();
    }
    std::atomic_ref<std::uint64_t>(words(args, 0)[i])
        .store(before + i + 1, std::memory_order_release);
  }
}
void fail_second_message(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  args->status[kStatusFailed] = 2;
}
void flag_and_fail(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  args->status[kStatusFlags] |= kFlagNonFinite;
  args->status[kStatusFailed] = 1;
}
void halve_subnormal(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  volatile float tiny = 1e-40f;
  for (std::uint64_t i = begin; i < end; ++i) words(args, 0)[i] = tiny * 0.5f > 0;
}
void store_sizes(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  for (int i = 0; i < 3; ++i) words(args, 0)[i] = args->sizes[i];
}
std::atomic<bool> stop_now{false};
std::atomic<int> tasks_started{0};
void stop_in_first_task(const KernelArgs*, std::uint64_t, std::uint64_t) {
  ++tasks_started;
  stop_now = true;
}
void count_bits(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  if (args->counters == nullptr) return;
  std::atomic_ref(args->counters[0]).fetch_add(64 * (end - begin));
  std::atomic_ref(args->counters[1]).fetch_add(3 * (end - begin));
}

TEST(Executor, CoversEveryGroupOnceForAnySplit) {
  for (std::uint32_t threads : {1u, 2u, 4u}) {
    for (std::uint64_t per_task : {0ull, 1ull, 3ull, 64ull, 100000ull}) {
      HandProgram program;
      program.buffer(kU64, 1000);
      program.entry().steps = {{StepKind::Launch, program.kernel(square_groups, 1000)}};
      ProgramBuffers buffers(program.image);
      ASSERT_TRUE(run(program, buffers, {threads, per_task}));
      for (std::uint64_t i = 0; i < 1000; ++i) ASSERT_EQ(word(buffers, 0, i), i * i);
    }
  }
}

TEST(Executor, TasksStartAtTheGroupMultiple) {
  HandProgram program;
  program.buffer(kU64, 100);
  const auto kernel = program.kernel(mark_begin, 100);
  program.image.kernels[kernel].group_multiple = 8;
  program.entry().steps = {{StepKind::Launch, kernel}};
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers, {2, 3}));
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(word(buffers, 0, i), i % 8 == 0) << i;
}

TEST(Executor, SequentialKernelsRunInOneTask) {
  HandProgram program;
  program.buffer(kU64, 100);
  const auto kernel = program.kernel(mark_begin, 100);
  program.image.kernels[kernel].is_sequential = true;
  program.entry().steps = {{StepKind::Launch, kernel}};
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers, {4, 1}));
  for (std::uint64_t i = 0; i < 100; ++i) EXPECT_EQ(word(buffers, 0, i), i == 0);
}

TEST(Executor, OrderedTasksMayWaitForTheirPredecessors) {
  constexpr std::uint64_t kGroups = 5000;
  for (std::uint32_t threads : {1u, 2u, 4u, 7u}) {
    HandProgram program;
    program.buffer(kU64, kGroups);
    const auto kernel = program.kernel(look_back, kGroups);
    program.image.kernels[kernel].is_ordered = true;
    program.entry().steps = {{StepKind::Zero, 0}, {StepKind::Launch, kernel}};
    ProgramBuffers buffers(program.image);
    ASSERT_TRUE(run(program, buffers, {threads, 1}));
    EXPECT_EQ(word(buffers, 0, kGroups - 1), kGroups * (kGroups + 1) / 2);
  }
}

TEST(Executor, NoGroupsIsNoLaunch) {
  HandProgram program;
  program.buffer(kU64, 1);
  program.entry().steps = {{StepKind::Zero, 0}, {StepKind::Launch, program.kernel(increment, 0)}};
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers));
  EXPECT_EQ(word(buffers, 0), 0u);
}

TEST(Executor, ForWritesItsIndexAndWhileIsBounded) {
  HandProgram program;
  program.buffer(kU64, 1);
  const BufferIndex index = program.buffer(kI64, 1);
  Step loop{StepKind::For, index, kNoIndex, program.number(2), program.number(5)};
  loop.body = {{StepKind::Launch, program.kernel(append_loop_index, 1)}};
  program.entry().steps = {{StepKind::Zero, 0}, loop};
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers));
  EXPECT_EQ(word(buffers, 0), 234u);
}

TEST(Executor, WhileStopsByConditionOrBound) {
  for (const auto& [at_most, expected] : {std::pair{20, 5u}, {3, 3u}, {0, 0u}}) {
    HandProgram program;
    program.buffer(kU64, 1);
    const BufferIndex flag = program.buffer(kBool, 1);
    Step loop{StepKind::While, flag, kNoIndex, program.number(at_most)};
    loop.cond = {{StepKind::Launch, program.kernel(is_below_five, 1)}};
    loop.body = {{StepKind::Launch, program.kernel(increment, 1)}};
    program.entry().steps = {{StepKind::Zero, 0}, loop};
    ProgramBuffers buffers(program.image);
    ASSERT_TRUE(run(program, buffers));
    EXPECT_EQ(word(buffers, 0), expected);
  }
}

// A nested loop counts all of its rounds; a loop that is never reached has none.
TEST(Executor, CountsRoundsOfLoops) {
  HandProgram program;
  program.buffer(kU64, 1);
  const BufferIndex index = program.buffer(kI64, 1), inner_index = program.buffer(kI64, 1);
  const BufferIndex flag = program.buffer(kBool, 1);
  Step inner{StepKind::For, inner_index, kNoIndex, program.number(0), program.number(2)};
  inner.body = {{StepKind::Launch, program.kernel(increment, 1)}};
  Step loop{StepKind::For, index, kNoIndex, program.number(2), program.number(5)};
  loop.body = {inner};
  Step turns{StepKind::While, flag, kNoIndex, program.number(9)};
  turns.cond = {{StepKind::Zero, flag}};
  turns.body = {{StepKind::Launch, program.kernel(increment, 1)}};
  program.entry().steps = {{StepKind::Zero, 0}, loop, turns};
  ProgramBuffers buffers(program.image);
  std::vector<std::int64_t> rounds;
  ASSERT_TRUE(run(program, buffers, {}, &rounds));
  EXPECT_THAT(rounds, testing::ElementsAre(3, 6, 0));
}

TEST(Executor, IfTakesOneBranch) {
  HandProgram program;
  program.buffer(kU64, 1);
  const BufferIndex flag = program.buffer(kBool, 1);
  Step branch{StepKind::If, flag};
  branch.body = {{StepKind::Launch, program.kernel(increment, 1)}};
  const Step decide{StepKind::Launch, program.kernel(is_below_five, 1)};
  branch.orelse = {{StepKind::Zero, 0}};
  program.entry().steps = {{StepKind::Zero, 0}};
  for (int i = 0; i < 5; ++i) {
    program.entry().steps.push_back(decide);
    program.entry().steps.push_back(branch);
  }
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers));
  EXPECT_EQ(word(buffers, 0), 5u);
  program.entry().steps.push_back(decide);
  program.entry().steps.push_back(branch);
  ASSERT_TRUE(run(program, buffers));
  EXPECT_EQ(word(buffers, 0), 0u);
}

TEST(Executor, CopiesAndZeroesLargeBuffers) {
  constexpr std::int64_t kElems = 700001;  // several chunks and a part
  HandProgram program;
  program.buffer(kU64, kElems);
  program.buffer(kU64, kElems);
  program.entry().steps = {{StepKind::Launch, program.kernel(square_groups, kElems)},
                           {StepKind::Copy, 1, 0},
                           {StepKind::Zero, 0}};
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers, {4, 0}));
  for (std::uint64_t i = 0; i < kElems; ++i) {
    ASSERT_EQ(word(buffers, 0, i), 0u);
    ASSERT_EQ(word(buffers, 1, i), i * i);
  }
}

// A run that is not cancelled ends by itself, whatever its bounds are.
TEST(Executor, LoopsOfNothingAreNoWork) {
  HandProgram program;
  program.buffer(kU64, 1);
  const BufferIndex index = program.buffer(kI64, 1), flag = program.buffer(kBool, 1);
  const Step rounds{StepKind::For, index, kNoIndex, program.number(0), program.number(INT64_MAX)};
  const Step turns{StepKind::While, flag, kNoIndex, program.number(INT64_MAX)};
  program.entry().steps = {rounds, turns};
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers));
  EXPECT_EQ(word(buffers, index), std::uint64_t{INT64_MAX} - 1) << "as after the last round";
}

TEST(Executor, LongLoopsAreCancelledBetweenRounds) {
  HandProgram program;
  program.buffer(kU64, 1);
  const BufferIndex index = program.buffer(kI64, 1), inner = program.buffer(kI64, 1);
  Step nothing{StepKind::For, inner, kNoIndex, program.number(0), program.number(0)};
  Step loop{StepKind::For, index, kNoIndex, program.number(0), program.number(INT64_MAX)};
  loop.body = {nothing};
  program.entry().steps = {loop};
  ProgramBuffers buffers(program.image);
  std::atomic<bool> stop{false};
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    stop = true;
  });
  const auto outcome = run(program, buffers, {1, 0, &stop});
  later.join();
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::Cancelled);
}

TEST(Executor, MoreGroupsThanThereCanBeAreAnError) {
  HandProgram program;
  program.buffer(kU64, 1);
  program.entry().steps = {{StepKind::Launch, program.kernel(increment, INT64_MAX)}};
  ProgramBuffers buffers(program.image);
  const auto outcome = run(program, buffers);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::Overflow);
}

TEST(Executor, AFailedCheckStopsWhatFollows) {
  HandProgram program;
  program.buffer(kU64, 1);
  program.image.messages = {"first", "second"};
  program.entry().steps = {{StepKind::Zero, 0},
                           {StepKind::Launch, program.kernel(fail_second_message, 1)},
                           {StepKind::Launch, program.kernel(increment, 1)}};
  ProgramBuffers buffers(program.image);
  const auto outcome = run(program, buffers);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::CheckFailed);
  EXPECT_EQ(outcome.error().message, "second");
  EXPECT_EQ(word(buffers, 0), 0u);
}

TEST(Executor, NonFiniteComesBeforeAFailedCheck) {
  HandProgram program;
  program.buffer(kU64, 1);
  program.image.messages = {"first"};
  program.entry().steps = {{StepKind::Zero, 0},
                           {StepKind::Launch, program.kernel(flag_and_fail, 1)},
                           {StepKind::Launch, program.kernel(increment, 1)}};
  ProgramBuffers buffers(program.image);
  const auto outcome = run(program, buffers);
  ASSERT_TRUE(outcome);
  EXPECT_TRUE(outcome->non_finite);
  EXPECT_EQ(word(buffers, 0), 0u);
}

TEST(Executor, HostChecksHoldOrFail) {
  HandProgram program;
  program.buffer(kU64, 1);
  program.image.messages = {"n must be zero"};
  Step check{StepKind::CheckHost, 0};
  check.expr = program.pool().make(HostOp::Eq, program.pool().n(), program.number(0));
  program.entry().steps = {check};
  ProgramBuffers buffers(program.image);
  EXPECT_TRUE(run(program, buffers));
  program.entry().steps[0].expr =
      program.pool().make(HostOp::Ne, program.pool().n(), program.number(0));
  const auto outcome = run(program, buffers);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().message, "this does not hold for n = 0: n must be zero");
}

TEST(Executor, SizesReachKernelsAsBits) {
  HandProgram program;
  program.buffer(kU64, 3);
  program.image.size_exprs = {program.number(-7), program.pool().const_f32(0.5f),
                              program.pool().const_bool(true)};
  program.entry().steps = {{StepKind::Launch, program.kernel(store_sizes, 1)}};
  ProgramBuffers buffers(program.image);
  ASSERT_TRUE(run(program, buffers));
  EXPECT_EQ(static_cast<std::int64_t>(word(buffers, 0, 0)), -7);
  EXPECT_EQ(word(buffers, 0, 1), 0x3f000000u);
  EXPECT_EQ(word(buffers, 0, 2), 1u);
}

TEST(Executor, AnOverflowingSizeIsAnError) {
  HandProgram program;
  program.buffer(kU64, 1);
  const HostExprId big = program.pool().add(program.number(INT64_MAX), program.pool().world());
  program.image.size_exprs = {big};
  ProgramBuffers buffers(program.image);
  const auto outcome = run(program, buffers);
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::Overflow);
}

TEST(Executor, CancellationEndsBetweenTasks) {
  stop_now = false;
  tasks_started = 0;
  HandProgram program;
  program.buffer(kU64, 1);
  program.entry().steps = {{StepKind::Launch, program.kernel(stop_in_first_task, 1000)}};
  ProgramBuffers buffers(program.image);
  const auto outcome = run(program, buffers, {2, 1, &stop_now});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().kind, ErrorKind::Cancelled);
  EXPECT_LT(tasks_started, 1000);
}

TEST(Executor, NothingIsCancelledOnceAStateChangesInPlace) {
  HandProgram program;
  program.buffer(kU64, 1);
  const Step launch{StepKind::Launch, program.kernel(stop_in_first_task, 1000)};
  program.entry().steps = {launch, launch};
  program.entry().commit_step = 0;
  ProgramBuffers buffers(program.image);
  stop_now = false;
  tasks_started = 0;
  EXPECT_TRUE(run(program, buffers, {2, 1, &stop_now}));
  EXPECT_EQ(tasks_started, 2000);
  // Cancelled before: the first step that changes a state does not begin.
  tasks_started = 0;
  EXPECT_FALSE(run(program, buffers, {2, 1, &stop_now}));
  EXPECT_EQ(tasks_started, 0);
  program.entry().commit_step = 2;
  EXPECT_FALSE(validate_image(program.image)) << "no such step";
}

TEST(Executor, KernelsKeepSubnormalsWhateverTheHostDoes) {
  constexpr unsigned kFlushBoth = 0x8040;  // FTZ and DAZ
  const unsigned before = _mm_getcsr();
  _mm_setcsr(before | kFlushBoth);
  HandProgram program;
  program.buffer(kU64, 64);
  program.entry().steps = {{StepKind::Launch, program.kernel(halve_subnormal, 64)}};
  ProgramBuffers buffers(program.image);
  for (std::uint32_t threads : {1u, 4u}) {
    ASSERT_TRUE(run(program, buffers, {threads, 1}));
    for (int i = 0; i < 64; ++i) EXPECT_EQ(word(buffers, 0, i), 1u);
    EXPECT_EQ(_mm_getcsr() & kFlushBoth, kFlushBoth) << "the host's mode must come back";
  }
  _mm_setcsr(before);
}

TEST(Executor, CountsAccessesOnlyWhereTheImageDoes) {
  HandProgram program;
  const BufferIndex a = program.buffer(kU64, 5), b = program.buffer(kU64, 5);
  const std::uint32_t kernel = program.kernel(count_bits, 99);
  program.entry().steps = {{StepKind::Zero, a},
                           {StepKind::Copy, b, a},
                           {StepKind::Launch, kernel},
                           {StepKind::Launch, kernel}};
  ProgramBuffers buffers(program.image);
  auto outcome = run(program, buffers, {4, 3});
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->accesses.bytes_read, 0u);
  EXPECT_TRUE(outcome->accesses.kernels.empty());

  program.image.counts_accesses = true;
  outcome = run(program, buffers, {4, 3});
  ASSERT_TRUE(outcome);
  const AccessCounts& counted = outcome->accesses;
  // 297 bits are rounded up in each launch, however its tasks are divided.
  ASSERT_EQ(counted.kernels.size(), 1u);
  EXPECT_EQ(counted.kernels[0].launches, 2u);
  EXPECT_EQ(counted.kernels[0].bytes_read, 2 * 99 * 8u);
  EXPECT_EQ(counted.kernels[0].bytes_written, 2 * 38u);
  EXPECT_EQ(counted.bytes_read, 40u + 2 * 99 * 8u);
  EXPECT_EQ(counted.bytes_written, 40u + 40u + 2 * 38u);
}

TEST(TaskRunner, RunsEveryTaskOnceInAscendingStarts) {
  TaskRunner runner(4);
  std::vector<std::atomic<int>> runs(10000);
  std::atomic<std::uint64_t> highest_start{0};
  ASSERT_TRUE(runner.run(runs.size(), nullptr, [&](std::uint64_t task) {
    ++runs[task];
    // When task t runs, at most threads - 1 lower tasks have not started, so t can exceed the
    // highest by no more.
    std::uint64_t seen = highest_start;
    EXPECT_LE(task, seen + 4);
    while (task > seen && !highest_start.compare_exchange_weak(seen, task)) {
    }
  }));
  for (const auto& count : runs) ASSERT_EQ(count, 1);
}

TEST(TaskRunner, StartsMoreThreadsThanTheMachineHas) {
  const std::uint32_t threads = std::thread::hardware_concurrency() + 2;
  TaskRunner runner(threads);
  std::atomic<std::uint32_t> arrived{0};
  // Every task waits until all others have started: this ends only if that many threads really run.
  ASSERT_TRUE(runner.run(threads, nullptr, [&](std::uint64_t) {
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
  }));
  EXPECT_EQ(arrived, threads);
}

// Tasks of tasks wait for lower ones, as look-back does. No thread may begin an outer task while it
// waits for the end of another, since that one would then wait for it.
TEST(TaskRunner, TasksRunOthersInTheSameRegion) {
  constexpr std::uint64_t kOuter = 6, kInner = 5;
  for (std::uint32_t threads : {1u, 2u, 8u}) {
    TaskRunner runner(threads);
    for (std::uint64_t round = 1; round <= 40; ++round) {
      std::vector<std::atomic<std::uint64_t>> done(kOuter);
      ASSERT_TRUE(runner.run(kOuter, nullptr, [&](std::uint64_t outer) {
        thread_local int depth = 0;
        EXPECT_EQ(++depth, 1);
        EXPECT_TRUE(runner.run(kInner, nullptr, [&](std::uint64_t inner) {
          // Long enough for other threads to come and help.
          std::this_thread::sleep_for(std::chrono::microseconds(30));
          while (done[outer] < inner) std::this_thread::yield();
          ++done[outer];
        }));
        --depth;
      }));
      for (const auto& count : done) ASSERT_EQ(count, kInner);
      ASSERT_EQ(runner.num_regions(), threads == 1 ? 0 : round);
    }
  }
}

// Threads without a task of their own help one task that runs others.
TEST(TaskRunner, ThreadsWithoutATaskHelpOthers) {
  constexpr std::uint32_t kThreads = 4;
  TaskRunner runner(kThreads);
  std::atomic<std::uint32_t> arrived{0};
  ASSERT_TRUE(runner.run(2, nullptr, [&](std::uint64_t outer) {
    if (outer > 0) return;
    EXPECT_TRUE(runner.run(kThreads, nullptr, [&](std::uint64_t) {
      ++arrived;
      while (arrived < kThreads) std::this_thread::yield();
    }));
  }));
  EXPECT_EQ(arrived, kThreads);
}

}  // namespace
}  // namespace cinch::rt
