// cinch plan --vary: one parameter's value for each tensor, at the error of one value for all.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "compiler/driver/codecs/verify_subject.h"
#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "runtime/planner/policy.h"
#include "runtime/planner/value_choice.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

constexpr std::size_t kMostValues = 64;

struct Variation {
  std::string name;
  std::vector<std::string> values;
};

std::optional<double> number_in(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number =
      error == std::errc() && end == text.data() + text.size() && std::isfinite(number);
  return is_number ? std::optional(number) : std::nullopt;
}

// "bits=2..8" or "ratio=0.001,0.01".
Variation variation_of(const std::string& text, std::string_view option) {
  const std::size_t at = text.find('=');
  const auto refuse = [&] {
    throw UsageError("{} takes a parameter and its values, such as bits=2..8; found '{}'", option,
                     text);
  };
  if (at == std::string::npos || at == 0) refuse();
  Variation variation{text.substr(0, at), {}};
  const std::string list = text.substr(at + 1);
  if (const std::size_t dots = list.find(".."); dots != std::string::npos) {
    constexpr std::int64_t kMost = 1'000'000;
    const auto whole = [&](std::string_view part) {
      const double number = number_in(part).value_or(0.5);
      const bool is_whole = number == std::floor(number) && std::abs(number) <= kMost;
      if (!is_whole) refuse();
      return static_cast<std::int64_t>(number);
    };
    const std::int64_t first = whole(list.substr(0, dots)), last = whole(list.substr(dots + 2));
    if (first > last || last - first >= static_cast<std::int64_t>(kMostValues)) refuse();
    for (std::int64_t value = first; value <= last; ++value) {
      variation.values.push_back(std::to_string(value));
    }
    return variation;
  }
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    variation.values.push_back(list.substr(begin, end - begin));
    if (!number_in(variation.values.back())) refuse();
    begin = end + 1;
  }
  if (variation.values.size() > kMostValues) refuse();
  return variation;
}

// The program as it was given, with the value: "cgx(bits: 4)".
std::string with_value(const std::string& program, const std::string& name,
                       const std::string& value) {
  if (!program.ends_with(')')) return fmt::format("{}({}: {})", program, name, value);
  return fmt::format("{}, {}: {})", program.substr(0, program.size() - 1), name, value);
}

class ValuePlan {
 public:
  explicit ValuePlan(const PlanCommandOptions& options)
      : options_(options), vary_(variation_of(options.vary, "--vary")) {
    const Variation budget = variation_of(options.budget, "--budget");
    const auto found = std::ranges::find(vary_.values, budget.values.front());
    if (budget.name != vary_.name || budget.values.size() != 1 || found == vary_.values.end()) {
      throw UsageError("--budget {}: one of the values of --vary {}", options.budget, options.vary);
    }
    uniform_ = static_cast<std::size_t>(found - vary_.values.begin());
    const std::vector<std::string> programs = split_programs(options.programs, "--programs");
    if (programs.size() != 1) throw UsageError("--vary takes one program, not {}", programs.size());
    program_ = programs.front();
  }

  json run() {
    read();
    measure();
    const auto chosen = options_.is_each_held
                            ? value_or_throw(rt::choose_values_of_each(curves_, norms_, uniform_))
                            : value_or_throw(rt::choose_values(curves_, uniform_));
    return described(chosen);
  }

 private:
  // One-dimensional and small tensors are exact, as without a policy.
  void read() {
    SurveyOptions survey;
    survey.folder = options_.gradients;
    survey.dtype = options_.dtype;
    for (SurveyTensor& tensor : read_survey(survey)) {
      const bool is_exact = !tensor.is_matrix() || tensor.array.num_elems() < rt::kSmallElements;
      if (is_exact) {
        ++num_exact_;
      } else {
        tensors_.push_back(std::move(tensor));
      }
    }
    if (!tensors_.empty()) return;
    throw CommandError(ExitCode::AtFault,
                       "{}: no tensor with two dimensions and {} elements or more",
                       options_.gradients, rt::kSmallElements);
  }

  void measure() {
    SurveyOptions survey;
    survey.seed = options_.seed;
    survey.execution = options_.execution;
    survey.seconds = 0;
    curves_.resize(tensors_.size());
    Progress progress("values tried");
    for (const std::string& value : vary_.values) {
      const SurveyFigures figures =
          try_program(with_value(program_, vary_.name, value), survey, tensors_);
      for (std::size_t t = 0; t < tensors_.size(); ++t) {
        const SurveyFigures::OfTensor& of = figures.by_tensor[t];
        curves_[t].push_back({of.payload_bytes, of.squared_error});
        if (norms_.size() < tensors_.size()) norms_.push_back(of.squared_norm);
      }
      progress.update(curves_[0].size(), vary_.values.size());
      end_if_interrupted();
    }
  }

