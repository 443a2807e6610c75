#include "runtime/autoplan/auto_plan.h"
#include "runtime/core/numbers/number_range.h"

#include <chrono>
#include <limits>
#include <map>
#include <thread>

#include "runtime/call/tensor_facts.h"
#include "runtime/collective/loopback.h"
#include "runtime/device/compute_device.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {
namespace {

using Clock = std::chrono::steady_clock;

// Larger than caches, yet a session for each piece does not take too much memory.
constexpr std::int64_t kMostElems = 16 << 20;
constexpr std::int64_t kMostPieces = 64;
constexpr std::array<std::int64_t, 3> kPieceElems = {1024, 16384, 262144};

// The parts of a `sync` are kinds of their own, by number.
using Kind = std::pair<TaskKind, std::uint32_t>;
// Seconds of a task of each kind; for encoding, of a rank's own gradient.
using KindTimes = std::map<Kind, double>;

KindTimes mean_times(const RankPlan& plan, const TaskTimes& times) {
  std::map<Kind, std::pair<double, double>> sums;  // seconds, tasks
  for (std::size_t t = 0; t < plan.tasks.size(); ++t) {
    const Task& task = plan.tasks[t];
    if (task.lane() == Lane::Network) continue;
    if (task.kind == TaskKind::Encode && task.from != Value::Gradient) continue;
    auto& [seconds, number] = sums[{task.kind, task.part}];
    seconds += times.tasks[t].end - times.tasks[t].begin;
    number += 1;
  }
  KindTimes means;
  for (const auto& [kind, sum] : sums) means[kind] = sum.first / sum.second;
  return means;
}

// The measured tensor.
struct Subject {
  PlanTensor tensor;
  ConstTensorView gradient;
  const SpeedOptions& options;

  bool can_cut() const { return tensor.codec == kDense || codecs(1)[tensor.codec].can_cut; }
  std::vector<CodecFacts> codecs(std::uint32_t world) const {
    std::vector<CodecFacts> facts;
    facts.reserve(options.session.programs.size());
    for (const auto& program : options.session.programs) {
      facts.push_back(codec_facts(image_of(program), world, options.step));
    }
    return facts;
  }
};

// A plan of `world` ranks in which the subject is cut into pieces of this size.
Result<Plan> plan_in_pieces(const Subject& subject, std::string_view name, std::int64_t size,
                            std::uint32_t world, LengthPolicy lengths) {
  PlanRequest request{.plan = std::string(name),
                      .world = world,
                      .tensors = {subject.tensor},
                      .codecs = subject.codecs(world),
                      .lengths = lengths};
  if (subject.can_cut() && size > 0) {
    const std::int64_t pieces =
        std::clamp<std::int64_t>(subject.tensor.num_elems() / size, 1, kMostPieces);
    request.tensors[0].rows = pieces * size;
    request.tensors[0].cols = 1;
    request.piece_bytes = 4 * static_cast<std::uint64_t>(size);
  } else {
    request.piece_bytes =
        4 * static_cast<std::uint64_t>(std::max<std::int64_t>(1, subject.tensor.num_elems()));
  }
  return build_plan(request);
}

// Runs steps of one rank of a plan, again and again.
class Steps {
 public:
  Steps(const Subject& subject, std::shared_ptr<const Plan> plan, Transport& transport)
      : subject_(subject),
        plan_(std::move(plan)),
        transport_(transport),
        output_(static_cast<std::size_t>(plan_->tensors[0].num_elems())),
        update_(output_) {
    gradient_ = subject.gradient;
    gradient_.num_elems = plan_->tensors[0].num_elems();
  }

  Status open() {
    SyncOptions options = subject_.options.session;
    options.plan = plan_;
    options.machine_ranks = 0;  // the ranks that measure are few
    if (options.device) options.device->has_tensors = false;
    session_ = TRY(SyncSession::open(options, transport_));
    return Ok{};
  }

  Status take() {
    CINCH_TRY(session_->make_up_inputs({&gradient_, 1}));
    return session_->step({&gradient_, 1}, {&update_, 1}, subject_.options.step);
  }

