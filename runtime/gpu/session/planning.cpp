// Bodies of GpuPlanning (session_impl.h).
#include "runtime/gpu/session/session_impl.h"

#include <algorithm>
#include <utility>

#include "runtime/call/entries.h"

namespace cinch::rt {
namespace {

PlannedLaunch service(GpuService which, std::uint32_t arg0 = kNoIndex,
                      std::uint32_t arg1 = kNoIndex) {
  return {.is_service = true,
          .index = static_cast<std::uint32_t>(which),
          .arg0 = arg0,
          .arg1 = arg1,
          .is_guarded = false};
}

}  // namespace

Result<std::int64_t> GpuPlanning::most_rounds(HostExprId begin, HostExprId end) const {
  // As one expression: both are of the same parameters and the same step.
  HostExprPool pool = info().exprs;
  const HostExprId rounds = begin ? pool.sub(end, begin) : end;
  std::int64_t most = 0;
  for (const TensorFacts& tensor : core().facts) {
    const auto bounds = core().over_steps(pool, rounds, tensor);
    CINCH_TRY(bounds);
    most = std::max(most, bounds->most);
  }
  return most;
}

Status GpuPlanning::plan_entry(EntryKind runs, GpuCallPlan& plan) {
  const Entry& entry = image().entries[static_cast<std::size_t>(runs)];
  const bool folds = std::ranges::any_of(core().facts, [this](const TensorFacts& tensor) {
    return tensor.num_elems() > core().tuning.fold_elements;
  });
  const auto rounds = [this](HostExprId begin, HostExprId end) { return most_rounds(begin, end); };
  return plan_steps(image(), entry.steps, rounds, folds, plan.steps, core().bounds);
}

Status GpuPlanning::plan_init(GpuCallPlan& plan) {
  CINCH_TRY(plan_entry(EntryKind::Init, plan));
  plan.steps.push_back(
      service(GpuService::Commit, kNoIndex, static_cast<std::uint32_t>(EntryKind::Init)));
  return Ok{};
}

Status GpuPlanning::plan_encode(GpuCallPlan& plan) {
  const std::uint32_t type = core().options.dtype == kF16 ? 1 : 2;
  const BufferIndex gradient = buffer_of(BufferRole::Gradient);
  if (!is_f32()) plan.steps.push_back(service(GpuService::Widen, gradient, type));
  CINCH_TRY(plan_entry(EntryKind::Encode, plan));
  if (!image().messages.empty()) {
    plan.steps.push_back(service(GpuService::FindNonFinite, gradient));
  }
  plan.steps.push_back(service(GpuService::Seal));
  return has(EntryKind::Init) ? plan_init(core().plan_of(EntryKind::Init)) : Ok{};
}

Status GpuPlanning::plan_sync(GpuCallPlan& plan) {
  const BufferIndex gradient = buffer_of(BufferRole::Gradient),
                    output = buffer_of(BufferRole::Output);
  const std::uint32_t type = core().options.dtype == kF16 ? 1 : 2;
  if (!is_f32()) plan.steps.push_back(service(GpuService::Widen, gradient, type));
  GpuCallPlan entry;
  CINCH_TRY(plan_entry(EntryKind::Sync, entry));
  entry.steps.push_back({.meeting = PlannedMeeting::Agree});
  for (PlannedLaunch& step : entry.steps) {
    // A rank tells the others which it is: failed, or non-finite.
    if (step.meeting != PlannedMeeting::None && !image().messages.empty()) {
      plan.steps.push_back(service(GpuService::FindNonFinite, gradient));
    }
    plan.steps.push_back(std::move(step));
  }
  plan.steps.push_back(
      service(GpuService::Commit, output, static_cast<std::uint32_t>(EntryKind::Sync)));
  if (!is_f32()) {
    PlannedLaunch narrow = service(GpuService::Narrow, output, type);
    narrow.value = 1;
    plan.steps.push_back(narrow);
  }
  return has(EntryKind::Init) ? plan_init(core().plan_of(EntryKind::Init)) : Ok{};
}

Status GpuPlanning::plan_decode(EntryKind kind, GpuCallPlan& plan) {
  const BufferIndex output = buffer_of(BufferRole::Output);
  const bool is_own = kind == EntryKind::Decode || has(EntryKind::DecodeAdd);
  plan.steps.push_back(service(GpuService::Open));
  CINCH_TRY(plan_entry(is_own ? kind : EntryKind::Decode, plan));
  plan.steps.push_back(service(GpuService::Fill, output));
  if (!is_own) plan.steps.push_back(service(GpuService::AddTo, output));
  if (kind == EntryKind::Decode && !is_f32()) {
    plan.steps.push_back(service(GpuService::Narrow, output, core().options.dtype == kF16 ? 1 : 2));
  }
  return Ok{};
}

Status GpuPlanning::plan_finish(GpuCallPlan& plan) {
  const BufferIndex sum = buffer_of(BufferRole::Gradient), output = buffer_of(BufferRole::Output);
  if (has(EntryKind::Finish)) {
    CINCH_TRY(plan_entry(EntryKind::Finish, plan));
    if (!image().messages.empty()) {
      plan.steps.push_back(service(GpuService::FindNonFinite, sum));
    }
    plan.steps.push_back(
        service(GpuService::Commit, output, static_cast<std::uint32_t>(EntryKind::Finish)));
  } else {
    PlannedLaunch divide = service(GpuService::Divide, output, sum);
    divide.value = gpu_factor(static_cast<float>(core().options.world));
    plan.steps.push_back(divide);
  }
  if (!is_f32()) {
    PlannedLaunch narrow =
        service(GpuService::Narrow, output, core().options.dtype == kF16 ? 1 : 2);
    narrow.value = 1;
    plan.steps.push_back(narrow);
  }
  return Ok{};
}

Status GpuPlanning::plan_kind(EntryKind kind) {
  // Decode serves where a program has no decode-add of its own; a default finish divides.
  const bool is_possible = kind == EntryKind::DecodeAdd ? has(EntryKind::Decode)
                           : kind == EntryKind::Finish  ? has(EntryKind::Decode)
                                                        : has(kind);
  if (!is_possible || !check_call(image(), kind, core().options.only_decodes)) return Ok{};
  auto& made = core().calls[static_cast<std::size_t>(kind)];
  made = std::make_unique<GpuCallTables>(core().layout, num_tensors());
  switch (kind) {
    case EntryKind::Encode:
      return plan_encode(core().plan_of(kind));
    case EntryKind::Finish:
      return plan_finish(core().plan_of(kind));
    case EntryKind::Sync:
      return plan_sync(core().plan_of(kind));
    default:
      return plan_decode(kind, core().plan_of(kind));
  }
}

Status GpuPlanning::plan() {
  for (const EntryKind kind : {EntryKind::Encode, EntryKind::Decode, EntryKind::DecodeAdd,
                               EntryKind::Finish, EntryKind::Sync}) {
    CINCH_TRY(plan_kind(kind));
  }
  return Ok{};
}

}  // namespace cinch::rt
