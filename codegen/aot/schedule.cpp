#include "codegen/aot/schedule.h"

#include <algorithm>

namespace cinch::codegen {
namespace {

Schedule::Task take_longest(std::vector<Schedule::Task>& parts) {
  const auto longest = std::ranges::max_element(parts, {}, &Schedule::Task::cost);
  const Schedule::Task part = *longest;
  parts.erase(longest);
  return part;
}

}  // namespace

void Schedule::add_part(const Task& part) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_) return;
  (part.takes_turns ? in_turn_ : others_).push_back(part);
  changed_.notify_all();
}

std::optional<Schedule::Task> Schedule::take_now() {
  const bool has_program = next_program_ < num_programs_;
  if (!in_turn_.empty() && num_turns_taken_ < (has_program ? 1 : num_turns_)) {
    ++num_turns_taken_;
    return take_longest(in_turn_);
  }
  if (has_program) {
    ++num_running_programs_;
    return Task{.is_program = true, .index = next_program_++};
  }
  if (!others_.empty()) return take_longest(others_);
  return std::nullopt;
}

std::optional<Schedule::Task> Schedule::next() {
  std::unique_lock lock(mutex_);
  std::optional<Task> task = take_now();
  // Only front ends add tasks. Parts that wait for their turn go to the workers that compile such
  // parts now.
  while (!task && num_running_programs_ > 0) {
    changed_.wait(lock);
    task = take_now();
  }
  return task;
}

void Schedule::end(const Task& task) {
  const std::lock_guard lock(mutex_);
  if (task.is_program) --num_running_programs_;
  if (task.takes_turns) --num_turns_taken_;
  changed_.notify_all();
}

void Schedule::stop_parts() {
  const std::lock_guard lock(mutex_);
  is_stopped_ = true;
  in_turn_.clear();
  others_.clear();
}

void Schedule::stop() {
  stop_parts();
  const std::lock_guard lock(mutex_);
  next_program_ = num_programs_;
}

}  // namespace cinch::codegen
