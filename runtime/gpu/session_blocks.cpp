// How many blocks each launch of a session on a GPU takes, where those of each tensor begin, and
// what needs no more than one.
#include <algorithm>

#include "runtime/gpu/session_impl.h"

namespace cinch::rt {
namespace {

// What one block clears or copies in the time that a launch takes.
constexpr std::int64_t kNarrowBytes = 65536;

std::int64_t service_blocks(const TensorFacts& tensor, const GpuTuning& tuning) {
  const std::int64_t each = tuning.service_elements;
  return std::clamp((tensor.num_elems() + each - 1) / each, std::int64_t{1},
                    tuning.most_service_blocks);
}

}  // namespace

// The most that a kernel can use on a tensor.
Result<std::int64_t> GpuSession::Impl::kernel_blocks(std::size_t kernel,
                                                     const TensorFacts& tensor) const {
  if (tensor.num_elems() == 0) return 0;
  const KernelInfo& info_of = image().kernels[kernel];
  if (info_of.cuda.is_single_block) return 1;
  const auto per_block = static_cast<std::int64_t>(info_of.cuda.groups_per_block);
  std::int64_t blocks = 1;
  for (const ParameterValues* values : {&parameters, &largest}) {
    const auto groups = info().exprs.eval_int(info_of.num_groups, host_env(tensor, *values, 0));
    if (!groups) return groups;
    blocks = std::max(blocks, (*groups + per_block - 1) / per_block);
  }
  const std::int64_t fit = tuning.blocks_per_multiprocessor * device().multiprocessors();
  return fit > 0 ? std::min(blocks, fit) : blocks;
}

Status GpuSession::Impl::count_blocks() {
  const std::size_t num_kernels = image().kernels.size();
  for (std::size_t k = 0; k <= num_kernels; ++k) {
    std::uint64_t total = 0;
    bool is_one = true;
    for (const TensorFacts& tensor : facts) {
      block_begins.push_back(static_cast<std::uint32_t>(total));
      const auto blocks = k == num_kernels ? Result<std::int64_t>(service_blocks(tensor, tuning))
                                           : kernel_blocks(k, tensor);
      if (!blocks) return tl::unexpected<Error>(blocks.error());
      is_one = is_one && *blocks <= 1;
      total += static_cast<std::uint64_t>(*blocks);
      if (total > INT32_MAX) {
        return fail(ErrorKind::Unavailable, "more blocks than a launch on a GPU can have");
      }
    }
    block_begins.push_back(static_cast<std::uint32_t>(total));
    num_blocks.push_back(static_cast<std::uint32_t>(total));
    is_narrow_kernel.push_back(is_one);
  }
  return Ok{};
}

bool GpuSession::Impl::is_narrow(const PlannedLaunch& step) const {
  const auto is_small = [this](const TensorFacts& tensor) {
    return tensor.num_elems() <= tuning.one_launch_elements;
  };
  if (std::ranges::all_of(facts, is_small)) return true;
  return step.is_service ? is_narrow_service(step) : bool{is_narrow_kernel[step.index]};
}

bool GpuSession::Impl::is_narrow_service(const PlannedLaunch& step) const {
  // Fields that encode puts in their place and decode reads there are neither moved nor looked
  // through.
  const auto is_in_place = [this](const FieldInfo& field) {
    const auto index = static_cast<std::uint32_t>(&field - info().wire.fields.data());
    return has_fixed_offset(info(), index) && has_fixed_size(info(), index) && !field.ascending &&
           !field.index_limit;
  };
  switch (static_cast<GpuService>(step.index)) {
    case GpuService::SetRound:
    case GpuService::Check:
      return true;
    case GpuService::Zero:
    case GpuService::Copy:
      return std::ranges::all_of(capacities, [&](const std::vector<std::int64_t>& bytes) {
        return bytes[step.arg0] <= kNarrowBytes;
      });
    case GpuService::Seal:
    case GpuService::Open:
      return std::ranges::all_of(info().wire.fields, is_in_place);
    case GpuService::Commit:
      return step.arg0 == kNoIndex;
    default:
      return is_narrow_kernel.back();
  }
}

void GpuSession::Impl::batch_steps() {
  for (Plan& plan : plans) {
    plan.batches =
        batch_launches(plan.steps, [this](const PlannedLaunch& step) { return is_narrow(step); });
    const bool has_lists =
        std::ranges::any_of(plan.batches, [](const GpuBatch& batch) { return batch.size > 1; });
    if (has_lists) plan.table = arena.add(sizeof(GpuStep) * plan.steps.size());
  }
}

Status GpuSession::Impl::send_blocks(GpuStream stream) {
  const auto send = [&](GpuArena::Piece piece, const void* from, std::size_t size) -> Status {
    if (piece == GpuArena::kNone) return Ok{};
    return device().write(arena.address(piece), {static_cast<const std::uint8_t*>(from), size},
                          stream);
  };
  for (const Plan& plan : plans) {
    std::vector<GpuStep> steps;
    steps.reserve(plan.steps.size());
    for (const PlannedLaunch& step : plan.steps) steps.push_back(gpu_step(step));
    Status status = send(plan.table, steps.data(), sizeof(GpuStep) * steps.size());
    if (!status) return status;
  }
  return send(first_blocks, block_begins.data(), 4 * block_begins.size());
}

}  // namespace cinch::rt
