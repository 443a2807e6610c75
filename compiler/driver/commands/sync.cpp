// cinch sync: averages the ranks' gradients by a plan over a transport.

#include <algorithm>
#include <thread>

#include "compiler/driver/commands/commands.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "compiler/driver/ranks/sync_rank.h"
#include "runtime/collective/loopback.h"
#include "runtime/planner/planner.h"
#include "runtime/sync/step_tensors.h"
#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::driver {
namespace {

using nlohmann::json;

rt::CudaAware cuda_aware(const std::string& name) {
  return name == "yes"  ? rt::CudaAware::Yes
         : name == "no" ? rt::CudaAware::No
                        : rt::CudaAware::Auto;
}

rt::PlanRequest make_request(const SyncCommandOptions& options, const SyncSubject& subject,
                             std::uint32_t world) {
  rt::PlanRequest request;
  for (const Program& program : subject.programs) {
    request.codecs.push_back(
        rt::codec_facts(rt::image_of(program), world, options.step, options.ranks_per_machine));
  }
  for (std::size_t i = 0; i < subject.carriers.size(); ++i) {
    request.codecs[i].carrier_codec = subject.carriers[i];
  }
  request.plan = options.plan;
  request.world = world;
  request.tensors = subject.tensors;
  request.piece_bytes = options.piece_bytes.value_or(request.piece_bytes);
  request.lengths = rt::length_policy_named(options.lengths).value_or(rt::LengthPolicy::Auto);
  request.servers = options.servers;
  request.ranks_per_machine = std::max(1U, options.ranks_per_machine);
  for (const rt::PolicyRoute& route : subject.routes) {
    request.routes.push_back({route.plan.empty() ? request.plan : route.plan,
                              route.piece_bytes > 0 ? route.piece_bytes : request.piece_bytes,
                              request.lengths, request.option});
  }
  request.route_of = subject.route_of;
  return request;
}

class SyncCommand {
 public:
  explicit SyncCommand(const SyncCommandOptions& options) : options_(options) {}

  ExitCode run_on_loopback() {
    const std::uint32_t world = asked_ranks();
    const std::vector<RankTensors> gradients = read_all(world);
    prepare(gradients[0], world, [&](const rt::PlanRequest& request) {
      return choose_on_loopback(options_, inputs_by_rank(request, gradients));
    });
    if (options_.explain) return explain();
    const std::vector<SyncReport> reports = run_threads(gradients);
    write_states(reports);
    return report(reports[0], gradients[0]);
  }

  // Ranks are threads, each with a GPU.
  ExitCode run_on_nccl() {
    const NcclRanks ranks(options_, asked_ranks());
    const std::uint32_t world = ranks.world();
    const std::vector<RankTensors> gradients = read_all(world);
    std::vector<std::unique_ptr<rt::Transport>> transports(world);
    run_on_rank_threads(world, [&](std::uint32_t r) { transports[r] = ranks.open(r); });
    prepare(gradients[0], world, [&](const rt::PlanRequest& request) {
      const std::vector<rt::AutoPlanInputs> by_rank = inputs_by_rank(request, gradients);
      std::vector<rt::AutoPlan> chosen(world);
      run_on_rank_threads(world, [&](std::uint32_t r) {
        chosen[r] = choose_over(options_, by_rank[r], *transports[r]);
      });
      return chosen[0];
    });
    std::vector<SyncReport> reports(world);
    const Cancellable scope;
    const std::vector<SyncRankOptions> ranks_of_plan = options_by_rank();
    run_on_rank_threads(world, [&](std::uint32_t r) {
      // Closes all at once: NCCL waits for the others, even if a rank has thrown.
      const auto close = [&](std::unique_ptr<rt::Transport>* transport) { transport->reset(); };
      const std::unique_ptr<std::unique_ptr<rt::Transport>, decltype(close)> closing(&transports[r],
                                                                                     close);
      if (options_.explain) return;
      reports[r] =
          run_sync_rank(ranks_of_plan[r], views_of(subject_, gradients[r]), *transports[r]);
    });
    if (options_.explain) return explain();
    write_states(reports);
    return report(reports[0], gradients[0]);
  }

  // Runs one of the ranks that a launcher started: it reads its own gradient, and rank 0 reports.
  ExitCode run_on_mpi() {
    if (const std::uint32_t world = asked_ranks(); world > 1 && !is_launched_rank()) {
      check_num_inputs(world);
      return launch_mpi_ranks(options_.words, world);
    }
    auto transport =
        value_or_throw(rt::open_mpi_transport({.is_exact = options_.is_exact,
                                               .timeout = options_.timeout(),
                                               .cuda_aware = cuda_aware(options_.cuda_aware)}));
    const ExitCode code = run_as_rank(transport);
    leave(transport);
    return code;
  }