  const TaskTimes& times() const { return session_->times(); }

 private:
  const Subject& subject_;
  std::shared_ptr<const Plan> plan_;
  Transport& transport_;
  std::vector<float> output_;
  TensorView update_;
  ConstTensorView gradient_;
  std::unique_ptr<SyncSession> session_;
};

// By kind, the median over all steps except the first.
Result<KindTimes> time_plan(const Subject& subject, const std::shared_ptr<const Plan>& plan,
                            double seconds) {
  LoopbackWorld alone(1);
  const auto transport = alone.transport(0);
  Steps steps(subject, plan, *transport);
  CINCH_TRY(steps.open());
  CINCH_TRY(steps.take());
  std::map<Kind, std::vector<double>> times;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  do {
    CINCH_TRY(steps.take());
    for (const auto& [kind, mean] : mean_times(plan->ranks[0], steps.times())) {
      times[kind].push_back(mean);
    }
  } while (Clock::now() < end);
  KindTimes medians;
  for (const auto& [kind, of_steps] : times) medians[kind] = median(of_steps);
  return medians;
}

// Runs `copies` threads at once and returns the mean of their times.
Result<KindTimes> time_copies(const Subject& subject, const std::shared_ptr<const Plan>& plan,
                              double seconds) {
  const std::uint32_t copies = subject.options.copies;
  std::vector<Result<KindTimes>> all(copies, KindTimes());
  const auto measure = [&] { return time_plan(subject, plan, seconds); };
  std::vector<std::thread> threads;
  for (std::uint32_t c = 1; c < copies; ++c) {
    threads.emplace_back([&, c] { all[c] = guarded(measure); });
  }
  all[0] = guarded(measure);
  for (std::thread& thread : threads) thread.join();
  KindTimes mean;
  for (const auto& each : all) {
    if (!each) return each;
    for (const auto& [kind, time] : *each) mean[kind] += time / copies;
  }
  return mean;
}

// The share of a payload's bound that is used: what two ranks send each other if lengths are
// exchanged first.
Result<double> used_share(const Subject& subject, std::int64_t size) {
  auto built = TRY(plan_in_pieces(subject, "allgather", size, 2, LengthPolicy::Exchanged));
  const auto plan = std::make_shared<const Plan>(std::move(built));
  LoopbackWorld both(2);
  std::array<Result<double>, 2> shares;
  const auto measure = [&](std::uint32_t rank) -> Result<double> {
    const auto transport = both.transport(rank);
    Steps steps(subject, plan, *transport);
    CINCH_TRY(steps.open());
    CINCH_TRY(steps.take());
    const RankPlan& own = plan->ranks[rank];
    double used = 0, room = 0;
    for (std::size_t t = 0; t < own.tasks.size(); ++t) {
      if (!own.tasks[t].is_sized) continue;
      used += static_cast<double>(steps.times().tasks[t].sent_bytes);
      room += static_cast<double>(own.slots[own.tasks[t].reads[0]].capacity);
    }
    return room > 0 ? used / room : 1;
  };
  std::thread other([&] { shares[1] = guarded([&] { return measure(1); }); });
  shares[0] = guarded([&] { return measure(0); });
  other.join();
  return shares[0];
}

// Samples by kind and size.
Result<std::map<Kind, CostCurve>> measure_kinds(const Subject& subject) {
  const std::int64_t elems = subject.tensor.num_elems();
  std::vector<std::int64_t> sizes;  // up to the whole, in ascending order
  for (const std::int64_t size : kPieceElems) {
    if (subject.can_cut() && size < elems) sizes.push_back(size);
  }
  sizes.push_back(elems);
  // A program that does not carry its own sums only encodes gradients.
  const bool is_carried =
      subject.tensor.codec != kDense &&
      subject.codecs(1)[subject.tensor.codec].carrier.kind != CarrierKind::Itself;
  std::vector<std::string_view> names = {is_carried ? "allgather" : "two_shot"};
  const bool has_sums =
      subject.tensor.codec != kDense && subject.codecs(1)[subject.tensor.codec].sum_arrays;
  if (has_sums) names.emplace_back("allreduce");
  const double seconds = subject.options.seconds / static_cast<double>(sizes.size() * names.size());
  std::map<Kind, CostCurve> curves;
  for (const std::int64_t size : sizes) {
    KindTimes times;
    for (const std::string_view name : names) {
      auto plan = TRY(plan_in_pieces(subject, name, size, 1, LengthPolicy::Padded));
      const auto found =
          TRY(time_copies(subject, std::make_shared<const Plan>(std::move(plan)), seconds));
      times.insert(found.begin(), found.end());  // what the first plan has goes first
    }
    for (const auto& [kind, time] : times) {
      curves[kind].samples.push_back({static_cast<double>(size), time});
    }
  }
  return curves;
}

Result<CodecSpeed> speed_of(const Subject& subject, CostCurve* clear) {
  auto curves = TRY(measure_kinds(subject));
  const auto of = [&](TaskKind kind) { return std::move(curves[{kind, 0}]); };
  CodecSpeed speed{of(TaskKind::Encode),
                   of(TaskKind::Decode),
                   of(TaskKind::DecodeAdd),
                   of(TaskKind::Finish),
                   of(TaskKind::Spread),
                   of(TaskKind::Join),
                   1,
                   {}};
  for (auto& [kind, curve] : curves) {
    if (kind.first == TaskKind::Part) speed.parts.push_back(std::move(curve));
  }
  if (clear != nullptr) *clear = of(TaskKind::Clear);
  return speed;
}

}  // namespace

