// A synchronisation on a GPU: launches as in any other call, and between them ranks that meet over
// the host. What is sent and received goes through host memory.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/exec/float_environment.h"
#include "runtime/gpu/session_impl.h"

namespace cinch::rt {
namespace {

using StatusWords = std::array<std::uint32_t, kStatusWords>;

RankStatus rank_status(const StatusWords& words) {
  if ((words[kStatusFlags] & kFlagNonFinite) != 0) return RankStatus::NonFinite;
  return words[kStatusFailed] != 0 ? RankStatus::Failed : RankStatus::Good;
}

}  // namespace

// Where each tensor stands with the other ranks.
class GpuSession::Impl::Meetings {
 public:
  Meetings(Impl& session, RankExchange& ranks, std::uint64_t step, GpuStream stream)
      : session_(session),
        ranks_(ranks),
        step_(step),
        stream_(stream),
        is_over_(session.num_tensors(), false) {}

  // All tensors, in order. Errors: those of RankExchange, of formulas, Device; the other ranks know
  // that this one has stopped.
  Status meet(const PlannedLaunch& meeting) {
    for (std::size_t t = 0; t < session_.num_tensors(); ++t) {
      if (is_over_[t] || session_.facts[t].num_elems() == 0) continue;
      if (Status status = meet_at(meeting, t); !status) return status;
    }
    return Ok{};
  }

  // For all tensors at which other ranks still wait.
  void give_up() {
    for (std::size_t t = 0; t < session_.num_tensors(); ++t) {
      if (is_over_[t] || session_.facts[t].num_elems() == 0) continue;
      is_over_[t] = true;
      if (!ranks_.agree(RankStatus::Failed)) break;
    }
    std::fill(is_over_.begin(), is_over_.end(), true);
  }

 private:
  Status meet_at(const PlannedLaunch& meeting, std::size_t tensor) {
    StatusWords words{};
    if (Status status = session_.device().read(bytes_of(words), address_of(tensor), stream_);
        !status) {
      return status;
    }
    const RankStatus own = rank_status(words);
    Result<RankStatus> all = own;
    if (own != RankStatus::Good || meeting.meeting == PlannedMeeting::Agree) {
      all = ranks_.agree(own);
    } else {
      const auto is_due = session_.hold(meeting.conditions, tensor, step_, stream_);
      if (!is_due) return tl::unexpected<Error>(is_due.error());
      if (*is_due) all = exchange(meeting, tensor);
    }
    is_over_[tensor] = !all || *all != RankStatus::Good;
    if (!all) return tl::unexpected<Error>(all.error());
    return *all == own ? Status(Ok{}) : mark(*all, words, tensor);
  }

  Result<RankStatus> exchange(const PlannedLaunch& meeting, std::size_t tensor) {
    const HostEnv env = session_.env(tensor, step_);
    const auto sent = read_buffer(meeting.arg1, tensor, env);
    if (!sent) return tl::unexpected<Error>(sent.error());
    const BufferInfo& to = session_.image().buffers[meeting.arg0];
    const auto size = session_.info().exprs.eval_int(to.size_bytes, env);
    if (!size) return tl::unexpected<Error>(size.error());
    std::vector<std::uint8_t> received(static_cast<std::size_t>(*size));
    const DefaultFloatEnvironment environment;
    auto all = ranks_.exchange({meeting.collective, to.dtype, *sent, received});
    if (!all || *all != RankStatus::Good) return all;
    const Status status =
        session_.device().write(session_.own_address(tensor, meeting.arg0), received, stream_);
    if (!status) return tl::unexpected<Error>(status.error());
    return all;
  }

