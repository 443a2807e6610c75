// A step: its tensors become ready, its tasks run, and all ranks end it in the same way.
#include <fmt/format.h>

#include <bit>
#include <iterator>
#include <numeric>
#include <ranges>

#include "runtime/call/tensor_facts.h"
#include "runtime/core/hash.h"
#include "runtime/planner/planner.h"
#include "runtime/sync/sync_session_impl.h"

namespace cinch::rt {
namespace {

// The rank whose values hold on all ranks.
constexpr std::uint32_t kRoot = 0;

template <typename T>
Exchange broadcast(std::vector<T>& values) {
  Exchange exchange{ExchangeKind::Broadcast, kRoot};
  exchange.output = {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)};
  return exchange;
}

}  // namespace

Status SyncSession::Impl::begin(std::uint64_t step, const StepOptions& wanted_options,
                                bool in_parts) {
  if (is_under_way) return invalid("a step is under way");
  if (failure) {
    return fail(ErrorKind::Cancelled, "an earlier step has failed: " + failure->message);
  }
  if (wanted_options.measures_errors && options.device && options.device->has_tensors) {
    return invalid("errors of tensors in a device's memory are not measured");
  }
  for (std::uint32_t codec = 0; codec < scalars.size(); ++codec) {
    Status given = scalars[codec].use(step);
    if (given) continue;
    // The other ranks would wait for this one.
    const Error told{given.error().kind, images[codec]->info.name + ": " + given.error().message};
    give_up(told);
    return tl::unexpected<Error>(told);
  }
  Status status = tensors->begin(
      {wanted_options.scale, wanted_options.is_sum, wanted_options.skips_non_finite});
  if (!status) return status;  // nothing has begun: another scale may be used next
  how = wanted_options;
  wanted = asked;
  step_number = step;
  is_under_way = true;
  is_in_parts = in_parts;
  knows_end = false;
  taken_back.clear();
  is_ready.assign(plan().tensors.size(), 0);
  ready_order.clear();
  errors->begin();
  const std::uint64_t words[] = {std::bit_cast<std::uint64_t>(how.scale), how.is_sum ? 1U : 0U,
                                 how.skips_non_finite ? 1U : 0U, how.measures_errors ? 1U : 0U};
  records->begin(step, hash64(words, sizeof words, 0), next_step);
  runner->begin(step);
  if (in_parts) runner->start([this] { return open_step(); });
  return Ok{};
}

// Steps allocate nothing.
std::string_view SyncSession::Impl::in_step(std::string_view what) {
  phase.clear();
  fmt::format_to(std::back_inserter(phase), "{} step {}", what, step_number);
  return phase;
}

Status SyncSession::Impl::open_step() {
  if (!shared.empty()) {
    auto next = shared.begin();
    for (const auto& values : wanted) next = std::ranges::copy(values, next).out;
    CINCH_TRY(
        exchange_now(transport, broadcast(shared), options.timeout, in_step("parameters of")));
    CINCH_TRY(apply_parameters());
  }
  return compute->begin_step(step_number);
}

Status SyncSession::Impl::apply_parameters() {
  auto next = shared.begin();
  for (std::uint32_t codec = 0; codec < wanted.size(); ++codec) {
    const auto& params = images[codec]->info.params;
    for (std::size_t i = 0; i < params.size(); ++i, ++next) {
      wanted[codec][i] = *next;
      if (bound[codec][i] == *next && !params[i].is_input) continue;
      CINCH_TRY(compute->set_parameter(codec, params[i].name, *next));
      bound[codec][i] = *next;
    }
  }
  return Ok{};
}

Status SyncSession::Impl::set_ready(std::uint32_t tensor, const ConstTensorView& gradient,
                                    const TensorView& update, bool is_used) {
  if (!is_under_way) return invalid("no step is under way");
  Status status = Ok{};
  if (tensor >= is_ready.size()) {
    status = invalid(fmt::format("tensor {} of {}", tensor, is_ready.size()));
  } else if (is_ready[tensor] != 0) {
    status = invalid(fmt::format("tensor {} is ready twice", plan().tensors[tensor].name));
  } else {
    status = check_inputs(tensor);
    if (status) status = tensors->set(tensor, gradient, update);
    if (status && how.measures_errors) status = errors->keep(tensor, gradient);
  }
  if (!status) {
    runner->fail_step(status.error());
    return status;
  }
  is_ready[tensor] = 1;
  ready_order.push_back(tensor);
  if (is_used) records->note_used(tensor);
  runner->make_ready(tensor);
  return Ok{};
}

Result<StepOutcome> SyncSession::Impl::finish() {
  if (!is_under_way) return invalid("no step is under way");
  if (const auto tensor = runner->find_unready()) {
    runner->fail_step(
        {ErrorKind::InvalidArgument,
         fmt::format("tensor {} is not ready at the step's end", plan().tensors[*tensor].name)});
  }
  auto outcome =
      end_step(is_in_parts ? runner->join() : runner->run([this] { return open_step(); }));
  is_under_way = false;
  tensors->forget_inputs();
  if (!outcome) give_up(outcome.error());
  return outcome;
}

