// Bodies of sync_session.h.
#include "runtime/sync/sync_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/call/parameters.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/core/hash.h"
#include "runtime/core/use_flag.h"
#include "runtime/payload/payload.h"
#include "runtime/plan/check_plan.h"
#include "runtime/plan/partial_sums.h"
#include "runtime/plan/plan_digest.h"
#include "runtime/session/tensor_convert.h"
#include "runtime/sync/agreement.h"
#include "runtime/sync/checkpoint.h"
#include "runtime/sync/compute_tasks.h"
#include "runtime/sync/device_tasks.h"
#include "runtime/sync/piece_memory.h"
#include "runtime/sync/plan_runner.h"

namespace cinch::rt {
namespace {

constexpr std::uint32_t kParameterRoot = 0;

std::string values_text(const ProgramInfo& info, const std::vector<double>& values) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", info.params[i].name, values[i]);
  }
  return text.empty() ? "none" : text;
}

std::string program_text(const ProgramImage& image) {
  const ProgramInfo& info = image.info;
  std::string text = info.name;
  for (const ConstantInfo& constant : info.constants) {
    text += fmt::format(" {}={}", constant.name, constant.value);
  }
  const auto& [low, high] = image.fingerprint;
  return text + fmt::format(", fingerprint {:016x}{:016x}", low, high);
}

}  // namespace

struct SyncSession::Impl {
  Impl(SyncOptions opts, Transport& to) : options(std::move(opts)), transport(to) {}

  Status start();
  void find_images();
  Status open_compute();
  Status check_parts() const;
  std::vector<CommonFact> common_facts() const;
  Status check_tensors(std::span<const ConstTensorView> gradients,
                       std::span<const TensorView> updates) const;
  Status share_parameters();
  Status apply_parameters();
  Status agree_on_end(std::uint64_t step);
  Status end_together(std::uint64_t step);
  Status run_step(std::span<const ConstTensorView> gradients, std::span<const TensorView> updates,
                  std::uint64_t step);
  Status step(std::span<const ConstTensorView> gradients, std::span<const TensorView> updates,
              std::uint64_t step);
  Result<RestoreReport> restore_states(std::span<const std::vector<std::uint8_t>> saved);
  void give_up(const Error& why);

  const Plan& plan() const { return *options.plan; }
  EverySite every_site() {
    return [this](const SiteVisitor& visit) { compute->visit_states(visit); };
  }

  UseFlag in_use;
  SyncOptions options;
  Transport& transport;
  std::atomic<bool> cancelled{false};
  std::vector<const ProgramImage*> images;  // of the programs, for CPUs or a device; may be null
  std::unique_ptr<PieceMemory> memory;
  std::unique_ptr<RankTasks> compute;
  std::unique_ptr<PlanRunner> runner;
  // By codec and parameter: asked for here, and bound.
  std::vector<std::vector<double>> wanted, bound;
  std::vector<double> shared;
  std::atomic<bool> asks_to_stop{false};
  std::atomic<bool> is_stopping{false};
  std::vector<std::uint64_t> ends;  // of each rank: its step, and whether it asks to stop
  std::vector<ByteRange> parts;
  std::optional<Error> failure;  // of an earlier step
  std::uint64_t next_step = 0;   // one more than the last that succeeded, here or before saving
  bool has_stepped = false;
};

Status SyncSession::Impl::check_parts() const {
  if (options.plan == nullptr) return fail(ErrorKind::InvalidArgument, "no plan");
  if (plan().world() != transport.world()) {
    return fail(ErrorKind::InvalidArgument, fmt::format("a plan for {} ranks, the transport has {}",
                                                        plan().world(), transport.world()));
  }
  if (std::ranges::find(images, nullptr) != images.end()) {
    return fail(ErrorKind::InvalidArgument, "a program is null");
  }
  for (const PlanTensor& tensor : plan().tensors) {
    if (tensor.codec == kDense) continue;
    if (tensor.codec >= images.size()) {
      return fail(ErrorKind::InvalidArgument, tensor.name + ": no such program");
    }
  }
  if (Status status = check_plan(plan()); !status) return status;
  std::vector<bool> takes;
  takes.reserve(images.size());
  for (const ProgramImage* image : images) takes.push_back(image->info.takes_partial_sums());
  if (const auto codec = find_refusing_codec(plan(), takes)) {
    return fail(
        ErrorKind::InvalidArgument,
        fmt::format("the plan adds up what {} does not decode for each rank, and its finish "
                    "is not linear",
                    images[*codec]->info.name));
  }
  return Ok{};
}