Result<CodecSpeed> measure_codec(std::uint32_t codec, ConstTensorView gradient, std::int64_t rows,
                                 std::int64_t cols, const SpeedOptions& options) {
  Subject subject{{"sample", rows, cols, codec}, gradient, options};
  if (subject.can_cut()) {
    subject.tensor.rows = std::min(rows * cols, kMostElems);
    subject.tensor.cols = 1;
  }
  auto speed = speed_of(subject, nullptr);
  if (!speed || subject.codecs(1)[codec].has_fixed_size) return speed;
  speed->used_share = TRY(used_share(subject, subject.tensor.num_elems()));
  return speed;
}

Status measure_copies(const SyncDevice& device, std::int64_t elems, CpuSpeeds& to) {
  constexpr std::array<std::int64_t, 3> kCopied = {1 << 14, 1 << 18, 1 << 22};
  constexpr int kTimes = 5;
  const auto queue = TRY(open_gpu_queue(device));
  for (const std::int64_t size : kCopied) {
    if (size > elems && size > kCopied.front()) break;
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(float);
    AlignedBuffer host;
    CINCH_TRY(host.resize(static_cast<std::int64_t>(bytes)));
    const auto turn = take_turn(*queue);
    const PinnedMemory pinned(queue->gpu()->device, host.bytes());
    const std::vector<std::size_t> sizes = {bytes};
    const MemoryPieces there = TRY(queue->allocate(sizes));
    // The first way fills the device's memory.
    for (const bool is_in : {true, false}) {
      double least = std::numeric_limits<double>::infinity();
      for (int i = 0; i < kTimes; ++i) {
        const Clock::time_point begin = Clock::now();
        CINCH_TRY(is_in ? queue->copy_in(there.pieces[0], host.bytes())
                        : queue->copy_out(host.bytes(), there.pieces[0]));
        CINCH_TRY(queue->wait());
        least = std::min(least, std::chrono::duration<double>(Clock::now() - begin).count());
      }
      (is_in ? to.copy_in : to.copy_out).samples.push_back({static_cast<double>(size), least});
    }
  }
  return Ok{};
}

Status measure_dense(std::int64_t elems, const SpeedOptions& options, CostInputs& to) {
  const std::int64_t most = std::clamp<std::int64_t>(elems, 1, kMostElems);
  const std::vector<float> gradient(static_cast<std::size_t>(most));
  const Subject subject{{"sample", most, 1, kDense}, {gradient.data(), kF32, most}, options};
  to.dense = TRY(speed_of(subject, &to.clear));
  return Ok{};
}

}  // namespace cinch::rt
