// Tasks are handed out by one atomic ticket. oneTBB only brings the threads: how it splits the loop
// over workers does not matter, and one worker alone finishes all tasks.
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <algorithm>
#include <latch>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/core/numbers/floats.h"
#include "runtime/core/own_stack.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/exec/executor.h"

namespace cinch::rt {
namespace {

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

// If the image has no formula: a tile that is read and written.
constexpr std::int64_t kGroupBytesGuess = 8192;
// A task of an ordered kernel takes one chunk (kMaxChunk of codegen/prelude/cpu/ordered.h). It
// publishes the chunk's sum as soon as it has it; the sum of a second chunk in the task would have
// to wait for the first to end.
constexpr std::uint64_t kOrderedGroups = 32;

std::uint64_t group_bytes(const LaunchSize& launch) {
  const KernelInfo& kernel = launch.kernel;
  if (!kernel.bytes_read.is_valid() || !kernel.bytes_written.is_valid()) return kGroupBytesGuess;
  const auto read = launch.exprs.eval_int(kernel.bytes_read, launch.env);
  const auto written = launch.exprs.eval_int(kernel.bytes_written, launch.env);
  if (!read || !written) return kGroupBytesGuess;
  const auto at_least_none = [](std::int64_t bytes) {
    return static_cast<std::uint64_t>(std::max<std::int64_t>(bytes, 0));
  };
  const std::uint64_t bytes = at_least_none(*read) + at_least_none(*written);
  return std::max<std::uint64_t>(bytes / launch.num_groups, 1);
}

// A task should be worth its start (about 1 µs), and each thread should get several. For small
// launches, few tasks are better than tasks that are not worth their start.
std::uint64_t tuned_groups(const LaunchSize& launch, const CpuTuning& tuning) {
  const std::uint64_t each_bytes = group_bytes(launch);
  const auto single = static_cast<std::uint64_t>(tuning.single_task_bytes) / each_bytes;
  if (launch.num_groups <= single) return launch.num_groups;
  const auto worth = static_cast<std::uint64_t>(tuning.task_bytes) / each_bytes;
  const auto tasks = static_cast<std::uint64_t>(tuning.tasks_per_thread) * launch.threads;
  return std::clamp<std::uint64_t>(launch.num_groups / tasks, 1, std::max<std::uint64_t>(worth, 1));
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
      if (cancelled != nullptr && cancelled->load(std::memory_order_relaxed))
        return stopped.store(true);
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

// How many groups of a launch one task takes.

std::uint64_t groups_per_task(const LaunchSize& launch, const ExecutorOptions& options) {
  if (launch.kernel.is_sequential) return launch.num_groups;
  std::uint64_t groups = options.groups_per_task;
  if (groups == 0) groups = tuned_groups(launch, options.tuning);
  if (launch.kernel.is_ordered && options.groups_per_task == 0 && launch.threads > 1) {
    groups = std::min(groups, kOrderedGroups);
  }
  const std::uint64_t multiple = launch.kernel.group_multiple;
  groups = std::min(groups, launch.num_groups);
  return (groups + multiple - 1) / multiple * multiple;
}

}  // namespace cinch::rt
