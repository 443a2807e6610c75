// Bodies of bench_cases.h.
#include "tests/gpu/bench_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ranges>
#include <span>
#include <thread>

#include "runtime/core/lang.h"
#include "runtime/gpu/events.h"
#include "tests/programs/harness/gradients.h"

namespace cinch::testing {
namespace {

constexpr double kDeviation = 0.01;
// A turn of short calls lasts so long.
constexpr double kTurnMs = 2;
constexpr double kMostReplays = 200;

// Values of elements `begin` to `end`, the same for any number of threads.
void make_values(std::span<float> values, std::size_t begin, std::size_t end) {
  const auto part =
      make_gradient(DataKind::Normal, static_cast<std::int64_t>(end - begin), 1 + begin);
  for (std::size_t i = begin; i < end; ++i) {
    values[i] = static_cast<float>(kDeviation * static_cast<double>(part[i - begin]));
  }
}

std::vector<float> make_values(std::int64_t num_elems) {
  constexpr std::size_t kPart = std::size_t{1} << 20;
  std::vector<float> values(static_cast<std::size_t>(num_elems));
  const std::size_t num_threads = std::max(1u, std::thread::hardware_concurrency());
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < num_threads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t * kPart; i < values.size(); i += num_threads * kPart) {
        make_values(values, i, std::min(i + kPart, values.size()));
      }
    });
  }
  threads.clear();
  return values;
}

// Milliseconds of a replay, of as many as make a turn.
class Turn {
 public:
  Turn(const Graph& graph, const Stream& stream)
      : graph_(graph),
        stream_(stream),
        timer_(value_or_throw(rt::GpuTimer::create(stream.device()), "a timer")) {
    run(1);
    replays_ = static_cast<int>(std::clamp(kTurnMs / std::max(run(1), 1e-6), 1.0, kMostReplays));
  }
  double run() { return run(replays_); }

 private:
  double run(int replays) {
    ok_or_throw(timer_.start(stream_.get()), "timing");
    for (int i = 0; i < replays; ++i) graph_.replay();
    ok_or_throw(timer_.stop(stream_.get()), "timing");
    return value_or_throw(timer_.milliseconds(), "timing") / replays;
  }

  const Graph& graph_;
  const Stream& stream_;
  rt::GpuTimer timer_;
  int replays_ = 1;
};

// A session with memory for its calls: from one gradient, tensor behind tensor.
class Calls {
 public:
  Calls(const std::shared_ptr<const rt::GpuProgram>& program, const rt::GpuSessionOptions& options,
        const GradientOnDevice& gradient, const Stream& stream)
      : stream_(stream), memory_(program->device()), session_(open(program, options, stream)) {
    rt::GpuAddress from = gradient.address;
    for (std::size_t t = 0; t < session_.num_tensors(); ++t) {
      const auto element = static_cast<std::size_t>(element_bytes(options.dtype));
      const std::size_t bytes = element * static_cast<std::size_t>(session_.num_elems(t));
      const std::size_t shift = element * static_cast<std::size_t>(gradient.lying.shift);
      const std::int64_t bound = value_or_throw(session_.payload_bound(t), "a payload");
      gradients_.push_back(from);
      from += bytes;
      payloads_.push_back({memory_.hold(nullptr, static_cast<std::size_t>(bound)), bound});
      outputs_.push_back(memory_.hold(nullptr, bytes + shift) + shift);
    }
    encode();
    decode();
    check();
  }

  void encode() { ok_or_throw(session_.encode(gradients_, payloads_, 0, stream_.get()), "encode"); }
  void decode() { ok_or_throw(session_.decode(payloads_, outputs_, 0, stream_.get()), "decode"); }
  Graph capture(const std::string& call) {
    return {stream_, [&] { call == "encode" ? encode() : decode(); }};
  }

  /// Did all calls succeed? Returns the payload of the first tensor.
  std::int64_t check() {
    const auto outcomes = value_or_throw(session_.collect(stream_.get()), "the calls");
    for (const rt::TensorOutcome& outcome : outcomes) {
      ok_or_throw(outcome.status, "a call");
      if (outcome.non_finite) throw std::runtime_error("a call found a value that is not finite");
    }
    return outcomes.front().payload_bytes;
  }
  std::int64_t payload_bound() const { return payloads_.front().size_bytes; }
  std::size_t num_launches(const std::string& call) const {
    return session_.num_launches(call == "encode" ? rt::EntryKind::Encode : rt::EntryKind::Decode);
  }

 private:
  static rt::GpuSession open(const std::shared_ptr<const rt::GpuProgram>& program,
                             const rt::GpuSessionOptions& options, const Stream& stream) {
    return value_or_throw(rt::GpuSession::open(program, options, stream.get()), "a session");
  }

  const Stream& stream_;
  Memory memory_;
  rt::GpuSession session_;
  std::vector<rt::GpuAddress> gradients_, outputs_;
  std::vector<rt::GpuPayload> payloads_;
};

