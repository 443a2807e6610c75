// The table of numbers, one per row.
#include "runtime/tuning/numbers.h"

namespace cinch::rt {
namespace {

constexpr std::int64_t kKiB = 1024, kMiB = 1024 * kKiB;
constexpr std::int64_t kTaskBytes[] = {32 * kKiB,  64 * kKiB,  128 * kKiB,
                                       256 * kKiB, 512 * kKiB, 1024 * kKiB};
constexpr std::int64_t kTasksPerThread[] = {1, 2, 4, 8, 16, 32};
constexpr std::int64_t kSingleTaskBytes[] = {16 * kKiB,  32 * kKiB,  64 * kKiB, 128 * kKiB,
                                             256 * kKiB, 512 * kKiB, kMiB};
constexpr std::int64_t kBlockWarps[] = {2, 4, 8, 16};
constexpr std::int64_t kBlocksPerMultiprocessor[] = {0, 1, 2, 4, 8, 16, 32, 1024};
constexpr std::int64_t kServiceElements[] = {1024, 2048, 4096, 8192, 16384};
constexpr std::int64_t kMostServiceBlocks[] = {256, 1024, 4096, 16384};

constexpr std::int64_t kOneLaunchElements[] = {2 * kKiB,  4 * kKiB,  8 * kKiB,
                                               16 * kKiB, 32 * kKiB, 64 * kKiB};
// No more than the largest measured tensor: larger values would make no difference.
constexpr std::int64_t kFoldElements[] = {4 * kMiB, 8 * kMiB, 16 * kMiB};

constexpr std::int64_t kMany = std::int64_t{1} << 40;
constexpr std::int64_t kManyBlocks = std::int64_t{1} << 20;

constexpr TuningNumber<CpuTuning> kCpuNumbers[] = {
    {"task_bytes", "bytes that a task moves at most; it should be worth its start",
     &CpuTuning::task_bytes, 1, kMany, false, kTaskBytes},
    {"tasks_per_thread", "tasks of a launch for each thread, where they are worth their start",
     &CpuTuning::tasks_per_thread, 1, kManyBlocks, false, kTasksPerThread},
    {"single_task_bytes", "a launch that moves no more is one task, on one thread",
     &CpuTuning::single_task_bytes, 0, kMany, false, kSingleTaskBytes},
};

constexpr TuningNumber<GpuTuning> kGpuNumbers[] = {
    {"block_warps", "warps of a block; part of the compiled code", &GpuTuning::block_warps, 2, 16,
     true, kBlockWarps},
    {"blocks_per_multiprocessor",
     "blocks of a launch and tensor, at most; 0: what the compiled kernel asks for",
     &GpuTuning::blocks_per_multiprocessor, 0, kManyBlocks, false, kBlocksPerMultiprocessor},
    {"service_elements", "elements for each block of a kernel that begins or ends a call",
     &GpuTuning::service_elements, 1, kMany, false, kServiceElements},
    {"most_service_blocks", "blocks of such a kernel and tensor, at most",
     &GpuTuning::most_service_blocks, 1, kManyBlocks, false, kMostServiceBlocks},
    {"one_launch_elements",
     "a call for tensors that have no more is one launch, with a block for each tensor",
     &GpuTuning::one_launch_elements, 0, kMany, false, kOneLaunchElements},
    {"fold_elements",
     "a call for tensors of which one has more folds partial results by many blocks, by one more "
     "launch for each sweep that reduces",
     &GpuTuning::fold_elements, 0, kMany, false, kFoldElements},
};

}  // namespace

template <>
std::span<const TuningNumber<CpuTuning>> tuning_numbers() {
  return kCpuNumbers;
}
template <>
std::span<const TuningNumber<GpuTuning>> tuning_numbers() {
  return kGpuNumbers;
}

}  // namespace cinch::rt
