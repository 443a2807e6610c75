#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>

#include "compiler/driver/codecs/verify_subject.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "runtime/core/numbers/number_range.h"
#include "runtime/session/tensor_convert.h"

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
  first.encode_seconds = median(encode);
  first.decode_seconds = median(decode);
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
  run.makes_up_inputs = true;
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
  const auto add = [&](const std::vector<float>& x, const std::vector<float>& y,
                       std::int64_t payload_bytes, bool is_exact) {
    SquaredSums own;
    own.add(x, y);
    sums.difference += own.difference;
    sums.original += own.original;
    figures.payload_bytes += payload_bytes;
    figures.by_tensor.push_back({payload_bytes, own.difference, own.original, is_exact});
  };
  for (const SurveyTensor& tensor : tensors) {
    if (is_matrix && !tensor.is_matrix()) {
      ++figures.num_exact;
      add(tensor.values, tensor.values, 4 * tensor.array.num_elems(), true);
      continue;
    }
    SurveySession session(factory, tensor);
    SurveyCall call = session.take(0);
    add(tensor.values, call.decoded, call.payload_bytes, false);
    if (options.seconds <= 0) continue;
    time_tensor(session, call, options.seconds / static_cast<double>(tensors.size()));
    figures.encode_seconds += call.encode_seconds;
    figures.decode_seconds += call.decode_seconds;
  }
  figures.relative_error = std::sqrt(sums.difference) / std::sqrt(sums.original);
  return figures;
}

rt::NpyArray read_gradient(const std::string& path, const std::string& dtype) try {
  const std::vector<std::uint8_t> file = value_or_throw(rt::read_npy_bytes(path));
  rt::NpyArray array = value_or_throw(rt::parse_npy(file), path);
  // NumPy has no bfloat16. A user who stored one as uint16 says so; otherwise uint16 is an error.
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (dtype.empty() && text.substr(0, text.find('\n')).find("'<u2'") != std::string_view::npos) {
    throw CommandError(ExitCode::AtFault,
                       path +
                           ": found uint16, expected f32, f16 or bf16; if these are bfloat16, "
                           "say --dtype bf16");
  }
  return array;
} catch (const std::bad_alloc&) {
  throw CommandError(ExitCode::Unavailable, path + ": not enough memory to read it");
}

std::vector<rt::NpyArray> read_gradients(const std::vector<std::string>& paths,
                                         const std::string& dtype) {
  std::vector<rt::NpyArray> arrays;
  for (const std::string& path : paths) {
    arrays.push_back(read_gradient(path, dtype));
    const rt::NpyArray& first = arrays.front();
    if (arrays.back().shape != first.shape || !(arrays.back().dtype == first.dtype)) {
      throw CommandError(ExitCode::AtFault, path + ": differs in shape or type from " + paths[0]);
    }
  }
  return arrays;
}

Shape shape_of(const rt::NpyArray& array, bool is_matrix) {
  const std::int64_t elements = array.num_elems();
  if (!is_matrix || array.shape.empty()) return {elements, 1};
  const std::int64_t rows = array.shape[0];
  std::int64_t cols = 1;
  for (std::size_t i = 1; i < array.shape.size(); ++i) cols *= array.shape[i];
  return {rows, cols};
}

rt::ConstTensorView view_of(const rt::NpyArray& array) {
  return {array.bytes.data(), array.dtype, array.num_elems()};
}

std::vector<float> to_f32(rt::ConstTensorView tensor) {
  std::vector<float> values(static_cast<std::size_t>(tensor.num_elems));
  rt::TaskRunner runner(1);
  value_or_throw(rt::convert_to_f32(tensor, values, runner, nullptr));
  return values;
}

rt::NpyArray repeat_to(const rt::NpyArray& array, std::int64_t size_bytes) {
  const auto bytes = static_cast<std::int64_t>(array.bytes.size());
  if (bytes == 0) return array;
  const std::int64_t times = std::max<std::int64_t>(1, size_bytes / bytes);
  rt::NpyArray repeated{array.dtype, {array.num_elems() * times}, {}};
  repeated.bytes.reserve(static_cast<std::size_t>(bytes * times));
  for (std::int64_t i = 0; i < times; ++i) {
    repeated.bytes.insert(repeated.bytes.end(), array.bytes.begin(), array.bytes.end());
  }
  return repeated;
}

void write_gradient(const std::string& path, std::span<const float> values,
                    std::vector<std::int64_t> shape) {
  rt::NpyArray array{kF32, std::move(shape), {}};
  array.bytes.resize(values.size() * sizeof(float));
  if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  write_file(path, value_or_throw(rt::format_npy(array), path));
}

Distance distance(std::span<const float> x, std::span<const float> y) {
  double xx = 0, yy = 0, xy = 0, dd = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double a = x[i], b = y[i];
    xx += a * a;
    yy += b * b;
    xy += a * b;
    dd += (a - b) * (a - b);
  }
  return {std::sqrt(dd) / std::sqrt(xx), xy / std::sqrt(xx) / std::sqrt(yy)};
}

std::int64_t matrix_columns(std::int64_t elements, std::optional<std::int64_t> asked) {
  if (asked) {
    if (elements % *asked == 0) return *asked;
    throw UsageError("--elements must be a multiple of --columns");
  }
  if (elements == 0) return 1;
  auto columns = static_cast<std::int64_t>(std::sqrt(static_cast<double>(elements)));
  while (elements % columns != 0) --columns;
  return columns;
}

}  // namespace cinch::driver