  // Runs one of the ranks that this command, or another program, started.
  ExitCode run_on_ucx() {
    const std::uint32_t world = asked_ranks();
    if (world > 1 && !is_ucx_rank(options_)) {
      check_num_inputs(world);
      return launch_ucx_ranks(options_, world);
    }
    auto transport = open_ucx_rank(options_);
    return run_as_rank(transport);
  }

 private:
  ExitCode run_as_rank(std::unique_ptr<rt::Transport>& transport) {
    const std::uint32_t world = transport->world();
    if (options_.ranks > 0 && options_.ranks != world) {
      throw UsageError("{} ranks were launched, not {}: mpirun -n {} starts them", world,
                       options_.ranks, options_.ranks);
    }
    check_num_inputs(world);
    const RankTensors gradient = read_ready(transport->rank());
    agree_on_options(*transport);
    const bool reports = transport->rank() == 0;
    prepare(
        gradient, world,
        [&](const rt::PlanRequest& request) {
          return choose_over(options_, auto_inputs(request, transport->rank(), gradient),
                             *transport);
        },
        reports);
    if (options_.explain) return reports ? explain() : ExitCode::Done;
    const Cancellable scope;
    SyncReport result =
        run_sync_rank(rank_options(transport->rank()), views_of(subject_, gradient), *transport);
    write_saved_states(options_, transport->rank(), result.saved_states);
    // The signal ends ranks, and mpirun ends the others when one ends. So all write their results
    // first, and none waits in MPI_Finalize for one that has ended.
    if (result.was_stopped) {
      const std::vector<rt::ByteRange> parts(transport->world());
      rt::Exchange exchange{rt::ExchangeKind::AllGather};
      exchange.received = parts;
      value_or_throw(rt::exchange_now(*transport, exchange, options_.timeout(), "leaving"));
      leave(transport);
    }
    if (reports) return report(result, gradient);
    if (result.was_stopped) end_if_interrupted();
    return result.same_bits ? ExitCode::Done : ExitCode::Internal;
  }

  // Call it once. Waits for a missing rank as long as in a step.
  void leave(std::unique_ptr<rt::Transport>& transport) const {
    if (transport == nullptr) return;
    const bool is_of_mpi = transport->name() == "mpi";
    transport.reset();
    if (is_of_mpi) value_or_throw(rt::leave_mpi(options_.timeout()));
  }

  // Compares options that no session compares, but that would make ranks wait for each other.
  void agree_on_options(rt::Transport& transport) const {
    const auto text = [](bool flag) { return flag ? "yes" : "no"; };
    const rt::Status status = rt::agree_on({{"--steps", std::to_string(options_.num_steps)},
                                            {"--step", std::to_string(options_.step)},
                                            {"--exact", text(options_.is_exact)},
                                            {"--explain", text(options_.explain)}},
                                           transport, options_.timeout());
    if (!status) throw_error(status.error());
  }

  // 0: one for each GPU.
  std::uint32_t asked_ranks() const {
    const bool is_counted = options_.inputs.size() > 1 || options_.transport != "nccl";
    return options_.ranks > 0 ? options_.ranks : is_counted ? num_input_ranks(options_) : 0;
  }

  std::vector<RankTensors> read_all(std::uint32_t world) {
    check_num_inputs(world);
    std::vector<RankTensors> gradients;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      gradients.push_back(read_ready(rank));
      check_same_tensors(gradients.front(), gradients.back(),
                         options_.inputs.empty() ? options_.profile : input_of(options_, rank));
    }
    return gradients;
  }

  // In the order of the profile, if there is one.
  RankTensors read_ready(std::uint32_t rank) {
    RankTensors tensors = read_tensors(options_, rank);
    if (!options_.profile.empty()) ready_ = order_by_profile(options_, tensors);
    return tensors;
  }

  void check_num_inputs(std::uint32_t world) const {
    if (options_.inputs.size() <= 1 || options_.inputs.size() == world) return;
    throw UsageError("{} inputs for {} ranks", options_.inputs.size(), world);
  }

  using Choose = std::function<rt::AutoPlan(const rt::PlanRequest&)>;

