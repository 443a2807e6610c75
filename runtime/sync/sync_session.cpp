#include <fmt/format.h>

#include "runtime/call/tensor_facts.h"
#include "runtime/core/hash.h"
#include "runtime/payload/payload.h"
#include "runtime/plan/check_plan.h"
#include "runtime/sync/device/offload.h"
#include "runtime/sync/sync_session_impl.h"

namespace cinch::rt {
Status SyncSession::Impl::check_parts() const {
  if (options.plan == nullptr) return invalid("no plan");
  if (plan().world() != transport.world()) {
    return invalid(fmt::format("a plan for {} ranks, the transport has {}", plan().world(),
                               transport.world()));
  }
  if (std::ranges::find(images, nullptr) != images.end()) {
    return invalid("a program is null");
  }
  for (const PlanTensor& tensor : plan().tensors) {
    if (tensor.codec == kDense) continue;
    if (tensor.codec >= images.size()) {
      return invalid(tensor.name + ": no such program");
    }
  }
  CINCH_TRY(check_rank(plan(), transport.rank()));
  CINCH_TRY(check_carriers());
  CINCH_TRY(check_offload());
  std::vector<SumRules> rules;
  rules.reserve(images.size());
  for (const ProgramImage* image : images) {
    rules.push_back({image->info.takes_partial_sums(), image->info.carrier.kind});
  }
  const auto refusal = find_refusal(plan(), rules);
  if (!refusal) return Ok{};
  const std::string& name = images[refusal->codec]->info.name;
  if (refusal->why == PlanRefusal::Why::PartialSums) {
    return invalid(fmt::format(
        "the plan adds up what {} does not decode for each rank, and its finish is not linear",
        name));
  }
  return invalid(
      fmt::format("the plan encodes sums by {}, which does not carry its own sums", name));
}

// Groups that carry sums have the program that carries those of the other group's program.
Status SyncSession::Impl::check_carriers() const {
  for (const Group& group : plan().groups) {
    if (group.carries == kNoGroup) continue;
    const std::uint32_t carried = plan().groups[group.carries].codec;
    if (group.codec >= images.size() || carried >= images.size()) {
      return invalid("a program that carries sums is not there");
    }
    const SumCarrier& carrier = images[carried]->info.carrier;
    const bool is_it = carrier.kind == CarrierKind::Program &&
                       images[group.codec]->info.name == carrier_name(images[carried]->info) &&
                       images[group.codec]->info.is_matrix == images[carried]->info.is_matrix;
    if (is_it) continue;
    return invalid(fmt::format("{} does not carry the sums of {}", images[group.codec]->info.name,
                               images[carried]->info.name));
  }
  return Ok{};
}

bool SyncSession::Impl::offloads() const {
  return options.device && std::ranges::any_of(plan().tensors, &PlanTensor::on_cpus);
}

// What CPUs encode, every rank decodes.
Status SyncSession::Impl::check_offload() const {
  if (!offloads()) return Ok{};
  for (std::size_t t = 0; t < plan().tensors.size(); ++t) {
    if (!plan().tensors[t].on_cpus || input_arrays[t].empty()) continue;
    return invalid(
        fmt::format("{}: the input {} of {} lies on the device, and the plan encodes the "
                    "tensor on CPUs: use a plan that does not",
                    plan().tensors[t].name, input_arrays[t].front(),
                    images[plan().tensors[t].codec]->info.name));
  }
  for (std::size_t i = 0; i < images.size(); ++i) {
    const auto& on_cpus = i < options.programs.size() ? options.programs[i] : nullptr;
    const std::string& name = images[i]->info.name;
    if (on_cpus == nullptr) {
      return invalid("the plan encodes tensors on CPUs, and " + name + " is not there for them");
    }
    if (on_cpus->image().fingerprint == images[i]->fingerprint) continue;
    return invalid(name + " is another program for CPUs than for the device");
  }
  return Ok{};
}

std::vector<CommonFact> SyncSession::Impl::common_facts() const {
  std::vector<CommonFact> facts = {
      {"payload format", std::to_string(kPayloadFormatVersion)},
      {"the seed", std::to_string(options.seed)},
      {"the number of ranks on each machine",
       std::to_string(options.machine_ranks == 0 ? transport.world() : options.machine_ranks)},
  };
  for (std::size_t i = 0; i < images.size(); ++i) {
    const ProgramInfo& info = images[i]->info;
    std::string program = info.name, values;
    for (const ConstantInfo& constant : info.constants)
      program += fmt::format(" {}={}", constant.name, constant.value);
    const auto& [low, high] = images[i]->fingerprint;
    facts.push_back({"program", program + fmt::format(", fingerprint {:016x}{:016x}", low, high)});
    for (std::size_t p = 0; p < wanted[i].size(); ++p)
      if (!info.params[p].is_input)
        values +=
            fmt::format("{}{}={}", values.empty() ? "" : " ", info.params[p].name, wanted[i][p]);
    facts.push_back({"parameters of " + info.name, values.empty() ? "none" : values});
  }
  for (const PlanTensor& tensor : plan().tensors) {
    const std::string codec = tensor.codec == kDense ? "f32" : std::to_string(tensor.codec);
    facts.push_back({"tensor", fmt::format("{} of {} x {}, codec {}", tensor.name, tensor.rows,
                                           tensor.cols, codec)});
  }
  facts.push_back({"plan", fmt::format("{} in {} pieces, digest {:016x}", plan().name,
                                       plan().pieces.size(), plan_digest(plan()))});
  return facts;
}

void SyncSession::Impl::find_images() {
  const auto note = [this](const auto& programs) {
    for (const auto& program : programs) {
      images.push_back(program == nullptr ? nullptr : &program->image());
    }
  };
  if (options.device) {
    note(options.device->programs);
  } else {
    note(options.programs);
  }
}

Result<std::unique_ptr<ComputeDevice>> SyncSession::Impl::open_device() {
  if (options.device) return open_gpu_queue(*options.device);
  return open_cpu_device({options.programs, options.threads, &cancelled});
}

Status SyncSession::Impl::open_compute() {
  auto device = TRY(open_device());
  const bool has_tensors = !options.device || options.device->has_tensors;
  ComputeDevice* tensor_device = device.get();
  // Both lanes of a host compute at once, so work on tensors must not use the tasks' device.
  if (!options.device || !has_tensors) {
    host = open_cpu_device({.threads = options.threads});
    tensor_device = host.get();
  }
  const DeviceTaskOptions of_tasks{.world = transport.world(),
                                   .rank = transport.rank(),
                                   .machine_ranks = options.machine_ranks,
                                   .seed = options.seed,
                                   .has_tensors = has_tensors,
                                   .transport = &transport,
                                   .host_wire = memory->wire()};
  if (offloads()) {
    compute = TRY(OffloadTasks::open(
        plan(), std::move(device), open_cpu_device({options.programs, options.threads, &cancelled}),
        of_tasks, *memory));
  } else {
    compute = TRY(DeviceTasks::open(plan(), std::move(device), of_tasks));
  }
  std::vector<bool> is_local;
  is_local.reserve(images.size());
  for (const ProgramImage* image : images) is_local.push_back(image->info.is_local);
  tensors = std::make_unique<StepTensors>(plan(), transport.rank(), *tensor_device, is_local);
  if (options.device) tensors->digests().skip_all();
  memory->bind(tensors->gradients(), tensors->updates(), tensors->inputs());
  return Ok{};
}

void SyncSession::Impl::find_inputs() {
  for (const ProgramImage* image : images)
    scalars.emplace_back(image->info, GivenInputs::Of::ScalarsOnly);
  for (const PlanTensor& tensor : plan().tensors) {
    std::vector<std::string_view>& names = input_arrays.emplace_back();
    for (std::uint32_t codec = 0; codec < images.size(); ++codec) {
      const bool is_its =
          codec == tensor.codec ||
          (tensor.codec != kDense && codec_carried_by(plan(), codec) == tensor.codec);
      if (!is_its) continue;
      for (const StateInfo& state : images[codec]->info.states) {
        const bool is_new = std::ranges::find(names, state.name) == names.end();
        if (state.is_input && is_new) names.push_back(state.name);
      }
    }
  }
}

Status SyncSession::Impl::set_input(std::uint32_t tensor, std::string_view name,
                                    const ConstTensorView& array) {
  if (tensor >= input_arrays.size()) return invalid(fmt::format("there is no tensor {}", tensor));
  const PlanTensor& of = plan().tensors[tensor];
  if (of.codec == kDense) return Ok{};
  const auto& names = input_arrays[tensor];
  const auto at = std::ranges::find(names, name);
  if (at != names.end()) return tensors->set_input(tensor, *at, array);
  const auto found = find_input_array(images[of.codec]->info, name);
  return invalid(of.name + ": " + found.error().message);
}

Status SyncSession::Impl::check_inputs(std::uint32_t tensor) const {
  for (const std::string_view name : input_arrays[tensor]) {
    if (tensors->has_input(tensor, name)) continue;
    const PlanTensor& of = plan().tensors[tensor];
    return invalid(
        fmt::format("{}: {} takes the input {}, an array of the tensor's shape: hand it "
                    "over in every step, before the gradient",
                    of.name, images[of.codec]->info.name, name));
  }
  return Ok{};
}

Status SyncSession::Impl::start() {
  find_images();
  find_inputs();
  CINCH_TRY(check_parts());
  for (const ProgramImage* image : images) {
    std::vector<double> values;
    values.reserve(image->info.params.size());
    for (const ParamInfo& param : image->info.params) values.push_back(param.default_value);
    shared.resize(shared.size() + values.size());
    wanted.push_back(values);
  }
  asked = bound = wanted;
  const std::uint32_t rank = transport.rank();
  CINCH_TRY(agree_on(common_facts(), transport, options.timeout));
  auto made = TRY(PieceMemory::make(plan(), rank));
  memory = std::make_unique<PieceMemory>(std::move(made));
  CINCH_TRY(open_compute());
  runner = std::make_unique<PlanRunner>(RunnerParts{plan(), transport, *compute, *memory, *tensors,
                                                    cancelled, options.timeout,
                                                    options.device.has_value()});
  records = std::make_unique<StepRecords>(plan(), rank);
  errors = std::make_unique<UpdateErrors>(plan(), rank, options.threads);
  common_order.resize(plan().tensors.size() + 1);
  return Ok{};
}

SyncSession::SyncSession(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SyncSession::~SyncSession() = default;

Result<std::unique_ptr<SyncSession>> SyncSession::open(const SyncOptions& options,
                                                       Transport& transport) {
  auto impl = std::make_unique<Impl>(options, transport);
  if (Status status = impl->start(); !status) {
    transport.abandon(status.error());
    return tl::unexpected<Error>(status.error());
  }
  return std::unique_ptr<SyncSession>(new SyncSession(std::move(impl)));
}

Status SyncSession::set_parameter(std::uint32_t codec, std::string_view name, double value) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    if (codec >= impl_->wanted.size()) return invalid("no such program");
    const auto own = TRY(impl_->values_with(codec, name, value));
    // What carries the program's sums follows its parameters.
    const auto carrier = impl_->carrier_with(codec, name);
    if (carrier) {
      impl_->asked[*carrier] = TRY(impl_->values_with(*carrier, name, value));
      impl_->scalars[*carrier].note(name);
    }
    impl_->asked[codec] = own;
    impl_->scalars[codec].note(name);
    return Ok{};
  });
}

