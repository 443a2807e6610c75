// A synchronisation: runs from one meeting of the ranks to the next.
#include <utility>

#include "runtime/core/numbers/floats.h"
#include "runtime/session/session_impl.h"
#include "runtime/session/tensor_convert.h"

namespace cinch::rt {

// Looks at this rank's gradient alone: the other ranks have checked theirs.
RankStatus Session::Impl::status_after(const Error& error) {
  if (error.kind != ErrorKind::CheckFailed) return RankStatus::Failed;
  const std::span<const float> values(syncing.gradient, static_cast<std::size_t>(num_elems()));
  const auto finite = all_finite(values, runner, options.cancelled);
  return finite && !*finite ? RankStatus::NonFinite : RankStatus::Failed;
}

RankPoint Session::Impl::stop_sync(const Error& error) {
  syncing.failure = error;
  syncing.point = {status_after(error), std::nullopt};
  return syncing.point;
}

Result<std::optional<RankPoint>> Session::Impl::begin_sync(ConstTensorView gradient,
                                                           TensorView update, std::uint64_t step) {
  const auto error_of = [](const Status& status) { return tl::unexpected<Error>(status.error()); };
  syncing = {};
  narrow = {};
  CINCH_TRY(check_call(EntryKind::Sync));
  CINCH_TRY(check_tensor(gradient.data, gradient.dtype, gradient.num_elems));
  CINCH_TRY(check_tensor(update.data, update.dtype, update.num_elems));
  if (num_elems() == 0) return std::nullopt;
  const auto values = as_f32(gradient);
  CINCH_TRY(values);
  // The program may read the gradient after it wrote the update, so they must not share memory.
  const bool has_scratch = update.dtype != kF32 || update.data == gradient.data;
  if (has_scratch) {
    CINCH_TRY(reserve_f32(output));
  }
  syncing = {true, *values, update, has_scratch, step, {}, std::nullopt};
  return start_sync();
}

RankPoint Session::Impl::start_sync() {
  const HostEnv at = env(syncing.step);
  if (Status status = buffers.prepare(EntryKind::Sync, at, options.poison_memory); !status) {
    return stop_sync(status.error());
  }
  void* const to = syncing.has_scratch ? static_cast<void*>(output.data()) : syncing.update.data;
  if (Status status = bind_gradient(syncing.gradient); !status) return stop_sync(status.error());
  if (Status status = bind_output(static_cast<float*>(to)); !status) {
    return stop_sync(status.error());
  }
  use_best_code();
  const Status begun = executor.begin(EntryKind::Sync, inputs_of(syncing.step));
  if (!begun) return stop_sync(begun.error());
  return run_to_point();
}

RankPoint Session::Impl::run_to_point() {
  const auto state = executor.resume();
  if (!state) return stop_sync(state.error());
  RankPoint& point = syncing.point;
  point = {};
  if (*state == RunState::NonFinite) point.own = RankStatus::NonFinite;
  if (*state == RunState::Meets) {
    point.call = executor.meeting();
  } else {
    accesses = executor.take_accesses();
  }
  return point;
}

Result<std::optional<RankPoint>> Session::Impl::continue_sync(RankStatus all) {
  if (!syncing.is_under_way)
    return fail(ErrorKind::InvalidArgument, "no synchronisation is under way");
  if (all == RankStatus::Good && syncing.point.call) {
    // Binds the memo: formulas are evaluated on the way.
    (void)env(syncing.step);
    return run_to_point();
  }
  const Status status = end_sync(all);
  syncing = {};
  CINCH_TRY(status);
  return std::nullopt;
}

Status Session::Impl::end_sync(RankStatus all) {
  const TensorView& update = syncing.update;
  if (all == RankStatus::NonFinite) return fill_nan(update, runner, options.cancelled);
  if (syncing.failure) return tl::unexpected<Error>(*syncing.failure);
  if (all == RankStatus::Failed) return fail(ErrorKind::CheckFailed, "another rank failed");
  if (syncing.has_scratch) {
    const std::span<const float> made(reinterpret_cast<const float*>(output.data()),
                                      static_cast<std::size_t>(num_elems()));
    const Status status = convert_from_f32(made, update, runner, options.cancelled);
    if (!status) return status;
  }
  commit(EntryKind::Sync);
  return Ok{};
}

Status Session::Impl::sync(ConstTensorView gradient, TensorView update, std::uint64_t step,
                           RankExchange& ranks) {
  auto point = begin_sync(gradient, update, step);
  while (point && *point) {
    const auto all = [&] {
      const DefaultFloatEnvironment environment;
      return meet_at(**point, ranks);
    }();
    if (!all) {
      syncing = {};
      return tl::unexpected<Error>(all.error());
    }
    point = continue_sync(*all);
  }
  return point ? Status(Ok{}) : Status(tl::unexpected<Error>(point.error()));
}

}  // namespace cinch::rt
