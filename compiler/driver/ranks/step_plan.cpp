#include "compiler/driver/ranks/step_plan.h"

#include <algorithm>
#include <map>
#include <thread>

#include "compiler/bench/tuning_search.h"
#include "compiler/driver/process/terminal.h"
#include "compiler/driver/ranks/rank_transports.h"
#include "compiler/driver/ranks/sync_rank.h"
#include "compiler/driver/target.h"
#include "runtime/sync/task_facts.h"

namespace cinch::driver {
namespace {

constexpr double kDenseSeconds = 0.1;
constexpr std::int64_t kMostMeasured = 16 << 20;

std::uint32_t threads_of(const PlanCommandOptions& options, std::uint32_t ranks_here) {
  if (options.execution.threads > 0) return options.execution.threads;
  return std::max(1U, std::thread::hardware_concurrency() / std::max(1U, ranks_here));
}

std::string device_of(const PlanCommandOptions& options) {
  if (!is_gpu(options.execution)) return "cpu";
  return open_gpu(options.execution)->arch();
}

// The shape of the largest tensor that the program may take.
std::vector<std::int64_t> shape_for(const rt::ProgramInfo& info,
                                    const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<std::int64_t> largest = {1};
  std::int64_t most = 0;
  for (const auto& shape : shapes) {
    if (info.is_matrix && shape.size() < 2) continue;
    std::int64_t elems = 1;
    for (const std::int64_t size : shape) elems *= size;
    if (elems <= most) continue;
    most = elems;
    largest = shape;
  }
  return largest;
}

rt::KnownNetwork network_of(const PlanCommandOptions& options) {
  if (options.network.empty()) {
    if (options.ranks == 0) {
      throw UsageError("--ranks is required: the number of ranks; or --network, which says it");
    }
    constexpr std::chrono::milliseconds kTimeout{30000};
    return loopback_network(
        options.ranks, {options.latency_us / 1e6, options.megabits_per_second * 1e6 / 8}, kTimeout);
  }
  rt::KnownNetwork network{
      value_or_throw(rt::network_from_json(read_text_file(options.network)), options.network), {}};
  if (options.ranks > 0 && options.ranks != network.model.world) {
    throw CommandError(ExitCode::AtFault, "{}: measured with {} ranks, not {}", options.network,
                       network.model.world, options.ranks);
  }
  return network;
}

std::uint32_t machine_ranks(const PlanCommandOptions& options, const rt::NetworkModel& network) {
  const std::uint32_t asked = options.ranks_per_machine;
  if (asked == 0) return network.ranks_per_machine;
  if (network.world % asked != 0) {
    throw UsageError("--machine-ranks {}: {} ranks cannot be split into machines of {} each", asked,
                     network.world, asked);
  }
  if (!network.has_two_networks() || network.ranks_per_machine == asked) return asked;
  throw CommandError(ExitCode::AtFault, "{}: measured with {} ranks on each machine, not {}",
                     options.network, network.ranks_per_machine, asked);
}

rt::SpeedTable measure(const PlanCommandOptions& options, const SyncSubject& subject,
                       const std::vector<std::vector<std::int64_t>>& shapes, std::uint32_t ranks) {
  const Progress progress("measuring programs");
  rt::SpeedTable table;
  table.device = device_of(options);
  table.threads = threads_of(options, ranks);
  const bool has_gpu = is_gpu(options.execution);
  table.cores = std::max(1U, std::thread::hardware_concurrency());
  SyncDevices devices(options.execution, subject.sources);
  rt::SpeedOptions speed;
  speed.session.device = devices.of(0);
  speed.session.programs = subject.programs;
  speed.session.threads = table.threads;
  rt::CostInputs costs;
  costs.cores = table.cores;
  costs.threads = has_gpu ? 0 : table.threads;
  costs.ranks_per_machine = std::max(1U, ranks);
  speed.copies = table.copies = rt::copies_on(costs);
  speed.seconds = kDenseSeconds;
  std::int64_t most = 1;
  for (const auto& shape : shapes) most = std::max(most, matrix_of(shape).num_elems());
  value_or_throw(rt::measure_dense(most, speed, costs));
  table.dense = costs.dense;
  table.clear = costs.clear;
  rt::SpeedOptions beside = speed;
  if (const auto& device = speed.session.device) {
    rt::CpuSpeeds& cpus = table.cpus.emplace();
    cpus.threads = table.threads;
    value_or_throw(rt::measure_copies(*device, most, cpus));
    beside.session.device.reset();
    rt::CostInputs on_cpus;
    value_or_throw(rt::measure_dense(most, beside, on_cpus));
    cpus.dense = on_cpus.dense;
    cpus.clear = on_cpus.clear;
  }
  speed.seconds = beside.seconds = options.seconds;
  for (std::uint32_t codec = 0; codec < subject.programs.size(); ++codec) {
    // What carries sums is measured on the tensors of what it carries.
    const auto carried = std::ranges::find(subject.carriers, codec);
    const std::uint32_t of = carried == subject.carriers.end()
                                 ? codec
                                 : static_cast<std::uint32_t>(carried - subject.carriers.begin());
    Shape shape = matrix_of(shape_for(subject.programs[of]->info(), shapes));
    if (!subject.programs[of]->info().is_matrix) {
      shape = {std::min(shape.num_elems(), kMostMeasured), 1};
    }
    const std::vector<float> gradient = bench::made_up_gradient(shape.num_elems());
    const rt::ConstTensorView view(gradient.data(), kF32, shape.num_elems());
    const auto measured = [&](const rt::SpeedOptions& of) {
      return value_or_throw(rt::measure_codec(codec, view, shape.rows, shape.cols, of));
    };
    table.programs.push_back({subject.sources[codec].program, subject.sources[codec].is_carrier,
                              rt::image_of(subject.programs[codec])->fingerprint, measured(speed),
                              has_gpu ? measured(beside) : rt::CodecSpeed{}});
  }
  return table;
}

// The programs to choose from, each once.
std::vector<std::string> programs_of(const PlanCommandOptions& options) {
  std::vector<std::string> programs = split_programs(options.programs, "--programs");
  std::erase(programs, "none");
  std::vector<std::string> distinct;
  for (const std::string& each : programs) {
    if (std::ranges::find(distinct, each) == distinct.end()) distinct.push_back(each);
  }
  return distinct;
}

std::vector<std::uint32_t> codecs_of(const std::vector<std::int64_t>& shape,
                                     std::size_t num_programs) {
  std::vector<std::uint32_t> codecs;
  for (std::uint32_t i = 0; i < num_programs && !is_sent_exactly(shape); ++i) codecs.push_back(i);
  return codecs;
}

// Some tensors may travel in f32, which is averaged.
void warn_of_sums(const SyncSubject& subject, const rt::PlanRequest& request,
                  std::size_t num_programs) {
  for (std::size_t i = 0; i < num_programs; ++i) {
    const rt::CodecFacts& codec = request.codecs[i];
    if (codec.takes_partial_sums && codec.carrier.kind == rt::CarrierKind::Itself) continue;
    print_aside("{}: computes something else than a mean, which tensors in f32 take\n",
                subject.sources[i].program);
  }
}

rt::PlanFile file_of(const PlanCommandOptions& options, const SyncSubject& subject,
                     std::size_t num_programs, const rt::StepRoutes& routes) {
  const rt::PlanRequest& chosen = routes.chosen.request;
  rt::PlanFile file;
  file.world = chosen.world;
  file.ranks_per_machine = chosen.ranks_per_machine;
  // Programs that no tensor takes are left out.
  std::map<std::uint32_t, std::uint32_t> number;
  for (const rt::PlanTensor& tensor : chosen.tensors) {
    if (tensor.codec < num_programs) number.emplace(tensor.codec, 0);
  }
  for (auto& [codec, place] : number) {
    place = static_cast<std::uint32_t>(file.programs.size());
    file.programs.push_back(
        {subject.sources[codec].program, rt::image_of(subject.programs[codec])->fingerprint});
  }
  file.routes = chosen.routes;
  if (file.routes.empty()) {
    file.routes.push_back({.plan = chosen.plan,
                           .piece_bytes = chosen.piece_bytes,
                           .lengths = chosen.lengths,
                           .option = chosen.option});
  }
  for (std::size_t t = 0; t < chosen.tensors.size(); ++t) {
    const rt::PlanTensor& tensor = chosen.tensors[t];
    const bool is_dense = tensor.codec == rt::kDense;
    file.tensors.push_back({tensor.name, tensor.rows, tensor.cols,
                            is_dense ? rt::kDense : number.at(tensor.codec),
                            chosen.routes.empty() ? 0 : chosen.route_of[t]});
  }
  const auto digest = [](const std::string& path) {
    return path.empty() ? std::string() : rt::digest_text(read_text_file(path));
  };
  file.profile = digest(options.profile);
  file.network = digest(options.network);
  file.speeds = digest(options.speeds);
  file.predicted_seconds = routes.chosen.cost.seconds;
  return file;
}

}  // namespace

Shape matrix_of(const std::vector<std::int64_t>& shape) {
  rt::NpyArray array;
  array.shape = shape;
  return shape_of(array, true);
}

bool is_sent_exactly(const std::vector<std::int64_t>& shape) {
  return shape.size() < 2 || matrix_of(shape).num_elems() < rt::kSmallElements;
}

SyncSubject load_programs(const ExecutionOptions& execution,
                          const std::vector<std::string>& programs) {
  SyncSubject subject;
  for (const std::string& name : programs) {
    ProgramOptions program;
    program.program = name;
    add_program(program, execution, subject);
  }
  add_carriers(execution, subject);
  return subject;
}

void set_speeds(const PlanCommandOptions& options, const rt::SpeedTable& table,
                const SyncSubject& subject, rt::CostInputs& to) {
  to.dense = table.dense;
  to.clear = table.clear;
  to.on_cpus = table.cpus;
  for (std::size_t i = 0; i < subject.programs.size(); ++i) {
    const ProgramOptions& source = subject.sources[i];
    const rt::ProgramSpeed* const found = table.find(source.program, source.is_carrier);
    if (found == nullptr) {
      throw CommandError(
          ExitCode::AtFault,
          "{}: the speed of {} was not measured: cinch plan --measure {} measures it",
          options.speeds, source.program, source.program);
    }
    if (found->fingerprint != rt::image_of(subject.programs[i])->fingerprint) {
      throw CommandError(ExitCode::AtFault, "{}: another version of {} was measured",
                         options.speeds, source.program);
    }
    to.codecs.push_back(found->speed);
    if (to.on_cpus) to.on_cpus->codecs.push_back(found->on_cpus);
  }
}

void check_predictable(const SyncSubject& subject, const rt::PlanRequest& request) {
  for (std::size_t i = 0; i < request.codecs.size(); ++i) {
    if (!request.codecs[i].has_sync || request.codecs[i].sync_rounds) continue;
    throw CommandError(ExitCode::AtFault,
                       "{}: a `sync` body that decides while it runs which collectives it makes "
                       "cannot be planned",
                       subject.sources[i].program);
  }
}

rt::SpeedTable read_or_measure_speeds(const PlanCommandOptions& options, const SyncSubject& subject,
                                      const std::vector<std::vector<std::int64_t>>& shapes,
                                      std::uint32_t ranks) {
  if (options.speeds.empty()) return measure(options, subject, shapes, ranks);
  return value_or_throw(rt::speeds_from_json(read_text_file(options.speeds)), options.speeds);
}

std::string predicted_trace(const rt::Plan& plan, const rt::PlanSpans& spans, double seconds,
                            const std::vector<double>& ready) {
  std::vector<rt::TaskTimes> by_rank;
  for (const std::vector<rt::TaskSpan>& of_rank : spans) {
    rt::TaskTimes& times = by_rank.emplace_back();
    times.end = seconds;
    times.is_in_parts = true;
    times.ready = ready;
    for (const rt::TaskSpan& span : of_rank) {
      times.tasks.push_back(
          {span.begin, span.end, static_cast<std::uint64_t>(std::max(0.0, span.sent_bytes))});
    }
  }
  return rt::trace_json(plan, by_rank);
}

rt::SpeedTable measure_speeds(const PlanCommandOptions& options,
                              const std::vector<std::string>& programs,
                              const std::vector<std::vector<std::int64_t>>& shapes,
                              std::uint32_t ranks) {
  return measure(options, load_programs(options.execution, programs), shapes, ranks);
}

StepPlan plan_step(const PlanCommandOptions& options) {
  StepPlan plan;
  plan.profile = read_profile(options.profile);
  const std::vector<std::string> programs = programs_of(options);
  std::vector<std::string> loaded = programs;
  const auto half = std::ranges::find(loaded, kHalfProgram);
  const auto half_codec = static_cast<std::uint32_t>(half - loaded.begin());
  std::optional<rt::SpeedTable> table;
  if (!options.speeds.empty()) {
    table = value_or_throw(rt::speeds_from_json(read_text_file(options.speeds)), options.speeds);
  }
  plan.has_half = half != loaded.end();
  const bool has_half = plan.has_half || !table || table->find(kHalfProgram, false);
  if (half == loaded.end() && has_half) loaded.emplace_back(kHalfProgram);
  const rt::KnownNetwork network = network_of(options);
  const std::uint32_t world = network.model.world;
  if (world > kMaxSurveyRanks) {
    throw CommandError(ExitCode::AtFault, "{} ranks: steps of at most {} are predicted", world,
                       kMaxSurveyRanks);
  }
  const std::uint32_t on_each = machine_ranks(options, network.model);
  // Ranks over loopback are threads of one machine.
  const std::uint32_t ranks_here = network.model.transport == "loopback" ? world : on_each;
  const SyncSubject subject = load_programs(options.execution, loaded);

  rt::StepRoutesRequest request;
  request.plans.world = world;
  request.plans.ranks_per_machine = on_each;
  for (const Program& program : subject.programs) {
    request.plans.codecs.push_back(
        rt::codec_facts(rt::image_of(program), world, 0, on_each > 1 ? on_each : 0));
  }
  for (std::size_t i = 0; i < subject.carriers.size(); ++i) {
    request.plans.codecs[i].carrier_codec = subject.carriers[i];
  }
  check_predictable(subject, request.plans);
  warn_of_sums(subject, request.plans, programs.size());
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<double> ready;
  for (const rt::ReadyTensor& tensor : plan.profile.tensors) {
    shapes.push_back(shape_of(tensor));
    const Shape shape = matrix_of(shapes.back());
    request.plans.tensors.push_back({tensor.name, shape.rows, shape.cols});
    request.codecs.push_back(codecs_of(shapes.back(), programs.size()));
    ready.push_back(tensor.ready_seconds);
  }
  if (!table) table = measure(options, subject, shapes, ranks_here);
  plan.device = table->device;
  const bool is_on_device = table->device != "cpu";
  request.costs = rt::costs_on(network, ranks_here, is_on_device ? 0 : table->threads);
  request.costs.is_on_device = is_on_device;
  request.costs.cores = table->cores;
  set_speeds(options, *table, subject, request.costs);
  request.costs.ready_seconds = std::move(ready);
  if (has_half) request.half_codec = half_codec;
  const Progress progress("planning");
  plan.routes = value_or_throw(rt::plan_step(request));
  plan.file = file_of(options, subject, programs.size(), plan.routes);
  return plan;
}

}  // namespace cinch::driver
