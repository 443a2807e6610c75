// cinch sync: gradients of ranks, averaged by a plan over a transport.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "compiler/driver/commands.h"
#include "compiler/driver/front_end.h"
#include "compiler/driver/gradient_file.h"
#include "compiler/driver/interrupt.h"
#include "compiler/driver/nccl_ranks.h"
#include "compiler/driver/output_file.h"
#include "compiler/driver/plan_choice.h"
#include "compiler/driver/rank_threads.h"
#include "compiler/driver/sync_rank.h"
#include "compiler/driver/target.h"
#include "compiler/service/compile.h"
#include "runtime/collective/loopback.h"
#include "runtime/collective/mpi_transport.h"
#include "runtime/plan/plan_text.h"
#include "runtime/planner/codec_facts.h"
#include "runtime/session/parameters.h"

namespace cinch::driver {

namespace {

using nlohmann::json;
using Program = std::shared_ptr<const rt::LoadedProgram>;

// What stands for no program: gradients travel as they are.
constexpr const char* kNoProgram = "none";

Program load_program(const SyncCommandOptions& options) {
  if (options.program.program == kNoProgram) return nullptr;
  FrontEnd front_end;
  std::optional<rt::ProgramImage> image = find_image(options.program, options.execution);
  if (!image) {
    const codegen::Target target = find_target(options.execution, true);
    return value_or_throw(
        rt::LoadedProgram::load(service::make_program_image(front_end, options.program, target)));
  }
  for (const sema::Binding& binding : service::parse_bindings(options.program.bindings)) {
    rt::ParameterValues values(image->info);
    value_or_throw(values.set(binding.name, binding.value), "--set");
    std::ranges::find(image->info.params, binding.name, &rt::ParamInfo::name)->default_value =
        binding.value;
  }
  return value_or_throw(rt::LoadedProgram::load(std::move(*image)));
}

std::string input_of(const SyncCommandOptions& options, std::uint32_t rank) {
  if (options.inputs.size() > 1) return options.inputs.at(rank);
  std::string name = options.inputs[0];
  for (auto at = name.find("%r"); at != std::string::npos; at = name.find("%r", at)) {
    name.replace(at, 2, std::to_string(rank));
  }
  return name;
}

rt::NpyArray read_input(const SyncCommandOptions& options, std::uint32_t rank) {
  rt::NpyArray array = read_gradient(input_of(options, rank), options.dtype);
  return options.repeat_to_bytes > 0 ? repeat_to(array, options.repeat_to_bytes) : array;
}

rt::LengthPolicy length_policy(const std::string& name) {
  return name == "padded"      ? rt::LengthPolicy::Padded
         : name == "exchanged" ? rt::LengthPolicy::Exchanged
                               : rt::LengthPolicy::Auto;
}

rt::PlanRequest make_request(const SyncCommandOptions& options, const Program& program, Shape shape,
                             std::uint32_t world) {
  rt::PlanRequest request;
  if (program != nullptr) request.codecs = {rt::codec_facts(program, world, options.step)};
  request.plan = options.plan;
  request.world = world;
  request.tensors = {{"gradient", shape.rows, shape.cols, program == nullptr ? rt::kDense : 0}};
  request.piece_bytes = options.piece_bytes.value_or(request.piece_bytes);
  request.lengths = length_policy(options.lengths);
  request.servers = options.servers;
  request.ranks_per_machine = options.ranks_per_machine;
  return request;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

json phases_json(const rt::RankPlan& plan, const rt::TaskTimes& times) {
  json list = json::array();
  for (const rt::Phase& phase : rt::phases_of(plan, times)) {
    list.push_back({{"phase", phase.name},
                    {"ms", phase.seconds * 1e3},
                    {"sent_bytes", phase.sent_bytes},
                    {"tasks", phase.num_tasks}});
  }
  return list;
}

json report_of(const SyncCommandOptions& options, const rt::Plan& plan, const SyncReport& report) {
  const double error = report.relative_error;
  return {{"compressor", options.program.program},
          {"plan", plan.name},
          {"transport", options.transport},
          {"ranks", plan.world()},
          {"elements", report.update.size()},
          {"steps", report.step_ms.size()},
          {"step_ms", median(report.step_ms)},
          {"all_step_ms", report.step_ms},
          {"bytes_sent", *std::ranges::max_element(report.sent_bytes)},
          {"relative_error", std::isfinite(error) ? json(error) : json()},
          {"same_bits", report.same_bits},
          {"phases", phases_json(plan.ranks[0], report.times[0])}};
}

void print_report(const json& r) {
  fmt::print("{} by {} over {}, {} ranks, {} elements, {} steps\n",
             r["compressor"].get<std::string>(), r["plan"].get<std::string>(),
             r["transport"].get<std::string>(), r["ranks"].get<std::uint32_t>(),
             r["elements"].get<std::size_t>(), r["steps"].get<std::size_t>());
  if (r.contains("auto"))
    fmt::print("auto            {}\n", r["auto"]["reason"].get<std::string>());
  fmt::print("step            {:.3f} ms (median, of the slowest rank)\n",
             r["step_ms"].get<double>());
  fmt::print("sent by a rank  {} bytes (at most)\n", r["bytes_sent"].get<std::uint64_t>());
  if (r["relative_error"].is_number()) {
    fmt::print("relative error  {:.4g} (to the mean, last step)\n",
               r["relative_error"].get<double>());
  }
  fmt::print("all ranks hold the same bits: {}\n", r["same_bits"].get<bool>() ? "yes" : "NO");
  fmt::print("phases of rank 0 in the last step (they overlap)\n");
  for (const json& phase : r["phases"]) {
    fmt::print("  {:<14} {:>5} tasks {:>10.3f} ms {:>14} bytes sent\n",
               phase["phase"].get<std::string>(), phase["tasks"].get<std::uint64_t>(),
               phase["ms"].get<double>(), phase["sent_bytes"].get<std::uint64_t>());
  }
}

class SyncCommand {
 public:
  explicit SyncCommand(const SyncCommandOptions& options)
      : options_(options), program_(load_program(options)) {}

  ExitCode run_on_loopback() {
    const std::uint32_t world = asked_ranks();
    const std::vector<rt::NpyArray> gradients = read_all(world);
    prepare(gradients[0], world,
            [this](const ChoiceSubject& subject) { return choose_on_loopback(options_, subject); });
    if (options_.explain) return explain();
    return report(run_threads(gradients));
  }

  // Ranks are threads, each with a GPU.
  ExitCode run_on_nccl() {
    const NcclRanks ranks(options_, asked_ranks());
    const std::uint32_t world = ranks.world();
    const std::vector<rt::NpyArray> gradients = read_all(world);
    std::vector<std::unique_ptr<rt::Transport>> transports(world);
    run_on_rank_threads(world, [&](std::uint32_t r) { transports[r] = ranks.open(r); });
    prepare(gradients[0], world, [&](const ChoiceSubject& subject) {
      std::vector<ChosenPlan> chosen(world);
      run_on_rank_threads(world, [&](std::uint32_t r) {
        chosen[r] = choose_over(options_, subject, *transports[r]);
      });
      return chosen[0];
    });
    std::vector<SyncReport> reports(world);
    const Cancellable scope;
    run_on_rank_threads(world, [&](std::uint32_t r) {
      if (!options_.explain) {
        const std::uint32_t threads = threads_of_a_rank(world);
        reports[r] = run_sync_rank(rank_options(threads), gradients[r], *transports[r]);
      }
      transports[r].reset();  // all at once: NCCL waits for the others
    });
    return options_.explain ? explain() : report(reports[0]);
  }

  // One of the ranks that a launcher has started: it reads its own gradient, and rank 0 reports.
  ExitCode run_on_mpi() {
    const auto transport = value_or_throw(
        rt::open_mpi_transport({.is_exact = options_.is_exact, .timeout = timeout()}));
    const std::uint32_t world = transport->world();
    if (options_.ranks > 0 && options_.ranks != world) {
      throw CommandError(ExitCode::Usage,
                         fmt::format("{} ranks were launched, not {}", world, options_.ranks));
    }
    check_num_inputs(world);
    const rt::NpyArray gradient = read_input(options_, transport->rank());
    const bool reports = transport->rank() == 0;
    prepare(
        gradient, world,
        [&](const ChoiceSubject& subject) { return choose_over(options_, subject, *transport); },
        reports);
    if (options_.explain) return reports ? explain() : ExitCode::Done;
    const Cancellable scope;
    SyncReport result =
        run_sync_rank(rank_options(threads_of_a_rank(plan_->world())), gradient, *transport);
    if (reports) return report(result);
    if (result.was_stopped) end_if_interrupted();
    return result.same_bits ? ExitCode::Done : ExitCode::Internal;
  }

 private:
  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(1e3 * options_.timeout_seconds));
  }

