#include "runtime/gpu/session/session_impl.h"

#include "runtime/call/joins.h"
#include "runtime/collective/join_ranks.h"
#include "runtime/core/numbers/floats.h"

namespace cinch::rt {
namespace {

template <typename Words>
RankStatus rank_status(const Words& words) {
  if ((words[kStatusFlags] & kFlagNonFinite) != 0) return RankStatus::NonFinite;
  return words[kStatusFailed] != 0 ? RankStatus::Failed : RankStatus::Good;
}

}  // namespace

Result<bool> GpuSync::hold(const std::vector<GpuCondition>& conditions) const {
  const HostEnv at = env(0, syncing_.step);
  const auto size = [&](std::uint32_t slot) -> Result<std::int64_t> {
    if (slot == kNoIndex) return 0;
    return info().exprs->eval_int(image().size_exprs[slot], at);
  };
  for (const GpuCondition& condition : conditions) {
    if (condition.buffer == kRoundCondition) {
      const auto end = TRY(size(condition.end)), begin = TRY(size(condition.begin));
      if (std::int64_t{condition.wanted} >= end - begin) return false;
      continue;
    }
    std::uint8_t flag = 0;
    const GpuAddress from = memory_.own_address(0, condition.buffer);
    CINCH_TRY(device().read({&flag, 1}, from, syncing_.stream));
    if ((flag != 0) != (condition.wanted != 0)) return false;
  }
  return true;
}

Result<std::optional<RankPoint>> GpuSync::begin(ConstTensorView gradient, TensorView update,
                                                std::uint64_t step) {
  syncing_ = {};
  const auto from = reinterpret_cast<GpuAddress>(gradient.data);
  const auto to = reinterpret_cast<GpuAddress>(update.data);
  CINCH_TRY(check_call(image(), EntryKind::Sync, core().options.only_decodes));
  if (num_tensors() != 1)
    return fail(ErrorKind::InvalidArgument, "only a tensor by itself synchronises");
  CINCH_TRY(check_step(step));
  CINCH_TRY(calls_.use_inputs(EntryKind::Sync, step));
  if (core().facts[0].num_elems() == 0) return std::nullopt;
  CINCH_TRY(calls_.bind_tensors(EntryKind::Sync, {&from, 1}, {&to, 1}));
  const GpuDevice::Scope scope(device());
  if (TRY(calls_.is_capturing(core().stream)))
    return fail(ErrorKind::InvalidArgument, "ranks meet over the host, not in a captured graph");
  syncing_ = {.is_under_way = true, .step = step, .stream = core().stream, .update = to};
  return core().order.run(core().stream, [&]() -> Result<std::optional<RankPoint>> {
    CINCH_TRY(calls_.check_host_conditions(EntryKind::Sync, syncing_.step));
    calls_.take_best_kernels(EntryKind::Sync);
    CINCH_TRY(calls_.write_facts(EntryKind::Sync, syncing_.step));
    CINCH_TRY(core().call_of(EntryKind::Sync).table.send(device(), syncing_.stream));
    CINCH_TRY(memory_.begin_call(syncing_.stream));
    return run_to_point();
  });
}

Result<std::optional<RankPoint>> GpuSync::proceed(RankStatus all) {
  if (!syncing_.is_under_way)
    return fail(ErrorKind::InvalidArgument, "no synchronisation is under way");
  const GpuDevice::Scope scope(device());
  syncing_.is_over = all != RankStatus::Good;
  const GpuStream on = syncing_.stream;
  auto point = core().order.run(on, [&]() -> Result<std::optional<RankPoint>> {
    if (all != rank_status(syncing_.words)) {
      // Kernels leave out the rest of a tensor that is marked or failed.
      StatusWords words = syncing_.words;
      if (all == RankStatus::NonFinite) words[kStatusFlags] |= kFlagNonFinite;
      if (all == RankStatus::Failed) words[kStatusFailed] = kRankFaultBit;
      const std::span bytes(reinterpret_cast<std::uint8_t*>(words.data()), sizeof words);
      CINCH_TRY(device().write(memory_.status_words(), bytes, syncing_.stream));
    }
    CINCH_TRY(launch_rest(core().plan_of(EntryKind::Sync).batches[syncing_.batch++]));
    return run_to_point();
  });
  if (!point || *point) return point;
  auto outcomes = TRY(calls_.collect(on));
  CINCH_TRY(outcomes.front().status);
  return point;
}

Result<std::optional<RankPoint>> GpuSync::run_to_point() {
  const GpuCallPlan& plan = core().plan_of(EntryKind::Sync);
  for (; syncing_.batch < plan.batches.size(); ++syncing_.batch) {
    const GpuBatch& batch = plan.batches[syncing_.batch];
    const PlannedLaunch& first = plan.steps[batch.begin];
    if (first.meeting != PlannedMeeting::None && !syncing_.is_over) {
      auto point = point_at(first);
      if (!point || *point) return point;
    }
    CINCH_TRY(launch_rest(batch));
  }
  syncing_ = {};
  return std::nullopt;
}

Result<std::optional<RankPoint>> GpuSync::point_at(const PlannedLaunch& meeting) {
  const std::span bytes(reinterpret_cast<std::uint8_t*>(syncing_.words.data()),
                        sizeof syncing_.words);
  CINCH_TRY(device().read(bytes, memory_.status_words(), syncing_.stream));
  RankPoint point{rank_status(syncing_.words), std::nullopt};
  if (point.own != RankStatus::Good || meeting.meeting == PlannedMeeting::Agree) return point;
  if (!TRY(hold(meeting.conditions))) return std::nullopt;
  point.call = TRY(call_at(meeting));
  return point;
}

Result<CollectiveCall> GpuSync::call_at(const PlannedLaunch& meeting) const {
  const HostEnv at = env(0, syncing_.step);
  const auto bytes_of = [&](BufferIndex buffer) -> Result<std::span<std::uint8_t>> {
    const auto size = TRY(buffer_bytes(image(), buffer, at));
    auto* const data = reinterpret_cast<std::uint8_t*>(  // NOLINT(performance-no-int-to-ptr)
        memory_.own_address(0, buffer));
    return std::span(data, static_cast<std::size_t>(size));
  };
  const auto input = TRY(bytes_of(meeting.arg1)), output = TRY(bytes_of(meeting.arg0));
  const BufferInfo& to = image().buffers[meeting.arg0];
  CollectiveCall call{meeting.collective, to.dtype, input, output};
  const auto read = [this](BufferIndex scalar) -> Result<std::uint32_t> {
    std::uint32_t value = 0;
    const std::span bytes(reinterpret_cast<std::uint8_t*>(&value), sizeof value);
    CINCH_TRY(device().read(bytes, memory_.own_address(0, scalar), syncing_.stream));
    return value;
  };
  CINCH_TRY(take_scalars(meeting.scalars, to.storage_bits, read, call));
  call.groups = TRY(rank_groups(image(), meeting.group, meeting.stride, at));
  if (meeting.message != kNoIndex) call.place = image().messages[meeting.message];
  if (is_counted(meeting.collective.kind)) {
    call.received = TRY(bytes_of(meeting.scalars.back()));
  }
  return call;
}

// What the batch does besides the meeting of ranks that it may be.
Status GpuSync::launch_rest(const GpuBatch& batch) {
  const PlannedLaunch& first = core().plan_of(EntryKind::Sync).steps[batch.begin];
  if (first.meeting == PlannedMeeting::None) {
    return calls_.launch(EntryKind::Sync, batch, false, syncing_.stream);
  }
  if (first.meeting != PlannedMeeting::Agree || is_f32()) return Ok{};
  // Where gradients were widened from, updates are narrowed to.
  GpuTable& table = core().call_of(EntryKind::Sync).table;
  table.entry(0).set_tensor(syncing_.update);
  return table.send(device(), syncing_.stream);
}

Result<RankStatus> GpuSync::meet(const RankPoint& point, RankExchange& ranks) const {
  const DefaultFloatEnvironment environment;
  if (!point.call) return meet_at(point, ranks);
  const auto address_of = [](std::span<const std::uint8_t> memory) {
    return reinterpret_cast<GpuAddress>(memory.data());
  };
  const auto stop = [&ranks](const Status& why) {
    (void)ranks.agree(RankStatus::Failed);
    return tl::unexpected<Error>(why.error());
  };
  CollectiveCall call = *point.call;
  const GpuAddress from = address_of(call.input), to = address_of(call.output);
  const GpuAddress count_to = address_of(call.received);
  std::vector<std::uint8_t> sent(call.input.size()), received(call.output.size());
  std::vector<std::uint8_t> count(call.received.size());
  Status status = device().read(sent, from, syncing_.stream);
  if (!status) return stop(status);
  call.input = sent;
  call.output = received;
  call.received = count;
  auto all = meet_at({point.own, call}, ranks);
  if (!all || *all != RankStatus::Good) return all;
  status = device().write(to, received, syncing_.stream);
  if (status && !count.empty()) status = device().write(count_to, count, syncing_.stream);
  if (!status) return stop(status);
  return all;
}

Status GpuSync::sync(ConstTensorView gradient, TensorView update, std::uint64_t step,
                     RankExchange& ranks) {
  auto point = begin(gradient, update, step);
  bool do_others_wait = true;
  while (point && *point) {
    const RankPoint at = point->value_or(RankPoint{});
    const auto all = meet(at, ranks);
    do_others_wait = all && *all == RankStatus::Good && at.call;
    point =
        all ? proceed(*all) : Result<std::optional<RankPoint>>(tl::unexpected<Error>(all.error()));
  }
  if (point) return Ok{};
  if (do_others_wait) (void)ranks.agree(RankStatus::Failed);
  return tl::unexpected<Error>(point.error());
}

}  // namespace cinch::rt
