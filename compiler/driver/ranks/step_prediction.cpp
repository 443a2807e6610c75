#include "compiler/driver/ranks/plan_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <thread>

#include "compiler/driver/process/exit_code.h"
#include "runtime/autoplan/measure.h"
#include "runtime/planner/planner.h"

namespace cinch::driver {
namespace {

// Time for measuring plain f32.
constexpr double kPlainSeconds = 0.1;

struct LinkUnit {
  std::string_view name;
  double bits;
};
constexpr std::array kLinkUnits = {LinkUnit{"kbit", 1e3}, LinkUnit{"mbit", 1e6},
                                   LinkUnit{"gbit", 1e9}, LinkUnit{"tbit", 1e12}};

}  // namespace

double parse_link(const std::string& text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  std::erase(unit, ' ');
  std::ranges::transform(unit, unit.begin(), [](unsigned char c) { return std::tolower(c); });
  if (unit.ends_with("/s")) unit.resize(unit.size() - 2);
  const auto known = std::ranges::find(kLinkUnits, unit, &LinkUnit::name);
  if (error != std::errc() || known == kLinkUnits.end() || !(number > 0) ||
      !std::isfinite(number)) {
    throw CommandError(
        ExitCode::Usage,
        fmt::format("--link takes a bandwidth such as 1Gbit/s or 100Mbit/s; found '{}'", text));
  }
  return number * known->bits / 8;
}

StepPredictor::StepPredictor(const std::vector<SurveyTensor>& tensors, const SurveyOptions& options)
    : tensors_(tensors), options_(options) {
  costs_.network =
      rt::shaped_network(options.ranks, {options.latency_us / 1e6, parse_link(options.link)});
  costs_.cores = std::max(1U, std::thread::hardware_concurrency());
  const std::uint32_t asked = options.execution.threads;
  costs_.threads = asked == 0 ? costs_.cores : std::min<double>(asked, costs_.cores);
  std::int64_t elements = 0;
  for (const SurveyTensor& tensor : tensors) elements += tensor.array.num_elems();
  rt::SpeedOptions speed;
  speed.session.threads = static_cast<std::uint32_t>(costs_.threads);
  speed.seconds = kPlainSeconds;
  value_or_throw(rt::measure_dense(elements, speed, costs_));
}

rt::PlanRequest StepPredictor::request(bool is_compressed, bool takes_matrices) const {
  rt::PlanRequest request;
  request.world = options_.ranks;
  for (const SurveyTensor& tensor : tensors_) {
    const Shape shape = shape_of(tensor.array, true);
    const bool has_codec = is_compressed && (tensor.is_matrix() || !takes_matrices);
    request.tensors.push_back({tensor.name, shape.rows, shape.cols, has_codec ? 0 : rt::kDense});
  }
  return request;
}

StepPrediction StepPredictor::best(const rt::PlanRequest& request,
                                   const rt::CostInputs& costs) const {
  rt::ChoiceSpace space;
  space.may_be_dense = false;  // the program in question must be used
  // With many ranks in small pieces, each plan takes seconds to examine.
  constexpr std::uint32_t kManyRanks = 16;
  if (options_.ranks > kManyRanks) space.piece_bytes = {16 << 20, 4 << 20};
  const rt::PlanChoice choice = value_or_throw(rt::choose_plan(request, costs, space));
  const rt::PlanCost& cost = choice.chosen.cost;
  return {choice.chosen.plan, cost.seconds, cost.encode_seconds, cost.network_seconds,
          cost.decode_seconds};
}

StepPrediction StepPredictor::without_program() const {
  return best(request(false, false), costs_);
}

StepPrediction StepPredictor::with_program(
    const std::shared_ptr<const rt::LoadedProgram>& program,
    const std::shared_ptr<const rt::LoadedProgram>& carrier) const {
  const bool is_matrix = program->info().is_matrix;
  rt::PlanRequest asked = request(true, is_matrix);
  rt::SpeedOptions speed;
  speed.session.programs = {program};
  if (carrier != nullptr) speed.session.programs.push_back(carrier);
  for (const auto& each : speed.session.programs)
    asked.codecs.push_back(rt::codec_facts(rt::image_of(each), options_.ranks));
  if (carrier != nullptr) asked.codecs[0].carrier_codec = 1;
  if (asked.codecs[0].has_sync && !asked.codecs[0].sync_rounds) {
    throw CommandError(
        ExitCode::AtFault,
        "a `sync` body that decides while it runs which collectives it makes has one "
        "plan, whose time `cinch sync` measures");
  }
  const SurveyTensor* largest = nullptr;
  for (const SurveyTensor& tensor : tensors_) {
    if (is_matrix && !tensor.is_matrix()) continue;
    if (largest == nullptr || tensor.array.num_elems() > largest->array.num_elems())
      largest = &tensor;
  }
  speed.session.threads = static_cast<std::uint32_t>(costs_.threads);
  speed.session.seed = options_.seed;
  speed.seconds = options_.seconds;
  const Shape shape = shape_of(largest->array, true);
  rt::CostInputs costs = costs_;
  for (std::uint32_t codec = 0; codec < asked.codecs.size(); ++codec) {
    costs.codecs.push_back(value_or_throw(
        rt::measure_codec(codec, view_of(largest->array), shape.rows, shape.cols, speed)));
  }
  return best(asked, costs);
}

}  // namespace cinch::driver
