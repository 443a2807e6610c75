// Measures the session's calls and their floors.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <optional>

#include "compiler/bench/phases.h"
#include "compiler/bench/program_bench.h"
#include "compiler/bench/stream_loops.h"
#include "runtime/call/parameters.h"
#include "runtime/core/check.h"
#include "runtime/module/cpu_module.h"
#include "runtime/payload/payload.h"

namespace cinch::bench {
namespace {

using rt::Result;
using rt::Status;

// Keeps the first error of the calls, which run in turns and cannot end the rounds.
class FirstError {
 public:
  template <typename T>
  void note(const Result<T>& result) {
    if (!result && !error_) error_ = result.error();
  }
  Status status() const {
    if (error_) return tl::unexpected(*error_);
    return rt::Ok{};
  }

 private:
  std::optional<rt::Error> error_;
};

// A world of one rank, which counts the bytes that it gets.
class MeasuredRank : public rt::LoneRank {
 public:
  Result<rt::RankStatus> exchange(const rt::CollectiveCall& call) override {
    sent_bytes += static_cast<std::int64_t>(call.input.size());
    return LoneRank::exchange(call);
  }
  std::int64_t sent_bytes = 0;
};

const char* name_of(rt::EntryKind kind) {
  switch (kind) {
    case rt::EntryKind::Encode:
      return "encode";
    case rt::EntryKind::Decode:
      return "decode";
    case rt::EntryKind::DecodeAdd:
      return "decode_add";
    default:
      return "sync";
  }
}

class ProgramBench {
 public:
  ProgramBench(rt::Session session, const ir::Program& lowered, std::span<const float> gradient,
               const BenchOptions& options)
      : session_(std::move(session)),
        lowered_(lowered),
        gradient_(gradient),
        options_(options),
        runner_(options.threads),
        parameters_(lowered.info),
        out_(gradient.size()) {}

  Result<ProgramFigures> run() {
    CINCH_TRY(lowered_.info.has_sync ? add_sync() : add_codec());
    const auto workspace_bytes = TRY(session_.workspace_bytes());
    figures_.workspace_bytes = workspace_bytes;
    figures_.state_bytes = session_.state_bytes();
    return std::move(figures_);
  }

 private:
  Status add_codec() {
    if (auto status = take_payload(); !status) return status;
    using rt::EntryKind;
    for (const EntryKind kind : {EntryKind::Encode, EntryKind::Decode, EntryKind::DecodeAdd}) {
      if (auto status = add(kind); !status) return status;
    }
    return add_later_phases(EntryKind::Encode);
  }

  // The step stays, because the next one may be of another phase.
  Status add_later_phases(rt::EntryKind kind) {
    const auto steps = first_steps_of_phases(lowered_, function_of(kind), environment());
    for (std::size_t i = 1; i < steps.size(); ++i) {
      fixed_step_ = steps[i];
      if (auto status = add(kind); !status) return status;
      figures_.calls.back().first_step = steps[i];
    }
    fixed_step_.reset();
    return rt::Ok{};
  }

  Status add_sync() {
    call(rt::EntryKind::Sync);
    figures_.payload_bytes = rank_.sent_bytes;
    if (auto status = error_.status(); !status) return status;
    if (auto status = add(rt::EntryKind::Sync); !status) return status;
    return add_later_phases(rt::EntryKind::Sync);
  }

  // Encodes the one payload that all decoding uses, and keeps its counts.
  Status take_payload() {
    give_inputs();
    const auto payload = TRY(session_.encode(rt::ConstTensorView(gradient_), step_));
    payload_.assign(payload.begin(), payload.end());
    figures_.payload_bytes = static_cast<std::int64_t>(payload_.size());
    const std::size_t num_counts = lowered_.info.wire.counts.size();
    for (std::size_t i = 0; i < num_counts; ++i) {
      std::uint32_t count = 0;
      std::memcpy(&count, payload_.data() + rt::kPayloadHeaderBytes + 4 * i, sizeof count);
      counts_.push_back(count);
    }
    return rt::Ok{};
  }

