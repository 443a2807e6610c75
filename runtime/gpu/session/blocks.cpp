#include <algorithm>

#include "runtime/call/joins.h"
#include "runtime/gpu/session/session_impl.h"

namespace cinch::rt {
namespace {

// What one block clears or copies in the time that a launch takes.
constexpr std::int64_t kNarrowBytes = 65536;

// A marked payload is zeroed when the call ends. That is rare, so one block does it along with its
// neighbours until it takes much longer than a launch that every call would have to make; then as
// many as the memory needs, few enough to cost no more than that launch.
constexpr std::int64_t kNarrowSealBytes = std::int64_t{32} << 20;
constexpr std::int64_t kSealBlockBytes = std::int64_t{1} << 20;

constexpr std::int64_t kTileElems = 1024;
// Of a launch whose blocks do not stay: more would only add to what a launch of many tensors has.
constexpr std::int64_t kMostBlocks = 65536;

// Of the kernel of steps a multiprocessor holds at least so many.
constexpr std::int64_t kFoldBlocks = 2;
// Reductions that are folded at the same time, each by other blocks. Programs seldom have more.
constexpr std::int64_t kFoldsAtOnce = 4;

std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

}  // namespace

std::size_t GpuBlocks::shape_of(const PlannedLaunch& step) const {
  const std::size_t num_kernels = image().kernels.size();
  if (step.is_fold()) return num_kernels + 1;
  if (!step.is_service) return step.index;
  switch (static_cast<GpuService>(step.index)) {
    case GpuService::Seal:
      return num_kernels + 2;
    case GpuService::Fill:
      return num_kernels + 3;
    default:
      return num_kernels;
  }
}

// Fields that encode puts in their place and decode reads there are neither moved nor looked
// through.
bool GpuBlocks::are_fields_in_place() const {
  return std::ranges::all_of(info().wire.fields, [this](const FieldInfo& field) {
    const auto index = static_cast<std::uint32_t>(&field - info().wire.fields.data());
    return has_fixed_offset(info(), index) && has_fixed_size(info(), index) && !field.ascending &&
           !field.index_limit;
  });
}

std::int64_t GpuBlocks::that_fit(std::int64_t blocks, std::int64_t resident) const {
  const std::int64_t each = core().tuning.blocks_per_multiprocessor > 0
                                ? core().tuning.blocks_per_multiprocessor
                                : resident;
  return std::min(blocks, each * std::max<std::int64_t>(device().multiprocessors(), 1));
}

// The most that a kernel can use on a tensor, and no more than its waves of those that run at a
// time: a block that stays takes the next groups without what starting one costs.
Result<std::int64_t> GpuBlocks::kernel_blocks(std::size_t kernel, const TensorFacts& tensor) const {
  if (tensor.num_elems() == 0) return 0;
  const KernelInfo& info_of = image().kernels[kernel];
  if (info_of.cuda.is_single_block) return 1;
  const auto per_block = static_cast<std::int64_t>(info_of.cuda.groups_per_block);
  const auto groups = TRY(core().over_steps(info_of.num_groups, tensor));
  const std::int64_t blocks = ceil_div(std::min(groups.most, kMaxGroups), per_block);
  if (info_of.cuda.waves == 0 && core().tuning.blocks_per_multiprocessor == 0) {
    return std::clamp(blocks, std::int64_t{1}, kMostBlocks);
  }
  return that_fit(std::max(std::int64_t{1}, blocks),
                  std::int64_t{info_of.cuda.resident_blocks} * info_of.cuda.waves);
}

std::int64_t GpuBlocks::service_blocks(const TensorFacts& tensor) const {
  return std::clamp(ceil_div(tensor.num_elems(), core().tuning.service_elements), std::int64_t{1},
                    core().tuning.most_service_blocks);
}

std::int64_t GpuBlocks::seal_blocks(std::size_t tensor) const {
  if (!are_fields_in_place()) return service_blocks(core().facts[tensor]);
  std::int64_t bytes = 0;
  for (std::uint32_t i = 0; i < info().wire.fields.size(); ++i) {
    bytes += memory_.capacities()[tensor][buffer_of(BufferRole::Field, i)];
  }
  if (bytes <= kNarrowSealBytes) return 1;
  return std::min(ceil_div(bytes, kSealBlockBytes), core().tuning.most_service_blocks);
}

Result<std::int64_t> GpuBlocks::blocks_of(std::size_t shape, std::size_t tensor) const {
  const std::size_t num_kernels = image().kernels.size();
  if (shape < num_kernels) return kernel_blocks(shape, core().facts[tensor]);
  switch (shape - num_kernels) {
    case 0:
      return service_blocks(core().facts[tensor]);
    case 1: {
      // A warp for each tile of the partials of each reduction of a sweep over the tensor.
      const std::int64_t elems = core().facts[tensor].num_elems();
      const std::int64_t num_tiles = ceil_div(ceil_div(elems, kTileElems), kTileElems);
      const std::int64_t blocks = ceil_div(num_tiles, image().gpu_steps_threads / 32);
      return blocks <= 1 ? blocks : that_fit(kFoldsAtOnce * blocks, kFoldBlocks);
    }
    case 2:
      return seal_blocks(tensor);
      // The end of a call fills the output only where the payload is marked, which is rare.
    default:
      return std::min(service_blocks(core().facts[tensor]),
                      std::max<std::int64_t>(device().multiprocessors(), 1));
  }
}

void GpuBlocks::measure() {
  if (num_tensors() == 1) return;
  first_blocks_ = memory_.arena().add(4 * num_shapes() * (num_tensors() + 1));
}

Status GpuBlocks::count() {
  for (std::size_t shape = 0; shape < num_shapes(); ++shape) {
    std::uint64_t total = 0;
    bool is_one = true;
    for (std::size_t t = 0; t < num_tensors(); ++t) {
      block_begins_.push_back(static_cast<std::uint32_t>(total));
      const auto blocks = TRY(blocks_of(shape, t));
      is_one = is_one && blocks <= 1;
      total += static_cast<std::uint64_t>(blocks);
      if (total > INT32_MAX) {
        return fail(ErrorKind::Unavailable, "more blocks than a launch on a GPU can have");
      }
    }
    block_begins_.push_back(static_cast<std::uint32_t>(total));
    num_blocks_.push_back(static_cast<std::uint32_t>(total));
    is_narrow_shape_.push_back(is_one);
  }
  return Ok{};
}

bool GpuBlocks::is_narrow_service(const PlannedLaunch& step) const {
  switch (static_cast<GpuService>(step.index)) {
    case GpuService::SetRound:
    case GpuService::Check:
      return true;
    case GpuService::Zero:
    case GpuService::Copy:
      return std::ranges::all_of(memory_.capacities(), [&](const std::vector<std::int64_t>& bytes) {
        return bytes[step.arg0] <= kNarrowBytes;
      });
    case GpuService::Seal:
      return are_fields_in_place() && is_narrow_shape_[shape_of(step)];
    case GpuService::Open:
      return are_fields_in_place();
    case GpuService::Commit:
      return step.arg0 == kNoIndex;
    default:
      return is_narrow_shape_[shape_of(step)];
  }
}

bool GpuBlocks::is_narrow(const PlannedLaunch& step) const {
  const auto is_small = [this](const TensorFacts& tensor) {
    return tensor.num_elems() <= core().tuning.one_launch_elements;
  };
  if (std::ranges::all_of(core().facts, is_small)) return true;
  return step.is_service ? is_narrow_service(step) : bool{is_narrow_shape_[shape_of(step)]};
}

void GpuBlocks::batch_steps() {
  for (GpuCallPlan& plan : core().plans) {
    plan.batches = batch_launches(plan.steps, [this](const PlannedLaunch& step) {
      return step.meeting == PlannedMeeting::None && is_narrow(step);
    });
    const bool has_lists =
        std::ranges::any_of(plan.batches, [](const GpuBatch& batch) { return batch.size > 1; });
    if (has_lists) plan.table = memory_.arena().add(sizeof(GpuStep) * plan.steps.size());
  }
}

Status GpuBlocks::send(GpuStream stream) {
  const auto write = [&](GpuArena::Piece piece, const void* from, std::size_t size) -> Status {
    if (piece == GpuArena::kNone) return Ok{};
    return device().write(memory_.arena().address(piece),
                          {static_cast<const std::uint8_t*>(from), size}, stream);
  };
  for (const GpuCallPlan& plan : core().plans) {
    std::vector<GpuStep> steps;
    steps.reserve(plan.steps.size());
    for (const PlannedLaunch& step : plan.steps) steps.push_back(gpu_step(step));
    CINCH_TRY(write(plan.table, steps.data(), sizeof(GpuStep) * steps.size()));
  }
  return write(first_blocks_, block_begins_.data(), 4 * block_begins_.size());
}

GpuAddress GpuBlocks::first_block(const PlannedLaunch& step) const {
  if (first_blocks_ == GpuArena::kNone) return 0;
  return memory_.arena().address(first_blocks_) + 4 * shape_of(step) * (num_tensors() + 1);
}

namespace {

PlannedLaunch service(GpuService which, std::uint32_t arg0 = kNoIndex,
                      std::uint32_t arg1 = kNoIndex, std::int64_t value = 0) {
  return {.is_service = true,
          .index = static_cast<std::uint32_t>(which),
          .arg0 = arg0,
          .arg1 = arg1,
          .value = value,
          .is_guarded = false};
}

class GpuPlanning : public GpuSessionPart {
 public:
  using GpuSessionPart::GpuSessionPart;

