// Tasks are handed out by one atomic ticket. oneTBB only brings the threads: how it splits the loop
// over workers does not matter, and one worker alone finishes all tasks.
#include "runtime/exec/task_runner.h"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <latch>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/core/numbers/floats.h"
#include "runtime/core/own_stack.h"

namespace cinch::rt {
namespace {

bool is_set(const std::atomic<bool>* flag) {
  return flag != nullptr && flag->load(std::memory_order_relaxed);
}

// Tries to start one more thread.
bool start_one(std::vector<std::thread>& started, std::latch& all_tried) {
  try {
    started.emplace_back([&all_tried] { all_tried.wait(); });
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

// Kernels of the library take up to 1.2 MB (`qsgd_elias`), most of them 150 KB. Tasks of a thread
// with less stack than the first run on another thread, with the second.
constexpr std::size_t kLeastStackBytes = std::size_t{1792} << 10;
constexpr std::size_t kOwnStackBytes = std::size_t{8} << 20;

// The runner of the task that runs on this thread, if the task shares it with others.
thread_local const TaskRunner* inside = nullptr;

struct Inside {
  explicit Inside(const TaskRunner& runner) : before(std::exchange(inside, &runner)) {}
  ~Inside() { inside = before; }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  const TaskRunner* before;
};

// How many threads, at most `wanted`, can run besides this one now: starts them to find out. TBB
// must never find out itself: if one of its threads cannot start, it leaves its work half done.
// Each result is remembered.
std::uint32_t startable_threads(std::uint32_t wanted) {
  static std::mutex mutex;
  static std::uint32_t known = 0;
  const std::lock_guard lock(mutex);
  if (known >= wanted) return wanted;
  std::latch all_tried(1);
  std::vector<std::thread> started;
  while (started.size() < wanted && start_one(started, all_tried)) continue;
  all_tried.count_down();
  for (std::thread& thread : started) thread.join();
  known = std::max(known, static_cast<std::uint32_t>(started.size()));
  return static_cast<std::uint32_t>(started.size());
}

}  // namespace

struct TaskRunner::Arena {
  explicit Arena(std::uint32_t threads) : arena(static_cast<int>(threads)) {
    // TBB starts no more threads than the machine has, unless it is told to.
    if (threads > static_cast<std::uint32_t>(tbb::info::default_concurrency())) {
      allowance.emplace(tbb::global_control::max_allowed_parallelism, threads);
    }
  }
  std::optional<tbb::global_control> allowance;
  tbb::task_arena arena;
};

TaskRunner::TaskRunner(std::uint32_t threads) : threads_(threads) {
  if (threads_ == 0) threads_ = static_cast<std::uint32_t>(tbb::info::default_concurrency());
  threads_ = 1 + startable_threads(threads_ - 1);
  if (threads_ > 1) arena_ = std::make_unique<Arena>(threads_);
}

TaskRunner::~TaskRunner() = default;

void TaskRunner::run_on_arena(std::uint32_t workers, const std::function<void()>& work) {
  const auto spread = [&] {
    tbb::parallel_for(
        std::uint32_t{0}, workers,
        [&](std::uint32_t) {
          const Inside marked(*this);
          work();
        },
        tbb::simple_partitioner());
  };
  if (inside == this) {
    // A thread that waits for a task's own tasks must not begin a sibling of that task meanwhile:
    // the task would end no sooner than the sibling, and stacks would grow.
    tbb::this_task_arena::isolate(spread);
    return;
  }
  num_regions_.fetch_add(1, std::memory_order_relaxed);
  arena_->arena.execute(spread);
}

Status TaskRunner::run_each(std::uint64_t num_tasks, const std::atomic<bool>* cancelled,
                            const std::function<void(std::uint64_t)>& task) {
  std::atomic<std::uint64_t> ticket{0};
  std::atomic<bool> stopped{false};
  // A ticket that was taken must be run: a later task may already wait for it.
  const auto work = [&] {
    const DefaultFloatEnvironment environment;
    while (!stopped.load(std::memory_order_relaxed)) {
      if (is_set(cancelled)) return stopped.store(true);
      const std::uint64_t next = ticket.fetch_add(1, std::memory_order_relaxed);
      if (next >= num_tasks) return;
      task(next);
    }
  };
  const auto workers = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads_, num_tasks));
  const auto run_all = [&] {
    if (workers <= 1) {
      work();
    } else {
      run_on_arena(workers, std::cref(work));
    }
  };
  if (has_stack(kLeastStackBytes)) {
    run_all();
  } else {
    run_on_own_stack(kOwnStackBytes, std::cref(run_all));
  }
  if (stopped) return fail(ErrorKind::Cancelled, "cancelled");
  return Ok{};
}

}  // namespace cinch::rt
