// cinch run: encodes and decodes gradients, and reports cost and error.

#include <chrono>
#include <cmath>

#include "compiler/driver/codecs/shown_values.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/report/values.h"
#include "compiler/driver/target.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/core/numbers/number_range.h"

namespace cinch::driver {
namespace {

using Clock = std::chrono::steady_clock;

// The most calls to time besides the first, and the most time to spend on them.
constexpr int kMostTimedCalls = 15;
constexpr double kTimingSeconds = 1.0;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

// Results of the steps (or ranks): the last payload, the output, and what it is compared with.
struct Outcome {
  std::int64_t bound_bytes = 0, payload_bytes = 0;
  std::vector<std::uint8_t> payload;
  std::vector<float> original, decoded;
  std::vector<double> encode_ms, decode_ms;
  std::optional<bool> same_bits;  // do all ranks hold the same update?
};

class Timer {
 public:
  Timer(const Codec& codec, std::vector<double>& to)
      : codec_(codec), to_(to), start_(Clock::now()) {}
  ~Timer() { to_.push_back(codec_.device_ms().value_or(milliseconds_since(start_))); }

 private:
  const Codec& codec_;
  std::vector<double>& to_;
  Clock::time_point start_;
};

void encode_and_decode(Codec& codec, rt::ConstTensorView gradient, std::uint64_t step,
                       Outcome& outcome) {
  outcome.decoded.resize(static_cast<std::size_t>(gradient.num_elems));
  {
    const Timer timer(codec, outcome.encode_ms);
    outcome.payload = codec.encode(gradient, step);
  }
  const Timer timer(codec, outcome.decode_ms);
  codec.decode(outcome.payload, outcome.decoded, step);
}

Outcome run_steps(const CodecFactory& factory, const RunOptions& options,
                  const std::vector<rt::NpyArray>& inputs, Shape shape) {
  Outcome outcome;
  const auto codec = factory.open(shape, options.worker, options.world);
  if (!options.state_in.empty()) codec->load_states(options.state_in);
  Progress progress("steps");
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    encode_and_decode(*codec, view_of(inputs[i]), options.step + i, outcome);
    progress.update(i + 1, inputs.size());
  }
  outcome.bound_bytes = codec->payload_bound(options.step + inputs.size() - 1);
  outcome.payload_bytes = static_cast<std::int64_t>(outcome.payload.size());
  outcome.original = to_f32(view_of(inputs.back()));
  if (!options.state_out.empty()) codec->save_states(options.state_out);
  return outcome;
}

// The mean over ranks, with which the update is compared.
std::vector<float> mean_of(const std::vector<rt::NpyArray>& inputs) {
  std::vector<float> mean = to_f32(view_of(inputs.front()));
  for (const rt::NpyArray& input : std::span(inputs).subspan(1)) {
    const std::vector<float> gradient = to_f32(view_of(input));
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += gradient[i];
  }
  for (float& x : mean) x /= static_cast<float>(inputs.size());
  return mean;
}

void sync_once(RankGroup& group, std::span<const rt::ConstTensorView> gradients, std::uint64_t step,
               Outcome& outcome) {
  std::vector<std::vector<float>> updates;
  {
    const Timer timer(group.codec(0), outcome.encode_ms);
    updates = group.sync(gradients, step);
  }
  outcome.same_bits = all_same_bits(updates) && outcome.same_bits.value_or(true);
  outcome.decoded = std::move(updates.front());
  outcome.payload_bytes = outcome.bound_bytes = static_cast<std::int64_t>(group.sent_bytes());
}

// For programs with a `sync`. Without --ranks the inputs are the steps of a world of one rank.
Outcome run_sync(const CodecFactory& factory, const RunOptions& options,
                 const std::vector<rt::NpyArray>& inputs, Shape shape) {
  Outcome outcome;
  std::vector<rt::ConstTensorView> views;
  views.reserve(inputs.size());
  for (const rt::NpyArray& input : inputs) views.push_back(view_of(input));
  RankGroup group(factory, shape, options.ranks ? static_cast<std::uint32_t>(inputs.size()) : 1);
  if (!options.state_in.empty()) group.codec(0).load_states(options.state_in);
  if (options.ranks) {
    sync_once(group, views, options.step, outcome);
    outcome.original = mean_of(inputs);
    return outcome;
  }
  for (std::size_t i = 0; i < views.size(); ++i) {
    sync_once(group, std::span(views).subspan(i, 1), options.step + i, outcome);
  }
  outcome.original = to_f32(views.back());
  if (!options.state_out.empty()) group.codec(0).save_states(options.state_out);
  return outcome;
}

// The ranks of one step: decodes payloads and adds them in rank order (or adds and then decodes),
// then computes the update.
Outcome run_ranks(const CodecFactory& factory, const RunOptions& options,
                  const std::vector<rt::NpyArray>& inputs, Shape shape) {
  Outcome outcome;
  const auto world = static_cast<std::uint32_t>(inputs.size());
  std::vector<float> sum(static_cast<std::size_t>(shape.num_elems()), 0.0f);
  std::vector<std::vector<std::uint8_t>> payloads;
  Progress progress("ranks");
  std::unique_ptr<Codec> codec;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    codec = factory.open(shape, rank, world);
    encode_and_decode(*codec, view_of(inputs[rank]), options.step, outcome);
    payloads.push_back(outcome.payload);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += outcome.decoded[i];
    progress.update(rank + 1, world);
  }
  if (options.sum_payloads) {
    outcome.payload = factory.sum_payloads(shape, payloads, options.step);
    codec->decode(outcome.payload, sum, options.step);
  }
  codec->finish(sum, options.step);
  outcome.bound_bytes = codec->payload_bound(options.step);
  outcome.payload_bytes = static_cast<std::int64_t>(outcome.payload.size());
  outcome.original = mean_of(inputs);
  outcome.decoded = std::move(sum);
  return outcome;
}

