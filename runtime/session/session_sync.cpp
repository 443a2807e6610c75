// A synchronisation: one call of all ranks, in which the program's collectives meet.
#include <algorithm>

#include "runtime/exec/float_environment.h"
#include "runtime/session/session_impl.h"
#include "runtime/session/tensor_convert.h"

namespace cinch::rt {
namespace {

// Knows whether the ranks still wait for this one: not after an error, nor once some rank has
// stopped.
class WatchedExchange : public RankExchange {
 public:
  explicit WatchedExchange(RankExchange& ranks) : ranks_(ranks) {}

  Result<RankStatus> exchange(const CollectiveCall& call) override {
    return note(ranks_.exchange(call));
  }
  Result<RankStatus> agree(RankStatus own) override {
    const DefaultFloatEnvironment environment;
    return note(ranks_.agree(own));
  }
  bool is_over() const { return is_over_; }

 private:
  Result<RankStatus> note(Result<RankStatus> status) {
    is_over_ = !status || *status != RankStatus::Good;
    return status;
  }

  RankExchange& ranks_;
  bool is_over_ = false;
};

}  // namespace

// Of the gradient alone: what other ranks gave has been looked at by them.
Result<RankStatus> Session::Impl::own_status(const Result<CallOutcome>& outcome,
                                             const float* gradient) {
  if (outcome) return outcome->non_finite ? RankStatus::NonFinite : RankStatus::Good;
  if (outcome.error().kind != ErrorKind::CheckFailed) return RankStatus::Failed;
  const std::span<const float> values(gradient, static_cast<std::size_t>(num_elems()));
  const auto finite = all_finite(values, runner, options.cancelled);
  if (!finite) return tl::unexpected<Error>(finite.error());
  return *finite ? RankStatus::Failed : RankStatus::NonFinite;
}

Result<bool> Session::Impl::run_sync(const float* gradient, float* update, std::uint64_t step,
                                     RankExchange& ranks) {
  WatchedExchange watched(ranks);
  if (Status status = buffers.prepare(EntryKind::Sync, env(step), options.poison_memory); !status) {
    if (const auto all = watched.agree(RankStatus::Failed); !all) {
      return tl::unexpected<Error>(all.error());
    }
    return tl::unexpected<Error>(status.error());
  }
  buffers.bind(BufferRole::Gradient, 0, const_cast<float*>(gradient));
  buffers.bind(BufferRole::Output, 0, update);
  const auto outcome = run(EntryKind::Sync, step, &watched);
  if (watched.is_over()) {
    if (!outcome) return tl::unexpected<Error>(outcome.error());
    return outcome->non_finite;
  }
  const auto own = own_status(outcome, gradient);
  const auto all = watched.agree(own ? *own : RankStatus::Failed);
  if (!own) return tl::unexpected<Error>(own.error());
  if (!all) return tl::unexpected<Error>(all.error());
  if (*all == RankStatus::NonFinite) return true;
  if (!outcome) return tl::unexpected<Error>(outcome.error());
  if (*all == RankStatus::Failed) return fail(ErrorKind::CheckFailed, "another rank failed");
  return false;
}

Status Session::Impl::sync(ConstTensorView gradient, TensorView update, std::uint64_t step,
                           RankExchange& ranks) {
  if (Status status = check_call(EntryKind::Sync); !status) return status;
  if (Status status = check_tensor(gradient.data, gradient.dtype, gradient.num_elems); !status) {
    return status;
  }
  if (Status status = check_tensor(update.data, update.dtype, update.num_elems); !status) {
    return status;
  }
  if (num_elems() == 0) return Ok{};
  const auto values = as_f32(gradient);
  if (!values) return tl::unexpected<Error>(values.error());
  // The program may read the gradient after it wrote the update, so they never share memory.
  const bool has_scratch = update.dtype != kF32 || update.data == gradient.data;
  auto* to = static_cast<float*>(update.data);
  if (has_scratch) {
    if (Status status = reserve_f32(output); !status) return status;
    to = reinterpret_cast<float*>(output.data());
  }
  const auto non_finite = run_sync(*values, to, step, ranks);
  if (!non_finite) return tl::unexpected<Error>(non_finite.error());
  if (*non_finite) return fill_nan(update, runner, options.cancelled);
  if (has_scratch) {
    const std::span<const float> made(to, static_cast<std::size_t>(num_elems()));
    const Status status = convert_from_f32(made, update, runner, options.cancelled);
    if (!status) return status;
  }
  commit(EntryKind::Sync);
  return Ok{};
}

}  // namespace cinch::rt