  json totals(const std::vector<std::size_t>& choice) const {
    std::int64_t bytes = 0;
    double error = 0, norm = 0;
    for (std::size_t t = 0; t < choice.size(); ++t) {
      bytes += curves_[t][choice[t]].bytes;
      error += curves_[t][choice[t]].squared_error;
      norm += norms_[t];
    }
    return {{"payload_bytes", bytes}, {"relative_error", relative(error, norm)}};
  }

  static json relative(double squared_error, double squared_norm) {
    return squared_norm > 0 ? json(std::sqrt(squared_error / squared_norm)) : json();
  }

  json described(const std::vector<std::size_t>& chosen) const {
    json tensors = json::array(), rules = json::array();
    for (std::size_t t = 0; t < tensors_.size(); ++t) {
      const std::string& value = vary_.values[chosen[t]];
      const rt::ValuePoint& point = curves_[t][chosen[t]];
      tensors.push_back({{"name", tensors_[t].name},
                         {"elements", tensors_[t].array.num_elems()},
                         {"value", value},
                         {"payload_bytes", point.bytes},
                         {"relative_error", relative(point.squared_error, norms_[t])}});
      rules.push_back({{"name", rt::exact_pattern(tensors_[t].name)},
                       {"use", program_},
                       {"set", {{vary_.name, number_in(value).value_or(0)}}}});
    }
    rules.push_back({{"use", "exact"}});
    return {{"program", program_},
            {"parameter", vary_.name},
            {"uniform", vary_.values[uniform_]},
            {"tensors", tensors},
            {"exact_tensors", num_exact_},
            {"with_one_value", totals(std::vector<std::size_t>(tensors_.size(), uniform_))},
            {"by_tensor", totals(chosen)},
            {"policy", {{"rules", rules}}}};
  }

  const PlanCommandOptions& options_;
  const Variation vary_;
  std::size_t uniform_ = 0;
  std::string program_;
  std::vector<SurveyTensor> tensors_;
  std::size_t num_exact_ = 0;
  rt::ValueCurves curves_;
  std::vector<double> norms_;
};

void print_values(const json& plan) {
  const auto error = [](const json& of) {
    return of.is_null() ? std::string("-") : short_number(of.get<double>());
  };
  TextTable table({{"", "tensor", true},
                   {"", "elements"},
                   {"", plan["parameter"].get<std::string>()},
                   {"payload", "bytes"},
                   {"", "error"}});
  for (const json& of : plan["tensors"]) {
    table.add({of["name"].get<std::string>(), grouped(of["elements"].get<std::int64_t>()),
               of["value"].get<std::string>(), grouped(of["payload_bytes"].get<std::int64_t>()),
               error(of["relative_error"])});
  }
  print_text("{}\n", table.text(text_width()));
  const json &one = plan["with_one_value"], &each = plan["by_tensor"];
  const auto bytes = [](const json& of) { return of["payload_bytes"].get<std::int64_t>(); };
  print_text("{:<15} {} bytes, error {}\n",
             fmt::format("{} = {}", plan["parameter"].get<std::string>(),
                         plan["uniform"].get<std::string>()),
             grouped(bytes(one)), error(one["relative_error"]));
  print_text("{:<15} {} bytes, error {}: {:.2f} times fewer bytes\n", "by tensor",
             grouped(bytes(each)), error(each["relative_error"]),
             static_cast<double>(bytes(one)) /
                 static_cast<double>(std::max<std::int64_t>(1, bytes(each))));
}

}  // namespace

ExitCode plan_values(const PlanCommandOptions& options) {
  if (options.budget.empty() || options.gradients.empty() || options.programs.empty()) {
    throw UsageError("--vary needs --budget, --gradients and --programs with one program");
  }
  if (!options.profile.empty() || !options.trace.empty() || !options.speeds.empty()) {
    throw UsageError("--vary chooses values of a parameter, and plans no step");
  }
  const json plan = ValuePlan(options).run();
  if (!options.output.empty()) write_file(options.output, plan["policy"].dump(1) + "\n");
  if (options.json) {
    print_result(plan);
  } else {
    print_values(plan);
  }
  return ExitCode::Done;
}

}  // namespace cinch::driver