  // 0: as many as the transport likes.
  std::uint32_t asked_ranks() const {
    const auto num_inputs = static_cast<std::uint32_t>(options_.inputs.size());
    const bool is_counted = num_inputs > 1 || options_.transport == "loopback";
    return options_.ranks > 0 ? options_.ranks : is_counted ? num_inputs : 0;
  }

  std::vector<rt::NpyArray> read_all(std::uint32_t world) const {
    check_num_inputs(world);
    std::vector<rt::NpyArray> gradients;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      gradients.push_back(read_input(options_, rank));
      check_shape(gradients.front(), gradients.back(), input_of(options_, rank));
    }
    return gradients;
  }

  void check_num_inputs(std::uint32_t world) const {
    if (options_.inputs.size() == 1 || options_.inputs.size() == world) return;
    throw CommandError(ExitCode::Usage,
                       fmt::format("{} inputs for {} ranks", options_.inputs.size(), world));
  }

  static void check_shape(const rt::NpyArray& first, const rt::NpyArray& other,
                          const std::string& name) {
    if (first.shape == other.shape) return;
    throw CommandError(ExitCode::AtFault, name + ": another shape than the first rank's gradient");
  }

  using Choose = std::function<ChosenPlan(const ChoiceSubject&)>;

  void prepare(const rt::NpyArray& gradient, std::uint32_t world, const Choose& choose,
               bool writes = true) {
    const bool is_matrix = program_ != nullptr && program_->info().is_matrix;
    rt::PlanRequest request =
        make_request(options_, program_, shape_of(gradient, is_matrix), world);
    if (options_.plan == "auto") {
      ChoiceSubject subject{std::move(request), {}, {view_of(gradient)}, threads_of_a_rank(world)};
      if (program_ != nullptr) subject.programs = {program_};
      ChosenPlan chosen = choose(subject);
      request = std::move(chosen.request);
      choice_ = std::move(chosen.choice);
    }
    plan_ = std::make_shared<rt::Plan>(value_or_throw(rt::build_plan(request)));
    shape_ = gradient.shape;
    if (writes && !options_.save_plan.empty())
      write_file(options_.save_plan, rt::plan_to_json(*plan_));
  }