// Runs the next steps until time is up, or until one fails, since a check of the program may fail
// only in some steps.
void time_steps(Codec& codec, const RunOptions& options, const rt::NpyArray& input,
                Outcome& timed) {
  Progress progress("timing");
  const Clock::time_point start = Clock::now();
  for (int i = 1; i <= kMostTimedCalls; ++i) {
    encode_and_decode(codec, view_of(input), options.step + static_cast<std::uint64_t>(i), timed);
    progress.update(static_cast<std::uint64_t>(i), kMostTimedCalls);
    if (milliseconds_since(start) > kTimingSeconds * 1000) return;
  }
}

// Times further calls with a warm codec of their own, so that states and results stay those of the
// steps.
void time_more(const CodecFactory& factory, const RunOptions& options, const rt::NpyArray& input,
               Shape shape, Outcome& outcome) {
  // Times of an interpreter or an emulator mean little: those of the steps suffice.
  if (options.interpret || options.execution.device == "emulated") return;
  // Simultaneous work of ranks is timed as it is.
  if (factory.info().has_sync) return;
  const auto codec = factory.open(shape, options.worker, options.world);
  Outcome warm_up, timed;
  encode_and_decode(*codec, view_of(input), options.step, warm_up);
  try {
    time_steps(*codec, options, input, timed);
  } catch (const CommandError&) {
    if (timed.decode_ms.empty()) return;
    timed.encode_ms.resize(timed.decode_ms.size());
  }
  outcome.encode_ms = timed.encode_ms;
  outcome.decode_ms = timed.decode_ms;
}

nlohmann::json report_of(const CodecFactory& factory, const RunOptions& options,
                         const Outcome& outcome, std::size_t steps) {
  const auto elements = static_cast<double>(outcome.decoded.size());
  const double encode_ms = median(outcome.encode_ms), decode_ms = median(outcome.decode_ms);
  const Distance d = distance(outcome.original, outcome.decoded);
  const auto or_null = [](double value) {
    return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
  };
  const auto gb_per_s = [&](double ms) { return or_null(elements * 4 / ms / 1e6); };
  const auto payload_bytes = static_cast<double>(outcome.payload_bytes);
  nlohmann::json report = {
      {"compressor", factory.info().name},
      {"device", options.interpret ? "interpreter" : options.execution.device},
      {"elements", outcome.decoded.size()},
      {"steps", steps},
      {"payload_bytes", outcome.payload_bytes},
      {"bound_bytes", outcome.bound_bytes},
      {"ratio", elements == 0 ? nlohmann::json() : or_null(4 * elements / payload_bytes)},
      {"relative_error", or_null(d.relative_error)},
      {"cosine", or_null(d.cosine)},
      {"encode_ms", or_null(encode_ms)},
      {"decode_ms", or_null(decode_ms)},
      {"encode_gb_per_s", gb_per_s(encode_ms)},
      {"decode_gb_per_s", gb_per_s(decode_ms)},
      {"fingerprint", factory.fingerprint()},
  };
  if (outcome.same_bits) report["same_bits"] = *outcome.same_bits;
  return report;
}

std::string number_or_dash(const nlohmann::json& value, const char* format) {
  return value.is_null() ? "-" : fmt::format(fmt::runtime(format), value.get<double>());
}

std::string time_or_dash(const nlohmann::json& value) {
  return value.is_null() ? "- ms" : in_milliseconds(value.get<double>());
}

