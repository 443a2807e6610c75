// cinch plan: chooses how each tensor of a model is exchanged, before anybody trains.

#include <algorithm>
#include <cmath>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/step_plan.h"
#include "compiler/driver/report/text.h"
#include "compiler/driver/target.h"
#include "runtime/planner/exchange_options.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

double ms(double seconds) {
  return 1e3 * seconds;
}

std::string program_of(const StepPlan& plan, const rt::PlannedGroup& group) {
  const rt::PlanFile::Tensor& first = plan.file.tensors[group.tensors.front()];
  return first.program == rt::kDense ? "f32" : plan.file.programs[first.program].program;
}

std::string name_of(const StepPlan& plan, const rt::PlannedGroup& group) {
  const std::string& first = plan.file.tensors[group.tensors.front()].name;
  if (group.tensors.size() == 1) return first;
  return fmt::format("{} and {} more", first, group.tensors.size() - 1);
}

std::string device_of(const StepPlan& plan, const rt::PlannedGroup& group) {
  return group.way.route.device == rt::OptionDevice::Cpu ? "cpu" : plan.device;
}

std::int64_t elements_of(const StepPlan& plan, const rt::PlannedGroup& group) {
  std::int64_t elems = 0;
  for (const std::uint32_t t : group.tensors) {
    elems += plan.file.tensors[t].rows * plan.file.tensors[t].cols;
  }
  return elems;
}

// What a step takes without compression, in 32 and 16 bits, and whether less is worth it.
std::string advice(const StepPlan& plan) {
  constexpr double kWorth = 0.97;  // predictions are no better
  const rt::StepRoutes& routes = plan.routes;
  const auto named = [&](std::string_view name) {
    const auto found = std::ranges::find(routes.compared, name, &rt::PlannedStep::name);
    return found == routes.compared.end() ? nullptr : &*found;
  };
  const double plain = named("f32")->cost.seconds, chosen = routes.chosen.cost.seconds;
  const rt::PlannedStep* const half = named("f16");
  const bool compresses = std::ranges::any_of(routes.chosen.request.tensors,
                                              [](const auto& t) { return t.codec != rt::kDense; });
  const std::string in_half =
      half == nullptr ? ""
                      : fmt::format(", {} in 16 bits", in_milliseconds(ms(half->cost.seconds)));
  const std::string times =
      fmt::format("a step takes {}; {} in f32 by one plan{}", in_milliseconds(ms(chosen)),
                  in_milliseconds(ms(plain)), in_half);
  const bool is_half_faster = half != nullptr && half->cost.seconds < kWorth * chosen;
  if (is_half_faster && !plan.has_half) {
    return fmt::format("add {} to --programs: {}", kHalfProgram, times);
  }
  if (!compresses) return "do not compress: " + times;
  if (chosen >= kWorth * plain) {
    return fmt::format("compressing saves {:.1f} %, which is hardly worth it: {}",
                       100 * (1 - chosen / plain), times);
  }
  if (half != nullptr && chosen >= kWorth * half->cost.seconds) {
    return "16 bits are about as fast: " + times;
  }
  return "compress: " + times;
}

bool has_own_option(const rt::PlannedGroup& group) {
  const rt::PlanRoute& route = group.way.route;
  return route.plan == "hierarchical" && route.option != rt::usual_hierarchical_option();
}

// What is not usual about "hierarchical" stands once below the table, under a letter.
class OptionLetters {
 public:
  std::string plan_of(const rt::PlannedGroup& group) {
    const std::string& plan = group.way.route.plan;
    if (!has_own_option(group)) return plan;
    const auto found = std::ranges::find(options_, group.way.route.option);
    const auto place = static_cast<std::size_t>(found - options_.begin());
    if (found == options_.end()) options_.push_back(group.way.route.option);
    return fmt::format("{} {}", plan, letter(place));
  }
  std::string legend() const {
    std::string text;
    for (std::size_t i = 0; i < options_.size(); ++i) {
      text += padded("hierarchical " + letter(i), kIndent) +
              wrapped(rt::describe_option(options_[i]), kIndent, sentence_width()) + "\n";
    }
    return text;
  }

 private:
  static constexpr std::size_t kIndent = 16;
  static std::string letter(std::size_t place) {
    constexpr std::size_t kLetters = 26;
    return std::string(1, static_cast<char>('A' + place % kLetters));
  }
  std::vector<rt::ExchangeOption> options_;
};

