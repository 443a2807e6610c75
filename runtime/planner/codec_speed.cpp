// Bodies of codec_speed.h.
#include "runtime/planner/codec_speed.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <functional>
#include <optional>
#include <thread>

#include "runtime/payload/payload.h"
#include "runtime/session/parameters.h"
#include "runtime/session/session_list.h"
#include "runtime/session/summed_arrays.h"
#include "runtime/session/tensor_convert.h"
#include "runtime/session/tensor_facts.h"

namespace cinch::rt {
namespace {

using Clock = std::chrono::steady_clock;

// Larger than caches; a session for each piece of it is not too much memory.
constexpr std::int64_t kMostElems = 4 << 20;
constexpr std::size_t kMostPieces = 64;
constexpr std::array<std::int64_t, 3> kPieceElems = {1024, 16384, 262144};
// Of dense: copy, convert, add, divide.
enum Call : std::uint8_t { kEncode, kDecode, kDecodeAdd, kFinish, kClear, kSpread, kJoin };
constexpr std::size_t kCalls = 7;

using Times = std::array<double, kCalls>;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// One pass over all pieces; adds the seconds of each call.
using Pass = std::function<Status(Times&)>;

struct Timing {
  Times seconds{};  // of a call for one piece
};

Result<Timing> time_passes(const Pass& pass, std::size_t num_pieces, double seconds) {
  Times warm{};
  if (Status status = pass(warm); !status) return tl::unexpected<Error>(status.error());
  std::array<std::vector<double>, kCalls> passes;
  const Clock::time_point end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                                   std::chrono::duration<double>(seconds));
  do {
    Times times{};
    if (Status status = pass(times); !status) return tl::unexpected<Error>(status.error());
    for (std::size_t c = 0; c < kCalls; ++c) passes[c].push_back(times[c]);
  } while (Clock::now() < end);
  Timing timing;
  for (std::size_t c = 0; c < kCalls; ++c) {
    timing.seconds[c] = median(passes[c]) / static_cast<double>(num_pieces);
  }
  return timing;
}

template <typename Call>
Status timed(double& seconds, const Call& call) {
  const Clock::time_point begin = Clock::now();
  Status status = call();
  seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  return status;
}

// Sizes up to the whole, in ascending order.
std::vector<std::int64_t> sizes_of(std::int64_t elems, bool can_cut) {
  std::vector<std::int64_t> sizes;
  for (const std::int64_t size : kPieceElems) {
    if (can_cut && size < elems) sizes.push_back(size);
  }
  sizes.push_back(elems);
  return sizes;
}

std::size_t num_pieces(std::int64_t elems, std::int64_t size) {
  return size == 0
             ? 1
             : std::clamp<std::size_t>(static_cast<std::size_t>(elems / size), 1, kMostPieces);
}

struct Subject {
  const std::shared_ptr<const LoadedProgram>& program;
  ConstTensorView gradient;
  std::int64_t rows, cols;  // of the whole that is measured
  const SpeedOptions& options;
};

// Pieces of one size, each with a session; called one by one, as tasks of a plan call them.
class CodecPieces {
 public:
  CodecPieces(const Subject& subject, std::int64_t size)
      : subject_(subject), size_(size), sums_(static_cast<std::size_t>(size) * count()) {}

  std::size_t count() const { return num_pieces(subject_.rows * subject_.cols, size_); }

  Status open() {
    const bool is_whole = size_ == subject_.rows * subject_.cols;
    std::vector<ListTensor> tensors;
    tensors.reserve(count());
    for (std::uint32_t p = 0; p < count(); ++p) {
      tensors.push_back({is_whole ? subject_.rows : size_, is_whole ? subject_.cols : 1, 0, p});
    }
    SessionOptions common;
    common.threads = subject_.options.threads;
    common.world = subject_.options.world;
    auto opened = SessionList::open(subject_.program, common, tensors);
    if (!opened) return tl::unexpected<Error>(opened.error().error);
    list_ = std::make_unique<SessionList>(std::move(*opened));
    for (std::size_t p = 0; p < count(); ++p) {
      const auto bound = (*list_)[p].payload_bound(subject_.options.step);
      if (!bound) return tl::unexpected<Error>(bound.error());
      rooms_.emplace_back(static_cast<std::size_t>(*bound));
      used_.emplace_back();
    }
    return open_summed(tensors[0]);
  }

  Status pass(Times& times) {
    for (std::size_t p = 0; p < count(); ++p) {
      if (Status status = call_all(p, times); !status) return status;
    }
    return Ok{};
  }