  // Finds by calls how often loops run. A program whose choice depends on its states gets some
  // calls first.
  Result<std::vector<std::int64_t>> rounds_of(rt::EntryKind kind) {
    constexpr int kCallsToSettle = 60;
    call(kind);
    auto rounds = session_.last_loop_rounds();
    if (!rounds || rounds->empty()) return rounds;
    for (int i = 0; i < kCallsToSettle; ++i) call(kind);
    return session_.last_loop_rounds();
  }

  Result<analysis::ForcedSweeps> floor_of(rt::EntryKind kind) {
    auto loop_rounds = TRY(rounds_of(kind));
    analysis::FloorRequest request{.function = function_of(kind),
                                   .adds_output = kind == rt::EntryKind::DecodeAdd};
    request.env = environment();
    request.loop_rounds = std::move(loop_rounds);
    return analysis::find_forced_sweeps(lowered_, request);
  }

  static ir::FunctionKind function_of(rt::EntryKind kind) {
    return kind == rt::EntryKind::Encode ? ir::FunctionKind::Encode
           : kind == rt::EntryKind::Sync ? ir::FunctionKind::Sync
                                         : ir::FunctionKind::Decode;
  }

  HostEnv environment() const {
    HostEnv env;
    env.n = static_cast<std::int64_t>(gradient_.size());
    env.cols = options_.columns;
    env.rows = env.n / options_.columns;
    env.params = parameters_.host_values();
    env.counts = counts_;
    return env;
  }

  std::uint64_t next_step() { return fixed_step_ ? *fixed_step_ : ++step_; }

  // Weights look like a gradient here, which costs the same.
  void give_inputs() { error_.note(session_.make_up_inputs(rt::ConstTensorView(gradient_))); }

  void call(rt::EntryKind kind) {
    if (kind == rt::EntryKind::Encode || kind == rt::EntryKind::Sync) give_inputs();
    switch (kind) {
      case rt::EntryKind::Encode:
        return error_.note(session_.encode(rt::ConstTensorView(gradient_), next_step()));
      case rt::EntryKind::Decode:
        return error_.note(session_.decode(payload_, rt::TensorView(std::span(out_)), 0));
      case rt::EntryKind::DecodeAdd:
        return error_.note(session_.decode_add(payload_, out_, 0));
      case rt::EntryKind::Sync:
        return error_.note(session_.sync(rt::ConstTensorView(gradient_),
                                         rt::TensorView(std::span(out_)), next_step(), rank_));
      default:
        CINCH_BUG("a call that is not measured");
    }
  }

  Status add(rt::EntryKind kind) {
    const auto sweeps = TRY(floor_of(kind));
    auto floor = TRY(FloorTimer::make(sweeps, runner_));
    const Rounds rounds =
        take_turns({[&] { return timed_ms([&] { call(kind); }); }, [&] { return floor.run(); }},
                   options_.limits);
    CallFigures figures{.name = name_of(kind),
                        .ms = rounds.medians[0],
                        .floor_ms = rounds.medians[1],
                        .floor_bytes = floor.floor().bytes(),
                        .floor_sweeps = static_cast<std::int64_t>(floor.floor().sweeps.size()),
                        .random_words = floor.floor().random_words,
                        .rounds = rounds.count};
    figures_.calls.push_back(figures);
    return error_.status();
  }