json group_json(const StepPlan& plan, const rt::PlannedGroup& group) {
  json tensors = json::array();
  for (const std::uint32_t t : group.tensors) tensors.push_back(plan.file.tensors[t].name);
  const json option =
      has_own_option(group) ? json(rt::describe_option(group.way.route.option)) : json();
  return {{"tensors", std::move(tensors)},
          {"elements", elements_of(plan, group)},
          {"ready_ms", ms(group.ready_seconds)},
          {"program", program_of(plan, group)},
          {"plan", group.way.route.plan},
          {"option", option},
          {"piece_bytes", group.way.route.piece_bytes},
          {"device", device_of(plan, group)},
          {"encode_ms", ms(group.encode_seconds)},
          {"network_ms", ms(group.network_seconds)},
          {"decode_ms", ms(group.decode_seconds)},
          {"exposed_ms", ms(group.exposed_seconds)}};
}

json plan_json(const StepPlan& plan) {
  const rt::StepRoutes& routes = plan.routes;
  json groups = json::array(), compared = json::array();
  for (const rt::PlannedGroup& group : routes.groups) groups.push_back(group_json(plan, group));
  for (const rt::PlannedStep& each : routes.compared) {
    const bool is_single = each.request.routes.empty();
    compared.push_back({{"name", each.name},
                        {"plan", is_single ? each.request.plan : "routes"},
                        {"piece_bytes", is_single ? json(each.request.piece_bytes) : json()},
                        {"lengths", rt::length_policy_name(each.request.lengths)},
                        {"predicted_ms", ms(each.cost.seconds)}});
  }
  const double backward = routes.groups.back().ready_seconds;
  return {{"ranks", plan.file.world},
          {"chosen", routes.chosen.name},
          {"predicted_ms", ms(routes.chosen.cost.seconds)},
          {"backward_ms", ms(backward)},
          {"groups", std::move(groups)},
          {"compared", std::move(compared)},
          {"lanes_ms", ms(routes.lanes_seconds)},
          {"bound_ms", ms(routes.bound_seconds)},
          {"in_order_ms", ms(routes.in_order_seconds)},
          {"in_order_bound_ms", ms(routes.in_order_bound_seconds)},
          {"advice", advice(plan)}};
}

void print_groups(const StepPlan& plan) {
  TextTable table({{"", "tensors", true},
                   {"", "elements"},
                   {"ready", "ms"},
                   {"", "program", true},
                   {"", "plan", true},
                   {"pieces", "KiB"},
                   {"", "on", true},
                   {"encode", "ms"},
                   {"network", "ms"},
                   {"decode", "ms"},
                   {"exposed", "ms"}});
  const auto cell = [](double seconds) { return cell_in_milliseconds(ms(seconds)); };
  OptionLetters letters;
  for (const rt::PlannedGroup& group : plan.routes.groups) {
    table.add({name_of(plan, group), std::to_string(elements_of(plan, group)),
               cell(group.ready_seconds), program_of(plan, group), letters.plan_of(group),
               std::to_string(group.way.route.piece_bytes >> 10), device_of(plan, group),
               cell(group.encode_seconds), cell(group.network_seconds), cell(group.decode_seconds),
               cell(group.exposed_seconds)});
  }
  print_text("{}{}\n", table.text(text_width()), letters.legend());
}

std::string bound_text(double found, double bound) {
  const double gap = bound > 0 ? 100 * (found / bound - 1) : 0;
  return fmt::format("found {}, bound {} (a gap of {:.1f} %)", in_milliseconds(ms(found)),
                     in_milliseconds(ms(bound)), gap);
}

void print_summary(const StepPlan& plan) {
  const rt::StepRoutes& routes = plan.routes;
  TextTable table({{"", "plan", true}, {"", "predicted ms"}, {"", "", true}});
  for (const rt::PlannedStep& each : routes.compared) {
    const bool is_single = each.request.routes.empty();
    std::string how = is_single ? fmt::format("{} in {} KiB pieces", each.request.plan,
                                              each.request.piece_bytes >> 10)
                                : "";
    if (each.name == routes.chosen.name) how += how.empty() ? "chosen" : ": chosen";
    table.add({each.name, cell_in_milliseconds(ms(each.cost.seconds)), how});
  }
  print_text("{}", table.text(text_width()));
  const auto line = [](const std::string& name, const std::string& text) {
    constexpr std::size_t kIndent = 16;
    print_text("{}{}\n", padded(name, kIndent), wrapped(text, kIndent, sentence_width()));
  };
  line("search",
       fmt::format("by lanes, where no rank slows another: {}; in the order of the plan {}",
                   bound_text(routes.lanes_seconds, routes.bound_seconds),
                   bound_text(routes.in_order_seconds, routes.in_order_bound_seconds)));
}