Result<StepOutcome> SyncSession::Impl::end_step(Status status) {
  // A rank's own failure takes precedence over what others report.
  const bool tells = status || status.error().kind == ErrorKind::Cancelled ||
                     status.error().kind == ErrorKind::TimedOut;
  if (Status ended = compute->end_step(); tells && !ended) status = ended;
  // Before the records, so that a rank which is lost here leaves the step undone on all.
  if (status) status = share_order();
  bool may_succeed_elsewhere = status.has_value();
  if (status) status = agree_on_end();
  if (!status && knows_end) may_succeed_elsewhere = false;
  StepOutcome outcome;
  outcome.is_skipped = status && how.skips_non_finite && records->is_any_non_finite();
  if (status && !outcome.is_skipped) status = settle_unused();
  if (status) status = tensors->end();
  if (status && !outcome.is_skipped && how.measures_errors)
    status = errors->measure(tensors->given_updates(), how.is_sum, transport, options.timeout);
  if (!status && may_succeed_elsewhere) {
    later.emplace();
    if (!collect_states(plan(), every_site(), *later)) later.reset();
  }
  if (!status || outcome.is_skipped) compute->take_back_step();
  CINCH_TRY(status);
  commit(outcome);
  return outcome;
}

void SyncSession::Impl::commit(const StepOutcome& outcome) {
  next_step = step_number + 1;
  if (outcome.is_skipped) {
    taken_back.resize(plan().pieces.size());
    std::iota(taken_back.begin(), taken_back.end(), 0U);
  }
  left.swap(taken_back);
}

// A rank that fails outside a `sync` body never gets here. It gives up, and the transport tells the
// others if it can.
Status SyncSession::Impl::agree_on_end() {
  if (asks_to_stop) records->ask_to_stop();
  const auto has_non_finite = TRY(tensors->take_non_finite());
  bool is_finite = !has_non_finite;
  const auto& protocols = records->protocols();
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    const PartOutcome outcome = compute->protocols().outcome(protocols[i]);
    records->set_outcome(i, outcome);
    is_finite = is_finite && outcome.status != RankStatus::NonFinite;
  }
  if (!is_finite) records->note_non_finite();
  records->set_updates(tensors->digests().of_all());
  CINCH_TRY(exchange_now(transport, records->exchange(), options.timeout, in_step("end of")));
  knows_end = true;
  if (records->is_any_asking_to_stop()) is_stopping = true;
  CINCH_TRY(records->check_steps());
  const bool is_skipped = how.skips_non_finite && records->is_any_non_finite();
  // An update that ranks are about to fill with NaN differs between them until then.
  const bool is_settled = std::ranges::all_of(
      std::views::iota(std::size_t{0}, protocols.size()),
      [&](std::size_t i) { return records->outcome(i).status == RankStatus::Good; });
  if (!is_skipped && is_settled && records->do_updates_differ()) {
    CINCH_TRY(tensors->digests().compare(tensors->given_updates(), transport, options.timeout));
  }
  return settle_protocols();
}

Status SyncSession::Impl::settle_protocols() {
  const auto& protocols = records->protocols();
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    const JointOutcome joint = records->outcome(i);
    if (joint.status == RankStatus::Good) continue;
    const std::uint32_t piece = protocols[i];
    if (joint.status == RankStatus::Failed) return failure_of(piece, joint.rank);
    taken_back.push_back(piece);
    // The rank has done both itself already.
    if (compute->protocols().outcome(piece).status == RankStatus::NonFinite) continue;
    compute->take_back(piece);
    CINCH_TRY(compute->fill_update(piece, RankTasks::Fill::NaN, *memory));
    CINCH_TRY(tensors->deliver(plan().pieces[piece].tensor));
  }
  return Ok{};
}

// Gets the reason from the rank at fault, if the transport can deliver it; otherwise this does not
// wait long.
Status SyncSession::Impl::failure_of(std::uint32_t piece, std::uint32_t rank) {
  constexpr std::chrono::milliseconds kNews{2000};
  if (rank == transport.rank()) {
    const auto& own = compute->protocols().failure(piece);
    const std::string why = own ? own->message : "failed";
    return fail(own ? own->kind : ErrorKind::CheckFailed,
                describe_piece(plan(), piece) + ": " + why, own ? own->native_code : 0);
  }
  Status told = exchange_now(transport, records->exchange(), std::min(options.timeout, kNews),
                             in_step("end of"));
  if (!told && told.error().kind == ErrorKind::Cancelled) return told;
  return fail(ErrorKind::CheckFailed,
              fmt::format("{}: rank {} has failed", describe_piece(plan(), piece), rank));
}

