#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/ir/ops.h"
#include "compiler/verify/laws.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/core/numbers/scalar_eval.h"
#include "runtime/core/sizes/host_expr.h"
#include "runtime/payload/payload.h"

namespace cinch::verify {
static const sema::Claim* claim_of(const sema::CheckedProgram& program, sema::ClaimKind kind) {
  const auto found = std::ranges::find(program.claims, kind, &sema::Claim::kind);
  return found == program.claims.end() ? nullptr : &*found;
}

const sema::Claim* Subject::find_claim(sema::ClaimKind kind) const {
  return claim_of(*checked, kind);
}

const sema::Claim* Subject::find_claim_of_sums(sema::ClaimKind kind) const {
  return claim_of(carrier != nullptr ? *carrier : *checked, kind);
}

TensorRequest Trial::request(const Shape& shape) const {
  const TensorRequest request{shape, seed, 0, 1, end};
  request.require_time();
  return request;
}

Finding& Trial::begin(std::string law) const {
  *finding = Finding{.law = std::move(law)};
  return *finding;
}

std::vector<Input> Trial::inputs(std::span<const Shape> shapes) const {
  std::vector<Input> all = made_up_inputs(shapes);
  all.insert(all.end(), more_inputs.begin(), more_inputs.end());
  return all;
}

std::vector<Input> Trial::usual_inputs() const {
  const bool is_matrix = subject.info().is_matrix;
  const std::array<Shape, 2> shapes =
      is_matrix ? std::array<Shape, 2>{{{40, 25}, {7, 3}}} : std::array<Shape, 2>{{{1000}, {7}}};
  return inputs(shapes);
}

rt::Result<double> Trial::claimed(HostExprId number, const Shape& shape, bool is_of_sums) const {
  const sema::CheckedProgram* carrier = is_of_sums ? subject.carrier : nullptr;
  const rt::ProgramInfo& info = carrier != nullptr ? carrier->info : subject.info();
  const rt::ParameterValues parameters(info);
  const auto value = TRY(info.exprs->eval(number, env_of(shape, 1, parameters)));
  return value.to_double();
}

bool Sweep::goes_on() {
  if (done_ == planned_ || (done_ > 0 && !trial_.has_time())) return false;
  ++done_;
  return true;
}

std::string Sweep::cut(const char* of_what) const {
  if (done_ == planned_) return "";
  return fmt::format("{} of {} {}", done_, planned_, of_what);
}

std::string Sweep::inputs() const {
  return fmt::format("{} input{}", done_, done_ == 1 ? "" : "s");
}

Counterexample shown_by(const Trial& trial, std::vector<Input> steps, std::string shows) {
  return {std::move(steps), {}, false, trial.seed, 0, {""}, std::move(shows)};
}

Counterexample shown_by_ranks(const Trial& trial, std::vector<Input> inputs, std::string shows,
                              std::string plan) {
  Counterexample shown = shown_by(trial, std::move(inputs), std::move(shows));
  shown.are_ranks = true;
  shown.plan = std::move(plan);
  return shown;
}

Finding failed_call(const Trial& trial, const Input& input, const rt::Error& error) {
  return {.law = trial.finding->law,
          .holds = false,
          .figure = 1,
          .detail = describe(input) + ": " + error.message,
          .counterexample = shown_by(trial, {input}, "the call fails: " + error.message)};
}

rt::Result<std::vector<float>> round_trip_of(Tensor& tensor, std::span<const float> gradient,
                                             std::uint64_t step) {
  const auto payload = TRY(tensor.encode(gradient, step));
  std::vector<float> out(gradient.size());
  CINCH_TRY(tensor.decode(payload, out, step));
  return out;
}

rt::Result<std::vector<float>> round_trip_of(const Target& target, const TensorRequest& request,
                                             std::span<const float> gradient) {
  auto tensor = TRY(target.open(request));
  return round_trip_of(*tensor, gradient, 0);
}

rt::Result<Trace> trace_of(const Target& target, const TensorRequest& request,
                           std::span<const Input> steps) {
  auto tensor = TRY(target.open(request));
  Trace trace;
  for (std::size_t step = 0; step < steps.size(); ++step) {
    Bytes payload = TRY(tensor->encode(steps[step].values, step));
    std::vector<float> out(steps[step].values.size());
    CINCH_TRY(tensor->decode(payload, out, step));
    trace.payloads.push_back(std::move(payload));
    trace.decoded.push_back(out);
    CINCH_TRY(tensor->finish(out, step));
    trace.updates.push_back(std::move(out));
  }
  trace.states = tensor->states();
  return trace;
}

std::optional<std::string> find_difference(const Trace& a, const Trace& b) {
  for (std::size_t step = 0; step < a.payloads.size(); ++step) {
    const char* what = a.payloads[step] != b.payloads[step]           ? "the payload"
                       : !same_bits(a.decoded[step], b.decoded[step]) ? "what is decoded"
                       : !same_bits(a.updates[step], b.updates[step]) ? "the update"
                                                                      : nullptr;
    if (what != nullptr) return fmt::format("{} of step {}", what, step);
  }
  for (std::size_t i = 0; i < a.states.size(); ++i) {
    if (a.states[i] != b.states[i]) return fmt::format("state {} after the last step", i);
  }
  return std::nullopt;
}

HostEnv env_of(const Shape& shape, std::uint32_t world, const rt::ParameterValues& parameters) {
  return {.n = shape.num_elems(),
          .rows = shape.rows,
          .cols = shape.cols,
          .world = world,
          .params = parameters.host_values()};
}

rt::Result<Fields> fields_of(const rt::ProgramInfo& info, const Bytes& payload,
                             const HostEnv& env) {
  const auto layout = TRY(rt::payload_layout(info, env, {}));
  Fields fields;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const rt::FieldPlace& place = layout.fields[i];
    const rt::ArrayType& type = info.wire.fields[i].type;
    interp::Array array{type.dtype, type.rank, {1, 1}, {}};
    if (type.rank > 0) array.dims[type.rank - 1] = place.row_elems;
    if (type.rank == 2)
      array.dims[0] = place.num_elems / std::max<std::int64_t>(place.row_elems, 1);
    const auto bytes = std::span(payload).subspan(static_cast<std::size_t>(place.offset),
                                                  static_cast<std::size_t>(place.size_bytes));
    array.bits = rt::unpack_elements(type.dtype, bytes, place.num_elems);
    for (std::uint64_t& x : array.bits) x = encode_bits(type.dtype, x);
    fields.push_back(std::move(array));
  }
  return fields;
}