  Status plan_kind(EntryKind kind) {
    // Decode serves where a program has no decode-add of its own; a default finish divides.
    const bool decodes = kind == EntryKind::DecodeAdd || kind == EntryKind::Finish;
    const bool is_possible = has(decodes ? EntryKind::Decode : kind);
    if (!is_possible || !check_call(image(), kind, core().options.only_decodes)) return Ok{};
    auto& made = core().calls[static_cast<std::size_t>(kind)];
    made = std::make_unique<GpuCallTables>(core().layout, num_tensors());
    GpuCallPlan& plan = core().plan_of(kind);
    switch (kind) {
      case EntryKind::Encode:
        return plan_encode(plan);
      case EntryKind::Finish:
        return plan_finish(plan);
      case EntryKind::Sync:
        return plan_sync(plan);
      default:
        return plan_decode(kind, plan);
    }
  }

 private:
  // Of conversions.
  std::uint32_t half_type() const { return core().options.dtype == kF16 ? 1 : 2; }

  void widen_gradient(GpuCallPlan& plan) const {
    if (is_f32()) return;
    plan.steps.push_back(service(GpuService::Widen, gradient_, half_type()));
  }

  // `takes_marked`: also of a tensor that is marked.
  void narrow_output(GpuCallPlan& plan, bool takes_marked) const {
    if (is_f32()) return;
    plan.steps.push_back(service(GpuService::Narrow, output_, half_type(), takes_marked ? 1 : 0));
  }

