// Integers that add up: the sum of the largest values that 2, 3 and 8 ranks send must fit the
// field's type. Sums are largest if all ranks send the same, so all have one gradient. Of the
// gradients that make large integers, those with the largest floats are used.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "compiler/verify/laws.h"

namespace cinch::verify {

namespace {

// The largest first: the others then have the least time.
constexpr std::array<std::uint32_t, 3> kWorlds = {8, 2, 3};
// Magnitudes of a gradient's largest element; 0: unchanged.
constexpr double kMagnitudes[] = {3e38, 1e6, 1, 0};

Input scaled(const Input& input, double magnitude, double sign) {
  double largest = 0;
  for (const float x : input.values) largest = std::max(largest, std::abs(double{x}));
  const double factor = sign * (magnitude == 0 || largest == 0 ? 1 : magnitude / largest);
  if (factor == 1) return input;
  Input made = input;
  for (float& x : made.values) x = static_cast<float>(x * factor);
  made.name = fmt::format("{} times {:.4g}", input.name, factor);
  return made;
}

// A sum, compared with the largest value of its field's type on this side of 0.
struct Sum {
  double figure = 0, bound = 1;
  bool fits = true;  // exactly
  std::size_t field = 0;
  bool is_above(const Sum& other) const {
    return fits == other.fits ? figure / bound > other.figure / other.bound : other.fits;
  }
};

Sum largest_sum(const rt::ProgramInfo& info, const std::vector<Fields>& ranks) {
  Sum largest;
  for (std::size_t i = 0; i < info.wire.fields.size(); ++i) {
    const rt::FieldInfo& field = info.wire.fields[i];
    const DType dtype = field.type.dtype;
    if (field.sum != rt::FieldSum::Sum || is_float(dtype)) continue;
    const bool is_signed = is_signed_int(dtype);
    const __int128 limit = __int128{1} << (dtype.bits - (is_signed ? 1 : 0));
    for (std::size_t j = 0; j < ranks[0][i].bits.size(); ++j) {
      __int128 sum = 0;
      for (const Fields& rank : ranks) {
        const std::uint64_t bits = rank[i].bits[j];  // elements are extended to 64 bits
        sum += is_signed ? __int128{static_cast<std::int64_t>(bits)} : __int128{bits};
      }
      const __int128 magnitude = sum < 0 ? -sum : sum;
      const __int128 last = is_signed && sum < 0 ? limit : limit - 1;
      const Sum found{static_cast<double>(magnitude), static_cast<double>(last), magnitude <= last,
                      i};
      if (found.is_above(largest)) largest = found;
    }
  }
  return largest;
}

rt::Result<Sum> sum_of(const Trial& trial, const Input& input, std::uint32_t world) {
  const rt::ProgramInfo& info = trial.subject.info();
  const rt::ParameterValues parameters(info);
  const HostEnv env = env_of(input.shape, world, parameters);
  std::vector<Fields> ranks;
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    const auto payload = TRY(encode_on(trial, input.shape, rank, world, input.values, nullptr));
    ranks.push_back(TRY(fields_of(info, payload, env)));
  }
  return largest_sum(info, ranks);
}

// "file:line:column: " of the value that fills the field; empty if unknown.
std::string place_of(const Subject& subject, std::size_t field) {
  const ir::Function* encode =
      subject.ir == nullptr ? nullptr : subject.ir->find(ir::FunctionKind::Encode);
  if (encode == nullptr || subject.sources == nullptr) return {};
  const ir::Value& value = encode->values[encode->results.fields[field].index()];
  const dsl::Span span = encode->ops[value.def.index()].span;
  const dsl::SourceBuffer* file = subject.sources->find(span.file);
  if (file == nullptr) return {};
  const dsl::LineColumn at = file->position(span.begin);
  return fmt::format("{}:{}:{}: ", file->name(), at.line, at.column);
}

}  // namespace

Finding sums_fit(const Trial& trial) {
  Finding& finding = trial.begin("sums_fit");
  finding.detail = "sums over ranks, which all are 0";
  std::vector<Input> inputs;
  for (const double magnitude : kMagnitudes) {
    for (const Input& input : trial.usual_inputs()) {
      for (const double sign : {1.0, -1.0}) inputs.push_back(scaled(input, magnitude, sign));
    }
  }
  Sweep sweep(trial, inputs.size() * kWorlds.size());
  Sum worst;
  while (sweep.goes_on() && finding.holds) {
    const Input& input = inputs[(sweep.done() - 1) / kWorlds.size()];
    std::uint32_t world = kWorlds[(sweep.done() - 1) % kWorlds.size()];
    // No rank sends a gradient that the program rejects.
    auto sum = sum_of(trial, input, world);
    if (!sum || !sum->is_above(worst)) continue;
    // A failure with fewer ranks is more telling.
    for (const std::uint32_t fewer : {3U, 2U}) {
      if (sum->fits || fewer >= world) break;
      const auto with_fewer = sum_of(trial, input, fewer);
      if (!with_fewer || with_fewer->fits) break;
      world = fewer;
      sum = with_fewer;
    }
    worst = *sum;
    finding.figure = sum->figure;
    finding.bound = sum->bound;
    const rt::FieldInfo& field = trial.subject.info().wire.fields[sum->field];
    finding.detail =
        fmt::format("{}the largest sum of field {} over {} ranks, and what {} holds: {}",
                    place_of(trial.subject, sum->field), field.name, world,
                    dtype_name(field.type.dtype), describe(input));
    finding.holds = sum->fits;
    if (finding.holds) continue;
    finding.counterexample =
        shown_by_ranks(trial, {input}, "a sum over ranks does not fit its field", "allreduce");
    finding.counterexample->order.assign(world, 0);
  }
  if (finding.holds) finding.cut = sweep.cut("inputs and numbers of ranks");
  return finding;
}

}  // namespace cinch::verify