// Costs count a payload at its bound; the part beyond its real size is neither written nor read.
Traffic without_excess(Traffic traffic, const std::string& call, std::int64_t excess) {
  std::int64_t& bytes = call == "encode" ? traffic.written : traffic.read;
  bytes = std::max<std::int64_t>(bytes - excess, 0);
  return traffic;
}

}  // namespace

GradientOnDevice make_gradient_on_device(std::span<const std::int64_t> sizes, const Lying& lying,
                                         Memory& memory) {
  const std::int64_t element = element_bytes(lying.dtype);
  for (const std::int64_t n : std::ranges::reverse_view(sizes)) {
    try {
      const rt::GpuAddress at =
          memory.hold(nullptr, static_cast<std::size_t>(element * (n + lying.shift))) +
          static_cast<rt::GpuAddress>(element * lying.shift);
      const std::vector<float> values = make_values(n);
      if (lying.dtype == kF32) {
        memory.write(at, values.data(), 4 * values.size());
      } else {
        std::vector<std::uint16_t> halves(values.size());
        std::ranges::transform(values, halves.begin(), [](float x) { return lang::to_bf16(x); });
        memory.write(at, halves.data(), 2 * halves.size());
      }
      return {at, n, lying};
    } catch (const OutOfMemory&) {
      continue;  // the next smaller one
    }
  }
  return {};
}

Bench::Bench(const Stream& stream, const PlainLoops& loops, GradientOnDevice gradient,
             const bench::RoundLimits& limits)
    : stream_(stream), loops_(loops), gradient_(gradient), limits_(limits) {}

void Bench::require(std::int64_t num_elems) const {
  if (num_elems <= gradient_.num_elems) return;
  throw OutOfMemory(fmt::format("the device has no memory for a gradient of {}", num_elems));
}

rt::GpuSessionOptions Bench::session_options(const std::vector<std::int64_t>& sizes) const {
  rt::GpuSessionOptions options;
  options.seed = 7;
  options.dtype = gradient_.lying.dtype;
  for (const std::int64_t n : sizes) {
    options.tensors.push_back({n, 1, static_cast<std::uint32_t>(options.tensors.size()), 0});
  }
  return options;
}

void Bench::warm_up(double seconds) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) (void)plain_ms({1, 1 << 24, 1 << 24});
}

bench::Rounds Bench::take_turns(const std::vector<const Graph*>& graphs) const {
  std::vector<Turn> turns;
  turns.reserve(graphs.size());
  for (const Graph* graph : graphs) turns.emplace_back(*graph, stream_);
  std::vector<bench::Contestant> contestants;
  contestants.reserve(turns.size());
  for (Turn& turn : turns) contestants.emplace_back([&turn] { return turn.run(); });
  return bench::take_turns(contestants, limits_);
}

double Bench::plain_ms(const Traffic& traffic) const {
  Memory memory(stream_.device());
  const std::vector<Graph> ways = loops_.capture(traffic, memory);
  std::vector<const Graph*> graphs;
  for (const Graph& way : ways) graphs.push_back(&way);
  return std::ranges::min(take_turns(graphs).medians);
}

std::vector<CallTimes> Bench::measure(const std::shared_ptr<const rt::GpuProgram>& program,
                                      const Case& wanted) const {
  require(wanted.num_elems);
  rt::GpuSessionOptions options = session_options({wanted.num_elems});
  options.parameters = wanted.settings;
  options.largest_parameters = wanted.settings;
  Calls calls(program, options, gradient_, stream_);
  std::vector<CallTimes> measured;
  for (const auto& [call, cost] : wanted.calls) {
    CallTimes times;
    times.call = call;
    calls.encode();
    times.payload_bytes = calls.check();
    const std::int64_t excess = calls.payload_bound() - times.payload_bytes;
    times.floor = without_excess(cost.floor, call, excess);
    times.moved = without_excess(cost.moved, call, excess);
    times.num_launches = calls.num_launches(call);
    Memory memory(stream_.device());
    const Graph own = calls.capture(call);
    const std::vector<Graph> ways = loops_.capture(times.floor, memory);
    std::vector<const Graph*> graphs = {&own};
    for (const Graph& way : ways) graphs.push_back(&way);
    const bench::Rounds rounds = take_turns(graphs);
    calls.check();
    times.ms = rounds.medians[0];
    times.floor_ms = std::ranges::min(std::span(rounds.medians).subspan(1));
    times.rounds = rounds.count;
    measured.push_back(times);
  }
  return measured;
}

std::vector<ListTimes> Bench::measure_list(const std::shared_ptr<const rt::GpuProgram>& program,
                                           const std::vector<std::int64_t>& sizes) const {
  std::int64_t total = 0;
  for (const std::int64_t n : sizes) total += n;
  require(total);
  Calls list(program, session_options(sizes), gradient_, stream_);
  Calls one(program, session_options({total}), gradient_, stream_);
  std::vector<ListTimes> measured;
  for (const std::string call : {"encode", "decode"}) {
    const Graph of_list = list.capture(call), of_one = one.capture(call);
    const bench::Rounds rounds = take_turns({&of_list, &of_one});
    list.check();
    one.check();
    measured.push_back({call, rounds.medians[0], rounds.medians[1]});
  }
  return measured;
}

}  // namespace cinch::testing