  Result<std::vector<std::uint8_t>> read_buffer(BufferIndex buffer, std::size_t tensor,
                                                const HostEnv& env) const {
    const BufferInfo& info = session_.image().buffers[buffer];
    const auto size = session_.info().exprs.eval_int(info.size_bytes, env);
    if (!size) return tl::unexpected<Error>(size.error());
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*size));
    const Status status =
        session_.device().read(bytes, session_.own_address(tensor, buffer), stream_);
    if (!status) return tl::unexpected<Error>(status.error());
    return bytes;
  }

  // Kernels leave out the rest of a tensor that is marked or failed.
  Status mark(RankStatus all, StatusWords words, std::size_t tensor) const {
    if (all == RankStatus::NonFinite) words[kStatusFlags] |= kFlagNonFinite;
    if (all == RankStatus::Failed) words[kStatusFailed] = kRankFaultBit;
    return session_.device().write(address_of(tensor), bytes_of(words), stream_);
  }

  GpuAddress address_of(std::size_t tensor) const {
    return session_.arena.address(session_.call_words) + sizeof(StatusWords) * tensor;
  }
  static std::span<std::uint8_t> bytes_of(StatusWords& words) {
    return {reinterpret_cast<std::uint8_t*>(words.data()), sizeof words};
  }

  Impl& session_;
  RankExchange& ranks_;
  std::uint64_t step_;
  GpuStream stream_;
  std::vector<bool> is_over_;  // by tensor: a status other than Good is known to all
};

Result<bool> GpuSession::Impl::hold(const std::vector<GpuCondition>& conditions, std::size_t tensor,
                                    std::uint64_t step, GpuStream stream) const {
  const HostEnv at = env(tensor, step);
  const auto size = [&](std::uint32_t slot) -> Result<std::int64_t> {
    if (slot == kNoIndex) return 0;
    return info().exprs.eval_int(image().size_exprs[slot], at);
  };
  for (const GpuCondition& condition : conditions) {
    if (condition.buffer == kRoundCondition) {
      const auto end = size(condition.end), begin = size(condition.begin);
      if (!end) return tl::unexpected<Error>(end.error());
      if (!begin) return tl::unexpected<Error>(begin.error());
      if (std::int64_t{condition.wanted} >= *end - *begin) return false;
      continue;
    }
    std::uint8_t flag = 0;
    const GpuAddress from = own_address(tensor, condition.buffer);
    if (Status status = device().read({&flag, 1}, from, stream); !status) {
      return tl::unexpected<Error>(status.error());
    }
    if ((flag != 0) != (condition.wanted != 0)) return false;
  }
  return true;
}

Status GpuSession::Impl::begin_sync(std::uint64_t step, GpuStream stream) {
  const auto capturing = is_capturing(stream);
  if (!capturing) return tl::unexpected<Error>(capturing.error());
  if (*capturing) {
    return fail(ErrorKind::InvalidArgument, "ranks meet over the host, not in a captured graph");
  }
  if (Status status = check_host_conditions(EntryKind::Sync, step); !status) return status;
  if (Status status = write_facts(EntryKind::Sync, step); !status) return status;
  if (Status status = call_of(EntryKind::Sync).table.send(device(), stream); !status) return status;
  const GpuCode code =
      device().driver().fill(arena.address(call_words), 0, call_words_bytes, stream);
  return device().status(code, "beginning a call");
}

Status GpuSession::Impl::sync(std::uint64_t step, GpuStream stream, RankExchange& ranks,
                              std::span<const GpuAddress> updates) {
  const GpuDevice::Scope scope(device());
  Meetings meetings(*this, ranks, step, stream);
  Status status = begin_sync(step, stream);
  const Plan& plan = plan_of(EntryKind::Sync);
  for (std::size_t i = 0; i < plan.batches.size() && status; ++i) {
    const PlannedLaunch& first = plan.steps[plan.batches[i].begin];
    if (first.meeting == PlannedMeeting::None) {
      status = launch(EntryKind::Sync, plan.batches[i], false, stream);
      continue;
    }
    status = meetings.meet(first);
    if (first.meeting == PlannedMeeting::Agree && !is_f32() && status) {
      // Where gradients were widened from, updates are narrowed to.
      GpuTable& table = call_of(EntryKind::Sync).table;
      for (std::size_t t = 0; t < num_tensors(); ++t) table.entry(t).set_tensor(updates[t]);
      status = table.send(device(), stream);
    }
  }
  if (!status) meetings.give_up();
  return status;
}

}  // namespace cinch::rt