rt::Result<Bytes> encode_on(const Trial& trial, const Shape& shape, std::uint32_t rank,
                            std::uint32_t world, const std::vector<float>& gradient,
                            std::vector<float>* decoded) {
  TensorRequest request = trial.request(shape);
  request.worker = rank;
  request.world = world;
  auto tensor = TRY(trial.subject.main->open(request));
  rt::Result<Bytes> payload = tensor->encode(gradient, 0);
  if (!payload || decoded == nullptr) return payload;
  decoded->resize(gradient.size());
  CINCH_TRY(tensor->decode(*payload, *decoded, 0));
  return payload;
}

double standard_errors(const Moments& samples, double expected, double largest) {
  const double distance = samples.mean() - expected;
  if (distance == 0) return 0;
  const auto count = static_cast<double>(samples.count());
  const double unseen = std::abs(distance) * largest;
  const double error = std::sqrt((samples.variance() + unseen) / count);
  return error > 0 ? distance / error : std::copysign(HUGE_VAL, distance);
}

bool draws_random_numbers(const ir::Program& program) {
  const auto draws = [](const ir::Function& function) {
    return std::ranges::any_of(function.ops, [](const ir::Op& op) { return ir::is_draw(op.kind); });
  };
  return std::ranges::any_of(program.functions, draws) ||
         std::ranges::any_of(program.state_inits, draws);
}

rt::Result<std::size_t> sample_seeds(const Trial& trial, const Input& input, std::size_t wanted,
                                     Clock::time_point until, const Sampled& sampled) {
  // This many samples are always taken, however short the time.
  constexpr std::size_t kLeastSamples = 64;
  if (!draws_random_numbers(*trial.subject.ir)) wanted = 1;
  std::size_t taken = 0;
  while (taken < wanted && (taken < kLeastSamples || Clock::now() < until)) {
    TensorRequest request = trial.request(input.shape);
    request.seed = trial.seed + taken;
    sampled(TRY(round_trip_of(*trial.subject.main, request, input.values)));
    ++taken;
  }
  return taken;
}

Clock::time_point share_of_time(const Trial& trial, std::size_t index, std::size_t count) {
  const Clock::time_point now = Clock::now();
  const auto left = std::max(trial.deadline - now, Clock::duration{});
  return now + left / static_cast<Clock::duration::rep>(count - index);
}

double norm_squared(std::span<const float> x) {
  double sum = 0;
  for (float value : x) sum += static_cast<double>(value) * value;
  return sum;
}

double distance_squared(std::span<const float> x, std::span<const float> y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double d = static_cast<double>(x[i]) - y[i];
    sum += d * d;
  }
  return sum;
}

}  // namespace cinch::verify