  SyncRankOptions rank_options(std::uint32_t threads) const {
    SyncRankOptions rank;
    rank.session.plan = plan_;
    if (program_ != nullptr) rank.session.programs = {program_};
    rank.session.threads = threads;
    rank.session.seed = options_.seed;
    rank.session.timeout = timeout();
    rank.first_step = options_.step;
    rank.num_steps = options_.num_steps;
    return rank;
  }

  // Ranks share the machine's threads.
  std::uint32_t threads_of_a_rank(std::uint32_t world) const {
    if (options_.execution.threads > 0) return options_.execution.threads;
    return std::max(1U, std::thread::hardware_concurrency() / world);
  }

  SyncReport run_threads(const std::vector<rt::NpyArray>& gradients) const {
    const Cancellable scope;
    const rt::LinkShape shape{options_.latency_us / 1e6, options_.megabits_per_second * 1e6 / 8};
    rt::LoopbackWorld world(plan_->world(), shape);
    const SyncRankOptions rank = rank_options(threads_of_a_rank(plan_->world()));
    std::vector<SyncReport> reports(plan_->world());
    run_on_rank_threads(plan_->world(), [&](std::uint32_t r) {
      const auto transport = world.transport(r);
      reports[r] = run_sync_rank(rank, gradients[r], *transport);
    });
    return std::move(reports[0]);
  }

  ExitCode explain() const {
    if (options_.json) {
      json written = {{"plan", json::parse(rt::plan_to_json(*plan_))}};
      if (choice_) written["auto"] = choice_json(*choice_);
      fmt::print("{}\n", written.dump());
      return ExitCode::Done;
    }
    if (choice_) fmt::print("{}\n", choice_text(*choice_));
    fmt::print("{}", rt::print_plan(*plan_, 0));
    return ExitCode::Done;
  }

  ExitCode report(const SyncReport& report) const {
    if (report.was_stopped) end_if_interrupted();
    if (!options_.output.empty()) write_gradient(options_.output, report.update, shape_);
    if (!options_.trace.empty()) write_file(options_.trace, rt::trace_json(*plan_, report.times));
    json written = report_of(options_, *plan_, report);
    if (choice_) written["auto"] = choice_json(*choice_);
    if (options_.json) {
      fmt::print("{}\n", written.dump());
    } else {
      print_report(written);
    }
    if (report.same_bits) return ExitCode::Done;
    throw CommandError(ExitCode::Internal, "ranks hold different bits");
  }

  const SyncCommandOptions& options_;
  Program program_;
  std::shared_ptr<const rt::Plan> plan_;
  std::optional<rt::PlanChoice> choice_;  // of plan auto
  std::vector<std::int64_t> shape_;
};

}  // namespace

ExitCode run_sync_command(const SyncCommandOptions& options) {
  if (is_gpu(options.execution)) {
    throw CommandError(ExitCode::Unavailable, "device '" + options.execution.device +
                                                  "': ranks synchronise on CPUs in this version");
  }
  if (options.transport == "mpi") return SyncCommand(options).run_on_mpi();
  if (options.transport == "nccl") return SyncCommand(options).run_on_nccl();
  return SyncCommand(options).run_on_loopback();
}

}  // namespace cinch::driver
