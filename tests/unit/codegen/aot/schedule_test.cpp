// Which task comes next while a library is built.
#include "codegen/aot/schedule.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>

namespace cinch::codegen {
namespace {

using Task = Schedule::Task;

Task nvrtc_part(std::size_t index, std::size_t cost) {
  return {.index = index, .takes_turns = true, .cost = cost};
}
Task cpu_part(std::size_t index, std::size_t cost) {
  return {.index = index, .cost = cost};
}

void expect_program(const std::optional<Task>& task, std::size_t index) {
  ASSERT_TRUE(task);
  EXPECT_TRUE(task->is_program);
  EXPECT_EQ(task->index, index);
}
void expect_part(const std::optional<Task>& task, std::size_t index) {
  ASSERT_TRUE(task);
  EXPECT_FALSE(task->is_program);
  EXPECT_EQ(task->index, index);
}

TEST(ScheduleTest, PrefersTurnsThenProgramsThenOtherParts) {
  Schedule schedule(2, 1);
  const auto first = schedule.next();
  expect_program(first, 0);
  schedule.add_part(cpu_part(0, 1));
  schedule.add_part(nvrtc_part(1, 1));
  schedule.end(*first);
  const auto turn = schedule.next();
  expect_part(turn, 1);
  const auto second = schedule.next();
  expect_program(second, 1);
  schedule.add_part(cpu_part(2, 5));
  schedule.add_part(nvrtc_part(3, 1));
  schedule.end(*second);
  // The turn is taken. The greatest cost goes first.
  const auto other = schedule.next();
  expect_part(other, 2);
  expect_part(schedule.next(), 0);
  // The part in turn waits for who compiles the one before it.
  EXPECT_FALSE(schedule.next());
  schedule.end(*turn);
  expect_part(schedule.next(), 3);
}

TEST(ScheduleTest, TakesSeveralTurnsWhenNoFrontEndIsLeft) {
  Schedule schedule(2, 2);
  const auto first = schedule.next();
  for (const std::size_t i : {0, 1, 2}) schedule.add_part(nvrtc_part(i, i));
  schedule.end(*first);
  const auto turn = schedule.next();
  expect_part(turn, 2);
  expect_program(schedule.next(), 1);
  expect_part(schedule.next(), 1);
  schedule.end(*turn);
  expect_part(schedule.next(), 0);
}

TEST(ScheduleTest, WaitsForPartsOfRunningFrontEnds) {
  Schedule schedule(1, 1);
  const auto program = schedule.next();
  expect_program(program, 0);
  std::optional<Task> found;
  std::jthread waiting([&] { found = schedule.next(); });
  schedule.add_part(cpu_part(7, 1));
  schedule.end(*program);
  waiting.join();
  expect_part(found, 7);
  EXPECT_FALSE(schedule.next());
}

TEST(ScheduleTest, StopsPartsAndGoesOnWithPrograms) {
  Schedule schedule(2, 1);
  const auto program = schedule.next();
  schedule.add_part(cpu_part(0, 1));
  schedule.stop_parts();
  schedule.add_part(nvrtc_part(1, 1));
  schedule.end(*program);
  const auto last = schedule.next();
  expect_program(last, 1);
  schedule.end(*last);
  EXPECT_FALSE(schedule.next());
}

TEST(ScheduleTest, StopsAll) {
  Schedule schedule(3, 1);
  const auto program = schedule.next();
  schedule.add_part(cpu_part(0, 1));
  schedule.stop();
  schedule.end(*program);
  EXPECT_FALSE(schedule.next());
}

TEST(ScheduleTest, GivesEachTaskOnceAndOneTurnAtATime) {
  constexpr std::size_t kPrograms = 200;
  Schedule schedule(kPrograms, 1);
  std::mutex mutex;
  std::set<std::size_t> programs, parts;
  std::atomic<int> num_in_turn{0};
  std::atomic<bool> has_met{false};
  const auto work = [&] {
    while (const auto task = schedule.next()) {
      if (task->is_program) {
        schedule.add_part(nvrtc_part(2 * task->index, task->index));
        schedule.add_part(cpu_part(2 * task->index + 1, task->index));
      } else if (task->takes_turns) {
        if (num_in_turn.fetch_add(1) != 0) has_met = true;
        std::this_thread::yield();
        num_in_turn.fetch_sub(1);
      }
      {
        const std::lock_guard lock(mutex);
        EXPECT_TRUE((task->is_program ? programs : parts).insert(task->index).second);
      }
      schedule.end(*task);
    }
  };
  {
    std::vector<std::jthread> workers;
    for (int i = 0; i < 4; ++i) workers.emplace_back(work);
  }
  EXPECT_EQ(programs.size(), kPrograms);
  EXPECT_EQ(parts.size(), 2 * kPrograms);
  EXPECT_FALSE(has_met);
}

}  // namespace
}  // namespace cinch::codegen
