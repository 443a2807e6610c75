// Chunks of 64 Ki elements per task.
#include "runtime/session/tensor_convert.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "runtime/exec/narrow_tensor.h"

namespace cinch::rt {
namespace {

constexpr std::int64_t kChunkElems = std::int64_t{1} << 16;

/// Runs body(begin, end) over [0, n) in chunks.
template <typename Body>
Status for_chunks(std::int64_t n, TaskRunner& runner, const std::atomic<bool>* cancelled,
                  const Body& body) {
  const auto num_tasks = static_cast<std::uint64_t>((n + kChunkElems - 1) / kChunkElems);
  return runner.run(num_tasks, cancelled, [&](std::uint64_t task) {
    const std::int64_t begin = static_cast<std::int64_t>(task) * kChunkElems;
    body(begin, std::min(begin + kChunkElems, n));
  });
}

}  // namespace

Status convert_to_f32(ConstTensorView from, std::span<float> to, TaskRunner& runner,
                      const std::atomic<bool>* cancelled) {
  return for_chunks(from.num_elems, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    if (from.dtype == kF32) {
      std::memcpy(to.data() + begin, static_cast<const float*>(from.data) + begin,
                  static_cast<std::size_t>(end - begin) * sizeof(float));
      return;
    }
    widen(static_cast<const std::uint16_t*>(from.data) + begin, from.dtype, to.data() + begin,
          end - begin);
  });
}

Status convert_from_f32(std::span<const float> from, TensorView to, TaskRunner& runner,
                        const std::atomic<bool>* cancelled) {
  return for_chunks(to.num_elems, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    if (to.dtype == kF32) {
      std::memcpy(static_cast<float*>(to.data) + begin, from.data() + begin,
                  static_cast<std::size_t>(end - begin) * sizeof(float));
      return;
    }
    narrow(from.data() + begin, static_cast<std::uint16_t*>(to.data) + begin, to.dtype,
           end - begin);
  });
}

Status fill_nan(TensorView to, TaskRunner& runner, const std::atomic<bool>* cancelled) {
  return for_chunks(to.num_elems, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    if (to.dtype == kF32) {
      auto* target = static_cast<std::uint32_t*>(to.data);
      std::fill(target + begin, target + end, 0x7fc00000u);
    } else {
      auto* target = static_cast<std::uint16_t*>(to.data);
      std::fill(target + begin, target + end,
                static_cast<std::uint16_t>(to.dtype == kF16 ? 0x7e00 : 0x7fc0));
    }
  });
}

Status add_f32(std::span<float> sums, std::span<const float> addends, TaskRunner& runner,
               const std::atomic<bool>* cancelled) {
  const auto n = static_cast<std::int64_t>(sums.size());
  return for_chunks(n, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) sums[i] += addends[i];
  });
}

namespace {

// NaN results are canonical.
template <typename Function>
Status map_f32(std::span<const float> from, std::span<float> to, TaskRunner& runner,
               const std::atomic<bool>* cancelled, const Function& function) {
  const auto n = static_cast<std::int64_t>(to.size());
  return for_chunks(n, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = function(from[i]);
      to[i] = value != value ? std::bit_cast<float>(0x7fc00000u) : value;
    }
  });
}

// `infinity`: the exponent of values that are not finite.
template <typename Word>
Result<bool> are_all_below(const Word* values, std::int64_t n, Word infinity, TaskRunner& runner,
                           const std::atomic<bool>* cancelled) {
  std::atomic<bool> finite{true};
  const Status status = for_chunks(n, runner, cancelled, [&](std::int64_t begin, std::int64_t end) {
    bool seen = false;
    for (std::int64_t i = begin; i < end; ++i) seen |= (values[i] & infinity) == infinity;
    if (seen) finite.store(false, std::memory_order_relaxed);
  });
  CINCH_TRY(status);
  return finite.load();
}

}  // namespace

Status divide_f32(std::span<const float> from, float divisor, std::span<float> to,
                  TaskRunner& runner, const std::atomic<bool>* cancelled) {
  return map_f32(from, to, runner, cancelled, [divisor](float x) { return x / divisor; });
}

Status multiply_f32(std::span<const float> from, float factor, std::span<float> to,
                    TaskRunner& runner, const std::atomic<bool>* cancelled) {
  return map_f32(from, to, runner, cancelled, [factor](float x) { return x * factor; });
}

Result<bool> all_finite(std::span<const float> values, TaskRunner& runner,
                        const std::atomic<bool>* cancelled) {
  return all_finite(ConstTensorView(values), runner, cancelled);
}

Result<bool> all_finite(ConstTensorView values, TaskRunner& runner,
                        const std::atomic<bool>* cancelled) {
  if (values.dtype == kF32) {
    return are_all_below(static_cast<const std::uint32_t*>(values.data), values.num_elems,
                         std::uint32_t{0x7f800000}, runner, cancelled);
  }
  const std::uint16_t infinity = values.dtype == kF16 ? 0x7c00 : 0x7f80;
  return are_all_below(static_cast<const std::uint16_t*>(values.data), values.num_elems, infinity,
                       runner, cancelled);
}

}  // namespace cinch::rt
