#include "compiler/driver/codecs/program_survey.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "compiler/driver/codecs/codec.h"
#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/ranks/rank_group.h"

namespace cinch::driver {

namespace {

using SurveyClock = std::chrono::steady_clock;

constexpr std::size_t kMostSurveyCalls = 9;

double seconds_between(SurveyClock::time_point from, SurveyClock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

struct SurveyCall {
  std::vector<float> decoded;
  std::int64_t payload_bytes = 0;
  double encode_seconds = 0, decode_seconds = 0;
};

// Runs one step of one tensor in a session of its own.
class SurveySession {
 public:
  SurveySession(const CodecFactory& factory, const SurveyTensor& tensor)
      : view_(view_of(tensor.array)) {
    const Shape shape = shape_of(tensor.array, factory.info().is_matrix);
    if (factory.info().has_sync) {
      group_ = std::make_unique<RankGroup>(factory, shape, 1);
    } else {
      codec_ = factory.open(shape, 0, 1);
    }
  }

  SurveyCall take(std::uint64_t step) {
    SurveyCall call;
    const auto start = SurveyClock::now();
    if (group_) {
      call.decoded = std::move(group_->sync({&view_, 1}, step).front());
      call.payload_bytes = static_cast<std::int64_t>(group_->sent_bytes());
      call.encode_seconds = seconds_between(start, SurveyClock::now());
      return call;
    }
    const std::vector<std::uint8_t> payload = codec_->encode(view_, step);
    const auto between = SurveyClock::now();
    call.decoded.resize(static_cast<std::size_t>(view_.num_elems));
    codec_->decode(payload, call.decoded, step);
    call.payload_bytes = static_cast<std::int64_t>(payload.size());
    call.encode_seconds = seconds_between(start, between);
    call.decode_seconds = seconds_between(between, SurveyClock::now());
    return call;
  }

 private:
  rt::ConstTensorView view_;
  std::unique_ptr<RankGroup> group_;
  std::unique_ptr<Codec> codec_;
};

double middle_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Times later steps of a warm session, until there are enough or time is up. A failing check of the
// program may end them early.
void time_tensor(SurveySession& session, SurveyCall& first, double seconds) {
  std::vector<double> encode, decode;
  const auto start = SurveyClock::now();
  try {
    for (std::uint64_t step = 1; step <= kMostSurveyCalls; ++step) {
      const SurveyCall call = session.take(step);
      encode.push_back(call.encode_seconds);
      decode.push_back(call.decode_seconds);
      if (seconds_between(start, SurveyClock::now()) > seconds) break;
    }
  } catch (const CommandError&) {
    if (encode.empty()) return;
  }
  first.encode_seconds = middle_of(encode);
  first.decode_seconds = middle_of(decode);
}

// ‖x - y‖² and ‖x‖², over all tensors.
struct SquaredSums {
  double difference = 0, original = 0;

  void add(const std::vector<float>& x, const std::vector<float>& y) {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double a = x[i], d = a - y[i];
      difference += d * d;
      original += a * a;
    }
  }
};

}  // namespace

SurveyFigures try_program(const std::string& program, const SurveyOptions& options,
                          const std::vector<SurveyTensor>& tensors) {
  RunOptions run;
  run.program.program = program;
  run.execution = options.execution;
  run.seed = options.seed;
  const CodecFactory factory(run);
  const bool is_matrix = factory.info().is_matrix;
  if (is_matrix && std::ranges::none_of(tensors, &SurveyTensor::is_matrix)) {
    throw CommandError(ExitCode::AtFault, "takes matrices; no file has two dimensions");
  }
  SurveyFigures figures;
  figures.program = factory.loaded();
  if (figures.program->info().carrier.kind == rt::CarrierKind::Program) {
    run.program.is_carrier = true;
    figures.carrier = CodecFactory(run).loaded();
  }
  SquaredSums sums;
  for (const SurveyTensor& tensor : tensors) {
    if (is_matrix && !tensor.is_matrix()) {
      ++figures.num_exact;
      figures.payload_bytes += 4 * tensor.array.num_elems();
      sums.add(tensor.values, tensor.values);
      continue;
    }
    SurveySession session(factory, tensor);
    SurveyCall call = session.take(0);
    sums.add(tensor.values, call.decoded);
    figures.payload_bytes += call.payload_bytes;
    time_tensor(session, call, options.seconds / static_cast<double>(tensors.size()));
    figures.encode_seconds += call.encode_seconds;
    figures.decode_seconds += call.decode_seconds;
  }
  figures.relative_error = std::sqrt(sums.difference) / std::sqrt(sums.original);
  return figures;
}

}  // namespace cinch::driver