Status SyncSession::set_input(std::uint32_t tensor, std::string_view name,
                              const ConstTensorView& array) {
  return guarded_use(impl_->in_use, [&] { return impl_->set_input(tensor, name, array); });
}

Status SyncSession::make_up_inputs(std::span<const ConstTensorView> arrays) {
  for (std::uint32_t codec = 0; codec < impl_->images.size(); ++codec) {
    for (const ParamInfo& param : impl_->images[codec]->info.params) {
      if (param.is_input) CINCH_TRY(set_parameter(codec, param.name, param.default_value));
    }
  }
  for (std::uint32_t t = 0; t < impl_->input_arrays.size() && t < arrays.size(); ++t) {
    for (const std::string_view name : impl_->input_arrays[t])
      CINCH_TRY(set_input(t, name, arrays[t]));
  }
  return Ok{};
}

Result<std::vector<double>> SyncSession::Impl::values_with(std::uint32_t codec,
                                                           std::string_view name,
                                                           double value) const {
  const ProgramInfo& info = images[codec]->info;
  ParameterValues values(info);
  for (std::size_t i = 0; i < asked[codec].size(); ++i) {
    CINCH_TRY(values.set(info.params[i].name, asked[codec][i]));
  }
  CINCH_TRY(values.set(name, value));
  const Status status = check_room(plan(), codec, info, values, next_step);
  if (!status) {
    return fail(status.error().kind,
                fmt::format("{} = {}: {}", name, value, status.error().message));
  }
  std::vector<double> all(asked[codec].size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = values.value(i);
  return all;
}

std::optional<std::uint32_t> SyncSession::Impl::carrier_with(std::uint32_t codec,
                                                             std::string_view parameter) const {
  for (std::uint32_t other = 0; other < images.size(); ++other) {
    if (codec_carried_by(plan(), other) != codec) continue;
    const bool has_it =
        std::ranges::any_of(images[other]->info.params,
                            [&](const ParamInfo& param) { return param.name == parameter; });
    if (has_it) return other;
  }
  return std::nullopt;
}

Result<std::vector<std::uint8_t>> SyncSession::save_states() {
  return guarded_use(impl_->in_use, [&]() -> Result<std::vector<std::uint8_t>> {
    if (impl_->is_under_way) return invalid("a step is under way");
    RankCheckpoint checkpoint = impl_->checkpoint();
    CINCH_TRY(collect_states(impl_->plan(), impl_->every_site(), checkpoint.sites));
    return write_checkpoint(checkpoint);
  });
}

std::vector<StatesFollow> SyncSession::Impl::states_follow() const {
  std::vector<StatesFollow> follow;
  follow.reserve(images.size());
  for (const ProgramImage* image : images) {
    follow.push_back(image == nullptr ? StatesFollow::Gradient : what_states_follow(*image));
  }
  return follow;
}

// Without its sites.
RankCheckpoint SyncSession::Impl::checkpoint() const {
  const std::uint32_t rank = transport.rank();
  RankCheckpoint made{plan_of_sums(plan()), transport.world(), rank, next_step, {}, {}, {}, later};
  made.finished = finished_pieces(plan(), rank, states_follow());
  if (!failure) return made;
  made.left.emplace();
  for (const std::uint32_t piece : left) {
    made.left->push_back(
        {plan().tensors[plan().pieces[piece].tensor].name, plan().pieces[piece].first});
  }
  return made;
}

Result<RestoreReport> SyncSession::Impl::restore_states(
    std::span<const std::vector<std::uint8_t>> saved) {
  CINCH_TRY(check_between_steps());
  std::uint64_t digest = 0;
  for (const auto& bytes : saved) digest = hash64(bytes.data(), bytes.size(), digest);
  const std::vector<CommonFact> facts = {
      {"saved states", fmt::format("of {} ranks, digest {:016x}", saved.size(), digest)}};
  CINCH_TRY(agree_on(facts, transport, options.timeout));
  std::vector<RankCheckpoint> checkpoints;
  for (const auto& bytes : saved) {
    auto checkpoint = TRY(read_checkpoint(bytes));
    checkpoints.push_back(std::move(checkpoint));
  }
  auto notes = take_newest_step(checkpoints);
  std::vector<std::uint32_t> apart =
      tensors_apart(plan(), transport.rank(), checkpoints, states_follow());
  const std::vector<std::uint32_t> own = apart;
  Exchange exchange{ExchangeKind::AllReduce};
  exchange.reduction = RankReduction::Max;
  exchange.dtype = kU32;
  exchange.input = {reinterpret_cast<const std::uint8_t*>(own.data()), own.size() * sizeof(own[0])};
  exchange.output = {reinterpret_cast<std::uint8_t*>(apart.data()), exchange.input.size()};
  CINCH_TRY(exchange_now(transport, exchange, options.timeout, "states that go together"));
  auto report = take_over(checkpoints, apart);
  if (report) report->notes.insert(report->notes.begin(), notes.begin(), notes.end());
  return report;
}

Status SyncSession::Impl::check_between_steps() const {
  if (is_under_way) return invalid("a step is under way");
  if (!failure) return Ok{};
  return invalid("an earlier step has failed: " + failure->message);
}

Result<RestoreReport> SyncSession::Impl::take_over(std::span<const RankCheckpoint> saved,
                                                   std::span<const std::uint32_t> apart) {
  auto report =
      cinch::rt::restore_states(plan(), transport.rank(), every_site(), saved, apart, [&] {
        Status status = Ok{};
        for (std::uint32_t piece = 0; piece < plan().pieces.size() && status; ++piece) {
          status = compute->reset_states(piece);
        }
        return status;
      });
  if (!report) return report;
  next_step = report->next_step;
  left.clear();
  return report;
}

Result<RestoreReport> SyncSession::restore_states(
    std::span<const std::vector<std::uint8_t>> saved) {
  return guarded_use(impl_->in_use, [&] { return impl_->restore_states(saved); });
}

Result<RestoreReport> SyncSession::Impl::restore_own(std::span<const std::uint8_t> saved) {
  CINCH_TRY(check_between_steps());
  const auto checkpoint = TRY(read_checkpoint(saved));
  std::vector<SavedSite> own;
  CINCH_TRY(collect_states(plan(), every_site(), own));
  // Do both have the same elements at the same sites?
  const bool has_same_sites =
      std::ranges::equal(checkpoint.sites, own, [](const SavedSite& x, const SavedSite& y) {
        return std::tie(x.tensor, x.rows, x.cols, x.site, x.first, x.num_elems) ==
               std::tie(y.tensor, y.rows, y.cols, y.site, y.first, y.num_elems);
      });
  const bool is_own =
      checkpoint.plan == plan_of_sums(plan()) && checkpoint.world == transport.world() &&
      checkpoint.rank == transport.rank() && has_same_sites &&
      checkpoint.finished == finished_pieces(plan(), transport.rank(), states_follow());
  for (const SavedSite& site : checkpoint.sites) {
    if (std::ranges::find(plan().tensors, site.tensor, &PlanTensor::name) != plan().tensors.end()) {
      continue;
    }
    return invalid(fmt::format("states of the tensor {} were saved, and no tensor has this name",
                               site.tensor));
  }
  if (!is_own) {
    return invalid(
        fmt::format("saved by rank {} of {} under the plan {}, of other pieces or by programs with "
                    "other states: this rank needs the states of all ranks",
                    checkpoint.rank, checkpoint.world, checkpoint.plan));
  }
  return take_over({&checkpoint, 1}, {});
}

Result<RestoreReport> SyncSession::restore_own_states(std::span<const std::uint8_t> saved) {
  return guarded_use(impl_->in_use, [&] { return impl_->restore_own(saved); });
}

Status SyncSession::reset_states(std::uint32_t tensor) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    if (tensor >= impl_->plan().tensors.size()) {
      return invalid(fmt::format("there is no tensor {}", tensor));
    }
    if (impl_->is_under_way) return invalid("a step is under way");
    for (std::uint32_t piece = 0; piece < impl_->plan().pieces.size(); ++piece) {
      if (impl_->plan().pieces[piece].tensor != tensor) continue;
      CINCH_TRY(impl_->compute->reset_states(piece));
    }
    return Ok{};
  });
}