std::vector<CommonFact> SyncSession::Impl::common_facts() const {
  std::vector<CommonFact> facts = {
      {"payload format", std::to_string(kPayloadFormatVersion)},
      {"the seed", std::to_string(options.seed)},
  };
  for (std::size_t i = 0; i < images.size(); ++i) {
    facts.push_back({"program", program_text(*images[i])});
    facts.push_back(
        {"parameters of " + images[i]->info.name, values_text(images[i]->info, wanted[i])});
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

Status SyncSession::Impl::open_compute() {
  const std::uint32_t world = transport.world(), rank = transport.rank();
  auto tasks =
      options.device
          ? DeviceTasks::open(
                plan(), {*options.device, world, rank, options.seed, &transport, memory->wire()})
          : ComputeTasks::open(
                plan(), {options.programs, options.threads, world, rank, options.seed, &cancelled});
  if (!tasks) return tl::unexpected<Error>(tasks.error());
  compute = std::move(*tasks);
  return Ok{};
}

Status SyncSession::Impl::start() {
  find_images();
  if (Status status = check_parts(); !status) return status;
  for (const ProgramImage* image : images) {
    std::vector<double> values;
    values.reserve(image->info.params.size());
    for (const ParamInfo& param : image->info.params) values.push_back(param.default_value);
    shared.resize(shared.size() + values.size());
    wanted.push_back(values);
  }
  bound = wanted;
  const std::uint32_t world = transport.world(), rank = transport.rank();
  if (Status status = agree_on(common_facts(), transport, options.timeout); !status) return status;
  auto made = PieceMemory::make(plan(), rank, !options.device);
  if (!made) return tl::unexpected<Error>(made.error());
  memory = std::make_unique<PieceMemory>(std::move(*made));
  if (Status status = open_compute(); !status) return status;
  runner = std::make_unique<PlanRunner>(
      RunnerParts{plan(), transport, *compute, *memory, cancelled, options.timeout});
  ends.resize(2 * std::size_t{world});
  for (std::uint64_t r = 0; r < world; ++r) parts.push_back({16 * r, 16});
  return Ok{};
}

Status SyncSession::Impl::check_tensors(std::span<const ConstTensorView> gradients,
                                        std::span<const TensorView> updates) const {
  const auto& tensors = plan().tensors;
  if (gradients.size() != tensors.size() || updates.size() != tensors.size()) {
    return fail(ErrorKind::InvalidArgument,
                fmt::format("{} gradients and {} updates for {} tensors", gradients.size(),
                            updates.size(), tensors.size()));
  }
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (const auto& [data, dtype, elems] :
         {std::tuple(gradients[t].data, gradients[t].dtype, gradients[t].num_elems),
          std::tuple(static_cast<const void*>(updates[t].data), updates[t].dtype,
                     updates[t].num_elems)}) {
      Status status = check_tensor_dtype(dtype);
      if (status && elems != tensors[t].num_elems()) {
        status = fail(ErrorKind::InvalidArgument,
                      fmt::format("{} elements, the plan has {}", elems, tensors[t].num_elems()));
      }
      if (status && data == nullptr && elems > 0) {
        status = fail(ErrorKind::InvalidArgument, "a null tensor");
      }
      if (!status) {
        return fail(status.error().kind, tensors[t].name + ": " + status.error().message);
      }
    }
  }
  return Ok{};
}

// Only where there are parameters at all.
Status SyncSession::Impl::share_parameters() {
  if (shared.empty()) return Ok{};
  auto next = shared.begin();
  for (const auto& values : wanted) next = std::ranges::copy(values, next).out;
  Exchange exchange{ExchangeKind::Broadcast, kParameterRoot};
  exchange.output = {reinterpret_cast<std::uint8_t*>(shared.data()),
                     shared.size() * sizeof(double)};
  Status status = exchange_now(transport, exchange, options.timeout, "parameters of the step");
  return status ? apply_parameters() : status;
}

Status SyncSession::Impl::apply_parameters() {
  auto next = shared.begin();
  for (std::uint32_t codec = 0; codec < wanted.size(); ++codec) {
    const auto& params = images[codec]->info.params;
    for (std::size_t i = 0; i < params.size(); ++i, ++next) {
      wanted[codec][i] = *next;
      if (bound[codec][i] == *next) continue;
      if (Status status = compute->set_parameter(codec, params[i].name, *next); !status) {
        return status;
      }
      bound[codec][i] = *next;
    }
  }
  return Ok{};
}

Status SyncSession::Impl::agree_on_end(std::uint64_t step) {
  const std::uint64_t own[2] = {step, asks_to_stop ? 1U : 0U};
  Exchange exchange{ExchangeKind::AllGather};
  exchange.input = {reinterpret_cast<const std::uint8_t*>(own), sizeof own};
  exchange.output = {reinterpret_cast<std::uint8_t*>(ends.data()), 8 * ends.size()};
  exchange.received = parts;
  Status status = exchange_now(transport, exchange, runner->patience(), "end of the step");
  if (!status) return status;
  for (std::size_t rank = 0; rank < transport.world(); ++rank) {
    if (ends[2 * rank + 1] != 0) is_stopping = true;
    if (ends[2 * rank] == step) continue;
    return fail(ErrorKind::InvalidArgument,
                fmt::format("rank {} was at step {}, rank {} at step {}", rank, ends[2 * rank],
                            transport.rank(), step));
  }
  return Ok{};
}

// A rank that has failed does not come here: it gives up, which the others are told, where the
// transport can.
Status SyncSession::Impl::end_together(std::uint64_t step) {
  Status status = agree_on_end(step);
  const auto& elsewhere = runner->failure_elsewhere();
  if (!elsewhere) return status;
  const bool is_late = !status && status.error().kind == ErrorKind::TimedOut;
  return status || is_late ? Status(tl::unexpected<Error>(*elsewhere)) : status;
}

Status SyncSession::Impl::run_step(std::span<const ConstTensorView> gradients,
                                   std::span<const TensorView> updates, std::uint64_t step) {
  if (Status status = share_parameters(); !status) return status;
  if (Status status = compute->begin_step(step); !status) return status;
  memory->bind(gradients, updates);
  Status status = runner->run();
  // What failed here goes before what others tell of it.
  const bool tells = status || status.error().kind == ErrorKind::Cancelled ||
                     status.error().kind == ErrorKind::TimedOut;
  if (Status ended = compute->end_step(); tells && !ended) status = ended;
  if (status) status = end_together(step);
  if (!status) compute->take_back_step();
  return status;
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
    if (codec >= impl_->wanted.size()) return fail(ErrorKind::InvalidArgument, "no such program");
    const ProgramInfo& info = impl_->images[codec]->info;
    ParameterValues values(info);
    if (Status status = values.set(name, value); !status) return status;
    const auto found = std::ranges::find(info.params, name, &ParamInfo::name);
    impl_->wanted[codec][static_cast<std::size_t>(found - info.params.begin())] = value;
    return Ok{};
  });
}