// With that of 16 bits, which plans are compared with.
std::vector<std::string> measured_programs(const PlanCommandOptions& options) {
  std::vector<std::string> programs = split_programs(options.measured, "--measure");
  std::erase(programs, "none");
  if (std::ranges::find(programs, kHalfProgram) == programs.end()) {
    programs.emplace_back(kHalfProgram);
  }
  return programs;
}

ExitCode measure(const PlanCommandOptions& options) {
  if (!options.profile.empty() || !options.programs.empty() || !options.speeds.empty() ||
      !options.network.empty() || !options.trace.empty() || options.explain) {
    throw UsageError("--measure measures programs, and plans nothing");
  }
  // A square, for programs on matrices.
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(options.elements)));
  const std::vector<std::vector<std::int64_t>> shapes = {{side, options.elements / side}};
  const std::uint32_t ranks = std::max({1U, options.ranks, options.ranks_per_machine});
  const rt::SpeedTable table = measure_speeds(options, measured_programs(options), shapes, ranks);
  const std::string text = rt::speeds_to_json(table);
  if (!options.output.empty()) write_file(options.output, text);
  if (options.json) {
    print_result(json::parse(text));
    return ExitCode::Done;
  }
  TextTable shown({{"", "program", true}, {"", "elements"}, {"encode", "ms"}, {"decode", "ms"}});
  for (const rt::ProgramSpeed& each : table.programs) {
    for (const rt::Sample& sample : each.speed.encode.samples) {
      shown.add({each.is_carrier ? "sums of " + each.program : each.program,
                 fmt::format("{:.0f}", sample.size), cell_in_milliseconds(ms(sample.seconds)),
                 cell_in_milliseconds(ms(each.speed.decode.at(sample.size)))});
    }
  }
  print_text("{}, {} of {:.0f} cores a rank, {} at once\n{}", table.device,
             plainly_counted(table.threads, "thread"), table.cores,
             plainly_counted(table.copies, "rank"), shown.text(text_width()));
  return ExitCode::Done;
}

}  // namespace

ExitCode run_plan(const PlanCommandOptions& options) {
  require_place_for(options.output);
  require_place_for(options.trace);
  require_distinct_files({{"--output", options.output},
                          {"--trace", options.trace},
                          {"the profile", options.profile},
                          {"--network", options.network},
                          {"--speeds", options.speeds}});
  if (!options.measured.empty()) return measure(options);
  if (!options.vary.empty()) return plan_values(options);
  if (options.profile.empty()) {
    throw UsageError("a profile is required: when tensors become ready; or --measure");
  }
  if (options.programs.empty()) {
    throw UsageError("--programs is required: what tensors may be compressed with");
  }
  if (!options.network.empty() && (options.megabits_per_second > 0 || options.latency_us > 0)) {
    throw UsageError("--network says how fast links are: give no --bandwidth or --latency");
  }
  const ExecutionOptions any;
  if (!options.speeds.empty() &&
      (options.execution.device != any.device || options.execution.threads != any.threads)) {
    throw UsageError("--speeds says on what programs were measured: give no --device or --threads");
  }
  const StepPlan plan = plan_step(options);
  if (!options.output.empty()) write_file(options.output, rt::plan_file_to_json(plan.file));
  if (!options.trace.empty()) {
    std::vector<double> ready;
    ready.reserve(plan.profile.tensors.size());
    for (const rt::ReadyTensor& tensor : plan.profile.tensors)
      ready.push_back(tensor.ready_seconds);
    write_file(options.trace, predicted_trace(plan.routes.plan, plan.routes.spans,
                                              plan.routes.chosen.cost.seconds, ready));
  }
  if (options.json) {
    print_result(plan_json(plan));
    return ExitCode::Done;
  }
  if (options.explain) print_groups(plan);
  print_summary(plan);
  print_text("{}\n", wrapped(advice(plan), 0, sentence_width()));
  return ExitCode::Done;
}

}  // namespace cinch::driver