  void prepare(const RankTensors& tensors, std::uint32_t world, const Choose& choose,
               bool writes = true) {
    check_state_names(options_, world);
    check_ranks_of_plan(options_, world);
    if (rt::is_plan_file(options_.plan)) {
      plan_file_ =
          value_or_throw(rt::plan_file_from_json(read_text_file(options_.plan)), options_.plan);
      tell_other_profile(*plan_file_);
    }
    subject_ = plan_file_ ? assign_by_plan_file(options_, *plan_file_, tensors)
                          : assign_programs(options_, tensors);
    check_routes();
    const auto encodes_sums = [](const rt::PolicyRoute& route) {
      return !route.plan.empty() && rt::encodes_sums(route.plan);
    };
    const bool needs_carriers = options_.plan == "auto" || plan_file_ ||
                                rt::encodes_sums(options_.plan) ||
                                std::ranges::any_of(subject_.routes, encodes_sums);
    if (needs_carriers) add_carriers(options_.execution, subject_);
    devices_.emplace(options_.execution, subject_.sources);
    rt::PlanRequest request = make_request(options_, subject_, world);
    if (plan_file_) {
      request = value_or_throw(rt::with_plan_file(std::move(request), *plan_file_), options_.plan);
    }
    if (options_.plan == "auto") {
      const Progress progress("measuring plans");
      rt::AutoPlan chosen = choose(request);
      request = std::move(chosen.request);
      choice_ = std::move(chosen.choice);
    }
    plan_ = std::make_shared<rt::Plan>(value_or_throw(rt::build_plan(request)));
    saved_ = read_saved_states(options_);
    if (writes && !options_.save_plan.empty())
      write_file(options_.save_plan, rt::plan_to_json(*plan_));
  }

  void tell_other_profile(const rt::PlanFile& file) const {
    if (options_.profile.empty() || file.profile.empty()) return;
    if (rt::digest_text(read_text_file(options_.profile)) == file.profile) return;
    print_aside("{}: it was planned for another profile than {}\n", options_.plan,
                options_.profile);
  }

  // Plans of rules stand beside that of the command.
  void check_routes() const {
    if (subject_.routes.empty()) return;
    if (options_.plan == "auto" || options_.plan == "reduce_scatter") {
      throw CommandError(
          ExitCode::AtFault,
          "{}: rules say how tensors are exchanged, and plan {} is one for all: give "
          "--plan for the tensors of other rules",
          options_.policy, options_.plan);
    }
  }

  // The options without a plan.
  rt::SyncOptions session_options(std::uint32_t rank, std::uint32_t world) {
    rt::SyncOptions session;
    if (devices_) session.device = devices_->of(rank);
    session.programs = subject_.programs;
    // Ranks share the machine's threads.
    session.threads = options_.execution.threads > 0
                          ? options_.execution.threads
                          : std::max(1U, std::thread::hardware_concurrency() / world);
    session.seed = options_.seed;
    session.machine_ranks = options_.ranks_per_machine;
    session.timeout = options_.timeout();
    return session;
  }

  rt::AutoPlanInputs auto_inputs(const rt::PlanRequest& request, std::uint32_t rank,
                                 const RankTensors& tensors) {
    rt::AutoPlanInputs inputs{.request = request,
                              .session = session_options(rank, request.world),
                              .gradients = views_of(subject_, tensors),
                              .step = options_.step,
                              .space = space_of(options_)};
    inputs.ready_seconds = ready_seconds();
    return inputs;
  }

  std::vector<rt::AutoPlanInputs> inputs_by_rank(const rt::PlanRequest& request,
                                                 const std::vector<RankTensors>& gradients) {
    std::vector<rt::AutoPlanInputs> all;
    all.reserve(request.world);
    for (std::uint32_t r = 0; r < request.world; ++r) {
      all.push_back(auto_inputs(request, r, gradients[r]));
    }
    return all;
  }

  // By tensor of the plan; empty: all tensors are ready when a step begins.
  std::vector<double> ready_seconds() const {
    std::vector<double> ready;
    for (const std::uint32_t tensor : subject_.sent) {
      if (!ready_.empty() && !options_.is_at_once) ready.push_back(ready_[tensor]);
    }
    return ready;
  }

  SyncRankOptions rank_options(std::uint32_t number) {
    SyncRankOptions rank;
    rank.session = session_options(number, plan_->world());
    rank.session.plan = plan_;
    rank.first_step = options_.step;
    rank.num_steps = options_.num_steps;
    rank.saved_states = saved_;
    rank.saves_states = !options_.state_out.empty();
    rank.ready_seconds = ready_seconds();
    return rank;
  }