  double used_share() const {
    double used = 0, bound = 0;
    for (std::size_t p = 0; p < count(); ++p) {
      used += static_cast<double>(used_[p].size());
      bound += static_cast<double>(rooms_[p].size());
    }
    return bound > 0 ? used / bound : 1;
  }

 private:
  static Status plain(const ListStatus& status) {
    return status ? Status(Ok{}) : Status(tl::unexpected<Error>(status.error().error));
  }

  Status call_all(std::size_t p, Times& times) {
    const ListCall call{subject_.options.step, {&p, 1}};
    const auto bytes = static_cast<std::size_t>(element_bytes(subject_.gradient.dtype));
    const auto first = p * static_cast<std::size_t>(size_);
    const ConstTensorView gradient{
        static_cast<const std::uint8_t*>(subject_.gradient.data) + first * bytes,
        subject_.gradient.dtype, size_};
    const std::span<float> sum = std::span(sums_).subspan(first, static_cast<std::size_t>(size_));
    const TensorView update(sum);
    Status status = timed(times[kEncode], [&] {
      PayloadSlot slot{rooms_[p], {}};
      const Status encoded = plain(list_->encode(call, {&gradient, 1}, {&slot, 1}));
      used_[p] = slot.bytes;
      return encoded;
    });
    if (status) {
      status = timed(times[kDecode],
                     [&] { return plain(list_->decode(call, {&used_[p], 1}, {&update, 1})); });
    }
    if (status) {
      status = timed(times[kDecodeAdd],
                     [&] { return plain(list_->decode_add(call, {&used_[p], 1}, {&sum, 1})); });
    }
    if (status) {
      status = timed(times[kFinish],
                     [&] { return plain(list_->finish(call, {&sum, 1}, {&update, 1})); });
    }
    if (status && summed_) status = call_summed(p, times);
    return status;
  }

  // Its elements to arrays that a transport adds, and back.
  Status call_summed(std::size_t p, Times& times) {
    Status status =
        timed(times[kSpread], [&] { return summed_->spread(used_[p], layout_, arrays_); });
    if (status) {
      status = timed(times[kJoin], [&] {
        return summed_->join(const_arrays_, layout_, std::span(rooms_[p]).first(used_[p].size()));
      });
    }
    return status;
  }

  // Programs whose payloads transports can add.
  Status open_summed(const ListTensor& tensor) {
    const ProgramInfo& info = subject_.program->info();
    summed_ = SummedArrays::of(info, subject_.options.world);
    if (!summed_) return Ok{};
    const ParameterValues parameters(info);
    const TensorFacts facts = facts_for(info, {tensor.rows, tensor.cols, subject_.options.world});
    auto layout = payload_bound_layout(info, host_env(facts, parameters, subject_.options.step));
    if (!layout) return tl::unexpected<Error>(layout.error());
    layout_ = std::move(*layout);
    for (const SumArray& array : summed_->arrays(layout_)) {
      array_memory_.emplace_back(static_cast<std::size_t>(array.size_bytes()));
    }
    for (auto& memory : array_memory_) {
      arrays_.emplace_back(memory);
      const_arrays_.emplace_back(memory);
    }
    return Ok{};
  }

  const Subject& subject_;
  std::int64_t size_;
  std::vector<float> sums_;
  std::unique_ptr<SessionList> list_;
  std::vector<std::vector<std::uint8_t>> rooms_;
  std::vector<PayloadBytes> used_;
  std::optional<SummedArrays> summed_;
  PayloadLayout layout_;
  std::vector<std::vector<std::uint8_t>> array_memory_;
  std::vector<std::span<std::uint8_t>> arrays_;
  std::vector<std::span<const std::uint8_t>> const_arrays_;
};

// The same for plain f32.
class DensePieces {
 public:
  DensePieces(std::int64_t elems, std::int64_t size, std::uint32_t threads)
      : size_(static_cast<std::size_t>(size)),
        count_(num_pieces(elems, size)),
        from_(size_ * count_),
        to_(size_ * count_),
        runner_(threads) {}

  std::size_t count() const { return count_; }