Result<std::vector<StateArray>> SyncSession::state_arrays() {
  return guarded_use(impl_->in_use, [&]() -> Result<std::vector<StateArray>> {
    if (impl_->is_under_way) return invalid("a step is under way");
    return list_state_arrays(impl_->plan(), impl_->every_site());
  });
}

Status SyncSession::set_state_array(std::size_t place, std::span<const std::uint8_t> bytes) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    if (impl_->is_under_way) return invalid("a step is under way");
    return cinch::rt::set_state_array(impl_->plan(), impl_->every_site(), place, bytes);
  });
}

void SyncSession::Impl::give_up(const Error& why) {
  if (failure) return;
  failure = why;
  transport.abandon(why);
}

Status SyncSession::give_up(const Error& why) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    impl_->give_up(why);
    return Ok{};
  });
}

void SyncSession::ask_to_stop() {
  impl_->asks_to_stop = true;
}

bool SyncSession::is_asked_to_stop() const {
  return impl_->is_stopping;
}

const TaskTimes& SyncSession::times() const {
  return impl_->runner->times();
}

Result<std::string> SyncSession::report() const {
  return guarded_use(impl_->in_use, [&]() -> Result<std::string> {
    if (impl_->is_under_way) return invalid("a step is under way");
    SyncMemory memory = impl_->compute->memory_use();
    memory.gradients = impl_->errors->memory_bytes();
    return step_report_json(impl_->plan(), impl_->transport.rank(), impl_->runner->times(), memory,
                            impl_->errors->values());
  });
}

Result<std::string> SyncSession::trace() const {
  return guarded_use(impl_->in_use, [&]() -> Result<std::string> {
    if (impl_->is_under_way) return invalid("a step is under way");
    std::vector<TaskTimes> by_rank(impl_->transport.world());
    by_rank[impl_->transport.rank()] = impl_->runner->times();
    return trace_json(impl_->plan(), by_rank);
  });
}

Status SyncSession::visit_states(const SiteVisitor& visit) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    if (impl_->is_under_way) return invalid("a step is under way");
    impl_->compute->visit_states(visit);
    return Ok{};
  });
}

}  // namespace cinch::rt