  // Runs before ranks become threads. If a plan is only explained, nothing computes.
  std::vector<SyncRankOptions> options_by_rank() {
    std::vector<SyncRankOptions> all;
    for (std::uint32_t rank = 0; rank < plan_->world() && !options_.explain; ++rank) {
      all.push_back(rank_options(rank));
    }
    return all;
  }

  void write_states(const std::vector<SyncReport>& reports) const {
    for (std::uint32_t rank = 0; rank < reports.size(); ++rank) {
      write_saved_states(options_, rank, reports[rank].saved_states);
    }
  }

  std::vector<SyncReport> run_threads(const std::vector<RankTensors>& gradients) {
    const Cancellable scope;
    rt::LoopbackWorld world(plan_->world(), link_shape(options_));
    const std::vector<SyncRankOptions> ranks = options_by_rank();
    std::vector<SyncReport> reports(plan_->world());
    run_on_rank_threads(plan_->world(), [&](std::uint32_t r) {
      const auto transport = world.transport(r);
      reports[r] = run_sync_rank(ranks[r], views_of(subject_, gradients[r]), *transport);
    });
    return reports;
  }

  ExitCode explain() const {
    if (options_.json) {
      json written = {{"plan", json::parse(rt::plan_to_json(*plan_))}};
      if (choice_) written["auto"] = choice_json(*choice_);
      print_result(written);
      return ExitCode::Done;
    }
    if (choice_) print_text("{}\n", choice_text(*choice_));
    print_text("{}", rt::print_plan(*plan_, 0));
    return ExitCode::Done;
  }

  ExitCode report(const SyncReport& report, const RankTensors& tensors) const {
    if (report.was_stopped) {
      end_if_interrupted();
      throw CommandError(ExitCode::Unavailable, "another rank was stopped: no update is written");
    }
    if (!options_.output.empty()) write_updates(options_.output, subject_, tensors, report.updates);
    if (!options_.trace.empty()) write_file(options_.trace, rt::trace_json(*plan_, report.times));
    json written = report_of(options_, subject_, *plan_, report);
    if (choice_) written["auto"] = choice_json(*choice_);
    // The command that started the ranks prints an error if this one does not.
    const bool is_error = !report.same_bits && !output_settings().prints_json_errors;
    if (options_.json && !is_error) print_result(written);
    if (!options_.json) print_sync_report(written);
    if (report.same_bits) return ExitCode::Done;
    throw CommandError(ExitCode::Internal, "ranks hold different bits");
  }

  const SyncCommandOptions& options_;
  SyncSubject subject_;
  std::optional<rt::PlanFile> plan_file_;  // of --plan FILE
  std::optional<SyncDevices> devices_;
  std::shared_ptr<const rt::Plan> plan_;
  std::optional<rt::PlanChoice> choice_;  // for plan auto
  // By tensor of the input; empty: all are ready at once
  std::vector<double> ready_;
  std::vector<std::vector<std::uint8_t>> saved_;  // states to start from, by rank
};

// A file says which program each tensor takes.
void check_programs(const SyncCommandOptions& options) {
  if (!rt::is_plan_file(options.plan)) {
    if (!options.program.program.empty()) return;
    throw UsageError("PROGRAM is required, or --plan with a file of `cinch plan`");
  }
  const bool is_alone = options.program.program.empty() && options.program.bindings.empty() &&
                        options.policy.empty() && !options.piece_bytes &&
                        options.lengths == "auto" && options.probe.empty();
  if (is_alone) return;
  throw UsageError(
      "--plan {} says which program each tensor takes, and how it is exchanged: give no PROGRAM, "
      "--set, --policy, --piece-bytes, --lengths or --probe",
      options.plan);
}

}  // namespace

ExitCode run_sync_command(const SyncCommandOptions& options) {
  if (options.is_at_once && options.profile.empty()) {
    throw UsageError("--at-once needs --profile");
  }
  check_plan_name(options);
  check_programs(options);
  require_distinct_files({{"--output", options.output},
                          {"--trace", options.trace},
                          {"--save-plan", options.save_plan},
                          {"--state-out", options.state_out}});
  rt::set_log([](const std::string& line) { print_aside("cinch: {}\n", line); });
  if (options.transport == "mpi") return SyncCommand(options).run_on_mpi();
  if (options.transport == "ucx") return SyncCommand(options).run_on_ucx();
  if (options.transport == "nccl") return SyncCommand(options).run_on_nccl();
  return SyncCommand(options).run_on_loopback();
}

}  // namespace cinch::driver