  Status pass(Times& times) {
    for (std::size_t p = 0; p < count_; ++p) {
      const std::span<float> from = std::span(from_).subspan(p * size_, size_);
      const std::span<float> to = std::span(to_).subspan(p * size_, size_);
      const TensorView update(to);
      (void)timed(times[kClear], [&] { return std::ranges::fill(to, 0.0f), Status(Ok{}); });
      (void)timed(times[kEncode], [&] {
        if (!to.empty()) std::memcpy(to.data(), from.data(), from.size_bytes());
        return Status(Ok{});
      });
      Status status =
          timed(times[kDecode], [&] { return convert_from_f32(from, update, runner_, nullptr); });
      if (status)
        status = timed(times[kDecodeAdd], [&] { return add_f32(to, from, runner_, nullptr); });
      if (status)
        status = timed(times[kFinish], [&] { return divide_f32(to, 4, to, runner_, nullptr); });
      if (!status) return status;
    }
    return Ok{};
  }

 private:
  std::size_t size_, count_;
  std::vector<float> from_, to_;
  TaskRunner runner_;
};

struct Figures {
  std::array<std::vector<Sample>, kCalls> samples;
  double used_share = 1;
};

// Measures in `copies` threads at once and takes the mean of them.
Result<Figures> measure_copies(std::uint32_t copies,
                               const std::function<Result<Figures>()>& measure) {
  std::vector<Result<Figures>> all(copies, Figures());
  std::vector<std::thread> threads;
  for (std::uint32_t c = 1; c < copies; ++c) {
    threads.emplace_back([&, c] { all[c] = guarded(measure); });
  }
  all[0] = guarded(measure);
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : all) {
    if (!each) return each;
  }
  Figures mean = *all[0];
  for (std::size_t call = 0; call < kCalls; ++call) {
    for (std::size_t i = 0; i < mean.samples[call].size(); ++i) {
      double sum = 0;
      for (const auto& each : all) sum += each->samples[call][i].seconds;
      mean.samples[call][i].seconds = sum / copies;
    }
  }
  return mean;
}

void add(Figures& figures, std::int64_t size, const Timing& timing) {
  for (std::size_t c = 0; c < kCalls; ++c) {
    figures.samples[c].push_back({static_cast<double>(size), timing.seconds[c]});
  }
}

CodecSpeed speed_of(const Figures& figures) {
  const auto& samples = figures.samples;
  return {{samples[kEncode]}, {samples[kDecode]}, {samples[kDecodeAdd]}, {samples[kFinish]},
          {samples[kSpread]}, {samples[kJoin]},   figures.used_share};
}

}  // namespace

Result<CodecSpeed> measure_codec(const std::shared_ptr<const LoadedProgram>& program, bool can_cut,
                                 ConstTensorView gradient, std::int64_t rows, std::int64_t cols,
                                 const SpeedOptions& options) {
  Subject subject{program, gradient, rows, cols, options};
  if (can_cut) subject.rows = std::min(rows * cols, kMostElems);
  if (can_cut) subject.cols = 1;
  const std::vector<std::int64_t> sizes = sizes_of(subject.rows * subject.cols, can_cut);
  const auto measure = [&]() -> Result<Figures> {
    Figures figures;
    for (const std::int64_t size : sizes) {
      CodecPieces pieces(subject, size);
      if (Status status = pieces.open(); !status) return tl::unexpected<Error>(status.error());
      const auto timing =
          time_passes([&](Times& times) { return pieces.pass(times); }, pieces.count(),
                      options.seconds / static_cast<double>(sizes.size()));
      if (!timing) return tl::unexpected<Error>(timing.error());
      add(figures, size, *timing);
      figures.used_share = pieces.used_share();
    }
    return figures;
  };
  const auto figures = measure_copies(options.copies, measure);
  if (!figures) return tl::unexpected<Error>(figures.error());
  return speed_of(*figures);
}

Status measure_dense(std::int64_t elems, const SpeedOptions& options, CostInputs& to) {
  const std::int64_t most = std::clamp<std::int64_t>(elems, 1, kMostElems);
  const std::vector<std::int64_t> sizes = sizes_of(most, true);
  const auto measure = [&]() -> Result<Figures> {
    Figures figures;
    for (const std::int64_t size : sizes) {
      DensePieces pieces(most, size, options.threads);
      const auto timing =
          time_passes([&](Times& times) { return pieces.pass(times); }, pieces.count(),
                      options.seconds / static_cast<double>(sizes.size()));
      if (!timing) return tl::unexpected<Error>(timing.error());
      add(figures, size, *timing);
    }
    return figures;
  };
  const auto figures = measure_copies(options.copies, measure);
  if (!figures) return tl::unexpected<Error>(figures.error());
  to.dense = speed_of(*figures);
  to.clear = {figures->samples[kClear]};
  return Ok{};
}

}  // namespace cinch::rt