Status SyncSession::Impl::step(std::span<const ConstTensorView> gradients,
                               std::span<const TensorView> updates, std::uint64_t step) {
  if (failure) {
    return fail(ErrorKind::Cancelled, "an earlier step has failed: " + failure->message);
  }
  has_stepped = true;
  Status status = check_tensors(gradients, updates);
  if (status) status = run_step(gradients, updates, step);
  if (status) {
    next_step = step + 1;
  } else {
    give_up(status.error());
  }
  return status;
}

Status SyncSession::step(std::span<const ConstTensorView> gradients,
                         std::span<const TensorView> updates, std::uint64_t step) {
  return guarded_use(impl_->in_use, [&] { return impl_->step(gradients, updates, step); });
}

Result<std::vector<std::uint8_t>> SyncSession::save_states() {
  return guarded_use(impl_->in_use, [&]() -> Result<std::vector<std::uint8_t>> {
    RankCheckpoint checkpoint{impl_->plan().name,
                              impl_->transport.world(),
                              impl_->transport.rank(),
                              impl_->next_step,
                              {}};
    const Status status = collect_states(impl_->plan(), impl_->every_site(), checkpoint.sites);
    if (!status) return tl::unexpected<Error>(status.error());
    return write_checkpoint(checkpoint);
  });
}

Result<RestoreReport> SyncSession::Impl::restore_states(
    std::span<const std::vector<std::uint8_t>> saved) {
  if (has_stepped || failure) {
    return fail(ErrorKind::InvalidArgument, "states are restored before the first step");
  }
  std::uint64_t digest = 0;
  for (const auto& bytes : saved) digest = hash64(bytes.data(), bytes.size(), digest);
  const std::vector<CommonFact> facts = {
      {"saved states", fmt::format("of {} ranks, digest {:016x}", saved.size(), digest)}};
  Status status = agree_on(facts, transport, options.timeout);
  if (!status) return tl::unexpected<Error>(status.error());
  std::vector<RankCheckpoint> checkpoints;
  for (const auto& bytes : saved) {
    auto checkpoint = read_checkpoint(bytes);
    if (!checkpoint) return tl::unexpected<Error>(checkpoint.error());
    checkpoints.push_back(std::move(*checkpoint));
  }
  auto report = cinch::rt::restore_states(plan(), transport.rank(), every_site(), checkpoints);
  if (report) next_step = report->next_step;
  return report;
}

Result<RestoreReport> SyncSession::restore_states(
    std::span<const std::vector<std::uint8_t>> saved) {
  return guarded_use(impl_->in_use, [&] { return impl_->restore_states(saved); });
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

Status SyncSession::visit_states(const SiteVisitor& visit) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    impl_->compute->visit_states(visit);
    return Ok{};
  });
}

}  // namespace cinch::rt