Status SyncSession::Impl::settle_unused() {
  for (std::uint32_t tensor = 0; tensor < plan().tensors.size(); ++tensor) {
    if (records->is_used_anywhere(tensor)) continue;
    const ElementRange part = updated_part(plan().tensors[tensor], transport.rank());
    for (std::uint32_t piece = 0; piece < plan().pieces.size(); ++piece) {
      const Piece& of = plan().pieces[piece];
      if (of.tensor != tensor) continue;
      compute->take_back(piece);
      taken_back.push_back(piece);
      const bool is_own = of.first >= part.first && of.first < part.first + part.num_elems;
      if (is_own) CINCH_TRY(compute->fill_update(piece, RankTasks::Fill::Zero, *memory));
    }
    CINCH_TRY(tensors->deliver(tensor));
  }
  return Ok{};
}

// Ranks follow the order in which rank 0's tensors became ready in its first step, if that was one
// in parts.
Status SyncSession::Impl::share_order() {
  if (has_order) return Ok{};
  const std::size_t count = ready_order.size();
  for (std::uint32_t i = 0; i < count; ++i) common_order[ready_order[i]] = i;
  common_order[count] = !is_in_parts                  ? 0
                        : runner->waits_for_tensors() ? kFewBundlesAhead
                                                      : kBundlesAhead;
  CINCH_TRY(exchange_now(transport, broadcast(common_order), options.timeout,
                         in_step("order of tensors in")));
  has_order = true;
  if (common_order[count] == 0) return Ok{};
  const std::vector<std::uint32_t> places(common_order.begin(), common_order.end() - 1);
  std::vector<std::uint8_t> is_taken(count);
  for (const std::uint32_t place : places) {
    if (place >= count || is_taken[place]++ != 0) {
      return invalid("an order that does not name each tensor once");
    }
  }
  runner->set_order(order_of_tasks(plan(), transport.rank(), places, common_order[count]));
  return Ok{};
}

Result<StepOutcome> SyncSession::Impl::step(std::span<const ConstTensorView> gradients,
                                            std::span<const TensorView> updates, std::uint64_t step,
                                            const StepOptions& wanted_options) {
  Status status = begin(step, wanted_options, false);
  CINCH_TRY(status);
  const std::size_t count = plan().tensors.size();
  if (gradients.size() != count || updates.size() != count) {
    status = invalid(fmt::format("{} gradients and {} updates for {} tensors", gradients.size(),
                                 updates.size(), count));
  }
  for (std::uint32_t t = 0; t < count && status; ++t) {
    status = set_ready(t, gradients[t], updates[t], true);
  }
  if (status) return finish();
  is_under_way = false;
  give_up(status.error());
  return tl::unexpected<Error>(status.error());
}

// ---- public calls ----

Status SyncSession::begin_step(std::uint64_t step, const StepOptions& options) {
  return guarded_use(impl_->in_use, [&] { return impl_->begin(step, options, true); });
}

Status SyncSession::set_ready(std::uint32_t tensor, const ConstTensorView& gradient,
                              const TensorView& update, bool is_used) {
  return guarded_use(impl_->in_use,
                     [&] { return impl_->set_ready(tensor, gradient, update, is_used); });
}

bool SyncSession::is_done(std::uint32_t tensor) const {
  return tensor < impl_->plan().tensors.size() && impl_->runner->is_done(tensor);
}

Status SyncSession::wait_for(std::uint32_t tensor) {
  if (impl_->runner->wait_for(tensor)) return Ok{};
  return invalid(fmt::format("tensor {} is not ready in this step", tensor));
}

Status SyncSession::fail_step(const Error& why) {
  return guarded_use(impl_->in_use, [&]() -> Status {
    if (!impl_->is_under_way) return invalid("no step is under way");
    impl_->runner->fail_step(why);
    return Ok{};
  });
}

bool SyncSession::has_step_failed() const {
  return impl_->runner->has_failed();
}

bool SyncSession::is_in_step() const {
  return impl_->is_under_way;
}

Result<StepOutcome> SyncSession::finish_step() {
  return guarded_use(impl_->in_use, [&] { return impl_->finish(); });
}

Result<StepOutcome> SyncSession::step(std::span<const ConstTensorView> gradients,
                                      std::span<const TensorView> updates, std::uint64_t step,
                                      const StepOptions& options) {
  return guarded_use(impl_->in_use, [&] { return impl_->step(gradients, updates, step, options); });
}

Status SyncSession::step(std::span<const ConstTensorView> gradients,
                         std::span<const TensorView> updates, std::uint64_t step) {
  const auto outcome = this->step(gradients, updates, step, StepOptions{});
  return outcome ? Status(Ok{}) : Status(tl::unexpected<Error>(outcome.error()));
}

}  // namespace cinch::rt
