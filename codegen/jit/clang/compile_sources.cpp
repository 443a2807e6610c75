// Compiles the sources of a request on threads. A thread that runs out of memory within LLVM may
// leave a lock of LLVM held, and others then wait for ever. So the caller only waits, with a limit
// once memory has run out, and everything that a thread uses lives as long as the thread.
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <new>
#include <thread>

#include "codegen/jit/clang/stages.h"

namespace cinch::clang_backend {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks{50};
constexpr std::chrono::seconds kPatience{2};

std::atomic<bool> ran_out_of_memory{false};

// A request with copies of its texts.
class Job {
 public:
  explicit Job(const CinchClangRequest& given)
      : request(given), file_name_(given.file_name), cpu_(given.cpu) {
    texts_.reserve(given.num_sources);
    for (std::size_t i = 0; i < given.num_sources; ++i) {
      const std::string& text = texts_.emplace_back(given.sources[i].text, given.sources[i].size);
      sources_.push_back({text.data(), text.size()});
    }
    request.sources = sources_.data();
    request.file_name = file_name_.c_str();
    request.cpu = cpu_.c_str();
    compiled.resize(given.num_sources);
  }

  void run(std::size_t i) {
    try {
      const std::string_view prelude =
          request.links_helpers ? precompiled_prelude(request.cpu) : std::string_view();
      compiled[i] = compile_source(request, sources_[i], prelude);
    } catch (const std::bad_alloc&) {
      ran_out_of_memory = true;
    }
  }

  CinchClangRequest request;
  std::vector<Compiled> compiled;
  std::mutex mutex;  // of the two below
  std::condition_variable ended;
  std::size_t num_running = 0;

 private:
  std::string file_name_, cpu_;
  std::vector<std::string> texts_;
  std::vector<CinchClangText> sources_;
};

bool start(const std::shared_ptr<Job>& job, std::size_t i) {
  const std::lock_guard lock(job->mutex);
  try {
    std::thread([job, i] {
      job->run(i);
      const std::lock_guard ending(job->mutex);
      --job->num_running;
      job->ended.notify_all();
    }).detach();
  } catch (const std::exception&) {
    return false;
  }
  ++job->num_running;
  return true;
}

void wait_for_all(Job& job) {
  std::unique_lock lock(job.mutex);
  auto waited = std::chrono::nanoseconds{0};
  while (job.num_running > 0 && waited < kPatience) {
    const bool hurries = ran_out_of_memory;
    job.ended.wait_for(lock, kBetweenLooks);
    if (hurries) waited += kBetweenLooks;
  }
}

}  // namespace

bool has_run_out_of_memory() {
  return ran_out_of_memory;
}

void note_out_of_memory() {
  ran_out_of_memory = true;
}

std::vector<Compiled> compile_sources(const CinchClangRequest& request) {
  const auto job = std::make_shared<Job>(request);
  std::vector<std::size_t> not_started;
  not_started.reserve(request.num_sources);
  for (std::size_t i = 0; i < request.num_sources; ++i) {
    if (!start(job, i)) not_started.push_back(i);
  }
  wait_for_all(*job);
  for (const std::size_t i : not_started) {
    if (!ran_out_of_memory) job->run(i);
  }
  if (ran_out_of_memory) throw std::bad_alloc();
  return std::move(job->compiled);
}

}  // namespace cinch::clang_backend
