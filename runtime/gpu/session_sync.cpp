// A synchronisation on a GPU: launches as in any other call, and between them ranks that meet over
// the host: of several tensors within one call, where what is sent and received goes through host
// memory, or of one tensor in parts.
#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/core/float_environment.h"
#include "runtime/gpu/session_impl.h"
#include "runtime/image/buffer_size.h"

namespace cinch::rt {
namespace {

template <typename Words>
RankStatus rank_status(const Words& words) {
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
    const auto words = session_.read_status(tensor, stream_);
    if (!words) return tl::unexpected<Error>(words.error());
    const RankStatus own = rank_status(*words);
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
    return *all == own ? Status(Ok{}) : session_.mark_status(*all, *words, tensor, stream_);
  }

  Result<RankStatus> exchange(const PlannedLaunch& meeting, std::size_t tensor) {
    const HostEnv env = session_.env(tensor, step_);
    const auto sent = read_buffer(meeting.arg1, tensor, env);
    if (!sent) return tl::unexpected<Error>(sent.error());
    const BufferInfo& to = session_.image().buffers[meeting.arg0];
    const auto size = buffer_bytes(session_.image(), meeting.arg0, env);
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
    const auto size = buffer_bytes(session_.image(), buffer, env);
    if (!size) return tl::unexpected<Error>(size.error());
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*size));
    const Status status =
        session_.device().read(bytes, session_.own_address(tensor, buffer), stream_);
    if (!status) return tl::unexpected<Error>(status.error());
    return bytes;
  }

  Impl& session_;
  RankExchange& ranks_;
  std::uint64_t step_;
  GpuStream stream_;
  std::vector<bool> is_over_;  // by tensor: a status other than Good is known to all
};

GpuAddress GpuSession::Impl::status_address(std::size_t tensor) const {
  return arena.address(call_words) + sizeof(StatusWords) * tensor;
}

auto GpuSession::Impl::read_status(std::size_t tensor, GpuStream stream) const
    -> Result<StatusWords> {
  StatusWords words{};
  const std::span bytes(reinterpret_cast<std::uint8_t*>(words.data()), sizeof words);
  const Status status = device().read(bytes, status_address(tensor), stream);
  if (!status) return tl::unexpected<Error>(status.error());
  return words;
}

Status GpuSession::Impl::mark_status(RankStatus all, StatusWords words, std::size_t tensor,
                                     GpuStream stream) const {
  if (all == RankStatus::NonFinite) words[kStatusFlags] |= kFlagNonFinite;
  if (all == RankStatus::Failed) words[kStatusFailed] = kRankFaultBit;
  const std::span bytes(reinterpret_cast<std::uint8_t*>(words.data()), sizeof words);
  return device().write(status_address(tensor), bytes, stream);
}

Status GpuSession::Impl::turn_to_updates(std::span<const GpuAddress> updates, GpuStream stream) {
  GpuTable& table = call_of(EntryKind::Sync).table;
  for (std::size_t t = 0; t < num_tensors(); ++t) table.entry(t).set_tensor(updates[t]);
  return table.send(device(), stream);
}

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

Status GpuSession::Impl::refuse_capture(GpuStream stream) const {
  const auto capturing = is_capturing(stream);
  if (!capturing) return tl::unexpected<Error>(capturing.error());
  if (!*capturing) return Ok{};
  return fail(ErrorKind::InvalidArgument, "ranks meet over the host, not in a captured graph");
}

Status GpuSession::Impl::begin_sync(std::uint64_t step, GpuStream stream) {
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
  Status status = refuse_capture(stream);
  if (status) {
    status = order.run(stream, [&] { return run_sync(step, stream, meetings, updates); });
  }
  if (!status) meetings.give_up();
  return status;
}

Status GpuSession::Impl::run_sync(std::uint64_t step, GpuStream stream, Meetings& meetings,
                                  std::span<const GpuAddress> updates) {
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
      status = turn_to_updates(updates, stream);
    }
  }
  return status;
}