void print_run(const nlohmann::json& r) {
  print_text("{} on {}: {}\n", r["compressor"].get<std::string>(), r["device"].get<std::string>(),
             plainly_counted(r["elements"].get<std::size_t>(), "element"));
  const bool is_protocol = r.contains("same_bits");
  print_text("{}{} (at most {}), ratio {}\n", is_protocol ? "sent by a rank  " : "payload         ",
             plainly_counted(r["payload_bytes"].get<std::size_t>(), "byte"),
             r["bound_bytes"].get<std::int64_t>(), number_or_dash(r["ratio"], "{:.1f}"));
  print_text("relative error  {}, cosine {}\n", number_or_dash(r["relative_error"], "{:.4g}"),
             number_or_dash(r["cosine"], "{:.4f}"));
  if (is_protocol) {
    print_text("synchronised    {}; all ranks hold the same bits: {}\n",
               time_or_dash(r["encode_ms"]), r["same_bits"].get<bool>() ? "yes" : "NO");
    return;
  }
  print_text("encode          {}, {} GB/s\n", time_or_dash(r["encode_ms"]),
             number_or_dash(r["encode_gb_per_s"], "{:.2f}"));
  print_text("decode          {}, {} GB/s\n", time_or_dash(r["decode_ms"]),
             number_or_dash(r["decode_gb_per_s"], "{:.2f}"));
}

nlohmann::json values_json(const std::vector<ShownValue>& values) {
  nlohmann::json list = nlohmann::json::array();
  for (const ShownValue& value : values) {
    nlohmann::json entry = value.array ? value_json(*value.array) : nlohmann::json::object();
    entry["name"] = value.name;
    entry["body"] = value.body;
    list.push_back(std::move(entry));
  }
  return list;
}

void print_values(const std::vector<ShownValue>& values) {
  if (!values.empty()) print_text("\n");
  for (const ShownValue& value : values) {
    const std::string text = value.array ? value_text(*value.array) + "  " + type_text(*value.array)
                                         : "not computed in this step";
    print_text("{} in {} = {}\n", value.name, value.body, text);
  }
}

void check_options(const RunOptions& options) {
  require_distinct_files({{"--payload", options.payload},
                          {"--output", options.output},
                          {"--state-out", options.state_out}});
  service::parse_bindings(options.program.bindings);
  const bool has_states = !options.state_in.empty() || !options.state_out.empty();
  if (options.ranks && has_states) {
    throw UsageError(
        "--ranks cannot read or write states: each rank has its own; leave out "
        "--state-in and --state-out");
  }
  if (options.ranks && options.world != 1 && options.world != options.inputs.size()) {
    throw UsageError("--world {} does not fit {} inputs: with --ranks, each input is a rank",
                     options.world, options.inputs.size());
  }
  if (options.sum_payloads && !options.ranks) {
    throw UsageError("--sum-payloads needs --ranks");
  }
  if (options.worker >= options.world) {
    throw UsageError("--worker must be below --world");
  }
  if (!options.show.empty() && (options.ranks || !options.state_in.empty())) {
    throw UsageError(
        "--show shows one rank from its first states; leave out --ranks and --state-in");
  }
}

void check_protocol(const rt::ProgramInfo& info, const RunOptions& options) {
  if (!info.has_sync) return;
  if (!options.payload.empty() || options.sum_payloads) {
    throw UsageError(info.name + " synchronises by a `sync` body: no payload");
  }
  if (!options.ranks && options.world != 1) {
    throw UsageError(info.name +
                     " synchronises by a `sync` body: its ranks run together, with "
                     "--ranks and an input for each");
  }
}

}  // namespace

ExitCode run_run(const RunOptions& options) {
  check_options(options);
  std::vector<rt::NpyArray> inputs = read_gradients(options.inputs, options.dtype);
  const CodecFactory factory(options);
  if (options.repeat_to_bytes > 0) {
    for (rt::NpyArray& input : inputs) input = repeat_to(input, options.repeat_to_bytes);
  }
  const Shape shape = shape_of(inputs[0], factory.info().is_matrix);
  if (factory.info().is_matrix && inputs[0].shape.size() <= 1 && !output_settings().is_quiet) {
    // A program for matrices sends more of a vector than the vector itself has.
    print_aside("note: {} takes matrices; this gradient is a vector, which counts as one column\n",
                factory.info().name);
  }
  check_protocol(factory.info(), options);
  std::vector<ShownValue> shown;
  if (!options.show.empty())
    shown = ValueViewer(options.program, options.show).values(options, inputs, shape);
  Outcome outcome = factory.info().has_sync ? run_sync(factory, options, inputs, shape)
                    : options.ranks         ? run_ranks(factory, options, inputs, shape)
                                            : run_steps(factory, options, inputs, shape);
  time_more(factory, options, inputs.back(), shape, outcome);
  end_if_interrupted();
  if (!options.payload.empty()) write_file(options.payload, outcome.payload);
  if (!options.output.empty()) {
    write_gradient(options.output, outcome.decoded, inputs.back().shape);
  }
  nlohmann::json report = report_of(factory, options, outcome, options.ranks ? 1 : inputs.size());
  if (!shown.empty()) report["values"] = values_json(shown);
  if (options.json) {
    print_result(report);
  } else {
    print_run(report);
    print_values(shown);
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