  rt::Session session_;
  const ir::Program& lowered_;
  std::span<const float> gradient_;
  BenchOptions options_;
  rt::TaskRunner runner_;
  rt::ParameterValues parameters_;
  std::vector<float> out_;
  std::vector<std::uint8_t> payload_;
  std::vector<std::int64_t> counts_;
  std::uint64_t step_ = 0;
  std::optional<std::uint64_t> fixed_step_;
  MeasuredRank rank_;
  FirstError error_;
  ProgramFigures figures_;
};

// Block size of a sweep's longest stream: fits the nearest caches, and is far above the cost of a
// call.
constexpr std::int64_t kBlockBytes = 16 << 10;
constexpr std::uint64_t kBlocksPerTask = 32;
constexpr std::uint64_t kWordsPerTask = 1 << 18;

// Takes the results of loads, so that the compiler cannot drop them.
std::atomic<std::uint32_t> sink;

// For the widest vectors of this machine.
const StreamLoops& stream_loops() {
#ifdef __x86_64__
  if (rt::host_supports("x86-64-v4")) return kStreamLoopsV4;
  if (rt::host_supports("x86-64-v3")) return kStreamLoopsV3;
#endif
  return kStreamLoopsBase;
}

}  // namespace

Result<ProgramFigures> bench_program(std::shared_ptr<const rt::LoadedProgram> program,
                                     const ir::Program& lowered, std::span<const float> gradient,
                                     const BenchOptions& options) {
  rt::SessionOptions session_options{
      .rows = static_cast<std::int64_t>(gradient.size()) / options.columns,
      .cols = options.columns,
      .threads = options.threads,
      .seed = options.seed};
  auto session = TRY(rt::Session::open(std::move(program), session_options));
  return ProgramBench(std::move(session), lowered, gradient, options).run();
}

// A sweep's streams are divided into blocks of the same share of each, as in a kernel.

using analysis::Stream;

rt::Result<FloorTimer> FloorTimer::make(analysis::ForcedSweeps floor, rt::TaskRunner& runner) {
  FloorTimer timer(std::move(floor), runner);
  CINCH_TRY(timer.allocate());
  return timer;
}

rt::Status FloorTimer::allocate() {
  std::map<std::string, std::int64_t> sizes;
  for (const auto& sweep : floor_.sweeps) {
    for (const Stream& stream : sweep) {
      std::int64_t& size = sizes[stream.name];
      size = std::max(size, stream.size_bytes);
    }
  }
  for (const auto& [name, size] : sizes) {
    rt::AlignedBuffer& array = arrays_[name];
    if (auto status = array.resize(size); !status) return status;
    std::fill(array.bytes().begin(), array.bytes().end(), std::uint8_t{1});
  }
  return {};
}

double FloorTimer::run() {
  const auto start = std::chrono::steady_clock::now();
  for (const auto& sweep : floor_.sweeps) {
    std::int64_t longest = 0;
    for (const Stream& stream : sweep) longest = std::max(longest, stream.size_bytes);
    const auto num_blocks = static_cast<std::uint64_t>(longest / kBlockBytes + 1);
    const std::uint64_t num_tasks = (num_blocks + kBlocksPerTask - 1) / kBlocksPerTask;
    (void)runner_->run(num_tasks, nullptr, [&](std::uint64_t task) {
      const std::uint64_t end = std::min(num_blocks, (task + 1) * kBlocksPerTask);
      for (std::uint64_t b = task * kBlocksPerTask; b < end; ++b) run_block(sweep, b, num_blocks);
    });
  }
  if (floor_.random_words > 0) draw(static_cast<std::uint64_t>(floor_.random_words));
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void FloorTimer::run_block(const std::vector<Stream>& sweep, std::uint64_t block,
                           std::uint64_t num_blocks) {
  const StreamLoops& loops = stream_loops();
  for (const Stream& stream : sweep) {
    const std::uint64_t words = static_cast<std::uint64_t>(stream.size_bytes) / 4;
    const std::uint64_t begin = words * block / num_blocks;
    const std::uint64_t count = words * (block + 1) / num_blocks - begin;
    auto* at = reinterpret_cast<std::uint32_t*>(arrays_.at(stream.name).data()) + begin;
    switch (stream.use) {
      case Stream::Use::Read:
        sink.store(loops.read(at, count), std::memory_order_relaxed);
        break;
      case Stream::Use::Update:
        loops.update(at, count);
        break;
      case Stream::Use::Write:
        loops.write(at, count, static_cast<std::uint32_t>(block));
        break;
    }
  }
}

void FloorTimer::draw(std::uint64_t num_words) {
  const std::uint64_t num_tasks = (num_words + kWordsPerTask - 1) / kWordsPerTask;
  (void)runner_->run(num_tasks, nullptr, [&](std::uint64_t task) {
    const std::uint64_t first = task * kWordsPerTask;
    const std::uint64_t count = std::min(kWordsPerTask, num_words - first);
    sink.store(
        stream_loops().draw(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count)),
        std::memory_order_relaxed);
  });
}

}  // namespace cinch::bench