  void find_non_finite(GpuCallPlan& plan) const {
    if (image().messages.empty()) return;
    plan.steps.push_back(service(GpuService::FindNonFinite, gradient_));
  }

  static void commit(GpuCallPlan& plan, EntryKind kind, BufferIndex output) {
    plan.steps.push_back(service(GpuService::Commit, output, static_cast<std::uint32_t>(kind)));
  }

  Status plan_entry(EntryKind runs, GpuCallPlan& plan) {
    const Entry& entry = image().entries[static_cast<std::size_t>(runs)];
    const bool folds = std::ranges::any_of(core().facts, [this](const TensorFacts& tensor) {
      return tensor.num_elems() > core().tuning.fold_elements;
    });
    const auto most_rounds = [this](HostExprId begin, HostExprId end) -> Result<std::int64_t> {
      // As one expression: both are of the same parameters and the same step.
      HostExprPool pool = *info().exprs;
      const HostExprId rounds = begin ? pool.sub(end, begin) : end;
      std::int64_t most = 0;
      for (const TensorFacts& tensor : core().facts) {
        most = std::max(most, TRY(core().over_steps(pool, rounds, tensor)).most);
      }
      return most;
    };
    return plan_steps(image(), entry.steps, most_rounds, folds, plan.steps, core().bounds);
  }

  Status plan_init() {
    if (!has(EntryKind::Init)) return Ok{};
    GpuCallPlan& plan = core().plan_of(EntryKind::Init);
    CINCH_TRY(plan_entry(EntryKind::Init, plan));
    commit(plan, EntryKind::Init, kNoIndex);
    return Ok{};
  }

  Status plan_encode(GpuCallPlan& plan) {
    widen_gradient(plan);
    CINCH_TRY(plan_entry(EntryKind::Encode, plan));
    find_non_finite(plan);
    plan.steps.push_back(service(GpuService::Seal));
    return plan_init();
  }

  Status plan_sync(GpuCallPlan& plan) {
    widen_gradient(plan);
    GpuCallPlan entry;
    CINCH_TRY(plan_entry(EntryKind::Sync, entry));
    entry.steps.push_back({.meeting = PlannedMeeting::Agree});
    for (PlannedLaunch& step : entry.steps) {
      // A rank tells the others which it is: failed, or non-finite.
      if (step.meeting != PlannedMeeting::None) find_non_finite(plan);
      plan.steps.push_back(std::move(step));
    }
    commit(plan, EntryKind::Sync, output_);
    narrow_output(plan, true);
    return plan_init();
  }

  Status plan_decode(EntryKind kind, GpuCallPlan& plan) {
    const bool is_own = kind == EntryKind::Decode || has(EntryKind::DecodeAdd);
    plan.steps.push_back(service(GpuService::Open));
    CINCH_TRY(plan_entry(is_own ? kind : EntryKind::Decode, plan));
    plan.steps.push_back(service(GpuService::Fill, output_));
    if (!is_own) plan.steps.push_back(service(GpuService::AddTo, output_));
    if (kind == EntryKind::Decode) narrow_output(plan, false);
    return Ok{};
  }

  Status plan_finish(GpuCallPlan& plan) {
    if (has(EntryKind::Finish)) {
      CINCH_TRY(plan_entry(EntryKind::Finish, plan));
      find_non_finite(plan);
      commit(plan, EntryKind::Finish, output_);
    } else {
      plan.steps.push_back(service(GpuService::Divide, output_, gradient_,
                                   gpu_factor(static_cast<float>(core().options.world))));
    }
    narrow_output(plan, true);
    return Ok{};
  }

  const BufferIndex gradient_ = buffer_of(BufferRole::Gradient);
  const BufferIndex output_ = buffer_of(BufferRole::Output);
};

}  // namespace

Status plan_calls(GpuSessionCore& core) {
  GpuPlanning planning(core);
  for (const EntryKind kind : {EntryKind::Encode, EntryKind::Decode, EntryKind::DecodeAdd,
                               EntryKind::Finish, EntryKind::Sync}) {
    CINCH_TRY(planning.plan_kind(kind));
  }
  return Ok{};
}

}  // namespace cinch::rt