Result<std::optional<RankPoint>> GpuSession::Impl::begin_parts(std::uint64_t step, GpuStream stream,
                                                               GpuAddress update) {
  const GpuDevice::Scope scope(device());
  syncing = {};
  if (Status status = refuse_capture(stream); !status) {
    return tl::unexpected<Error>(status.error());
  }
  return order.run(stream, [&]() -> Result<std::optional<RankPoint>> {
    if (Status status = begin_sync(step, stream); !status) {
      return tl::unexpected<Error>(status.error());
    }
    syncing = {.is_under_way = true, .step = step, .stream = stream, .update = update};
    return run_to_point();
  });
}

Result<std::optional<RankPoint>> GpuSession::Impl::continue_parts(RankStatus all) {
  if (!syncing.is_under_way)
    return fail(ErrorKind::InvalidArgument, "no synchronisation is under way");
  const GpuDevice::Scope scope(device());
  syncing.is_over = all != RankStatus::Good;
  return order.run(syncing.stream, [&]() -> Result<std::optional<RankPoint>> {
    Status status = Ok{};
    if (all != rank_status(syncing.words)) {
      status = mark_status(all, syncing.words, 0, syncing.stream);
    }
    if (status) status = launch_rest(plan_of(EntryKind::Sync).batches[syncing.batch++]);
    if (!status) return tl::unexpected<Error>(status.error());
    return run_to_point();
  });
}

Result<std::optional<RankPoint>> GpuSession::Impl::run_to_point() {
  const Plan& plan = plan_of(EntryKind::Sync);
  for (; syncing.batch < plan.batches.size(); ++syncing.batch) {
    const GpuBatch& batch = plan.batches[syncing.batch];
    const PlannedLaunch& first = plan.steps[batch.begin];
    if (first.meeting != PlannedMeeting::None && !syncing.is_over) {
      auto point = point_at(first);
      if (!point || *point) return point;
    }
    if (Status status = launch_rest(batch); !status) return tl::unexpected<Error>(status.error());
  }
  syncing = {};
  return std::nullopt;
}

Result<std::optional<RankPoint>> GpuSession::Impl::point_at(const PlannedLaunch& meeting) {
  const auto words = read_status(0, syncing.stream);
  if (!words) return tl::unexpected<Error>(words.error());
  syncing.words = *words;
  RankPoint point{rank_status(*words), std::nullopt};
  if (point.own != RankStatus::Good || meeting.meeting == PlannedMeeting::Agree) return point;
  const auto is_due = hold(meeting.conditions, 0, syncing.step, syncing.stream);
  if (!is_due) return tl::unexpected<Error>(is_due.error());
  if (!*is_due) return std::nullopt;
  const auto call = call_at(meeting);
  if (!call) return tl::unexpected<Error>(call.error());
  point.call = *call;
  return point;
}

Result<CollectiveCall> GpuSession::Impl::call_at(const PlannedLaunch& meeting) const {
  const HostEnv at = env(0, syncing.step);
  const auto bytes_of = [&](BufferIndex buffer) -> Result<std::span<std::uint8_t>> {
    const auto size = buffer_bytes(image(), buffer, at);
    if (!size) return tl::unexpected<Error>(size.error());
    auto* const data = reinterpret_cast<std::uint8_t*>(  // NOLINT(performance-no-int-to-ptr)
        own_address(0, buffer));
    return std::span(data, static_cast<std::size_t>(*size));
  };
  const auto input = bytes_of(meeting.arg1), output = bytes_of(meeting.arg0);
  if (!input) return tl::unexpected<Error>(input.error());
  if (!output) return tl::unexpected<Error>(output.error());
  return CollectiveCall{meeting.collective, image().buffers[meeting.arg0].dtype, *input, *output};
}

// What the batch does besides the meeting of ranks that it may be.
Status GpuSession::Impl::launch_rest(const GpuBatch& batch) {
  const PlannedLaunch& first = plan_of(EntryKind::Sync).steps[batch.begin];
  if (first.meeting == PlannedMeeting::None) {
    return launch(EntryKind::Sync, batch, false, syncing.stream);
  }
  const bool narrows = first.meeting == PlannedMeeting::Agree && !is_f32();
  return narrows ? turn_to_updates({&syncing.update, 1}, syncing.stream) : Status(Ok{});
}

}  // namespace cinch::rt
