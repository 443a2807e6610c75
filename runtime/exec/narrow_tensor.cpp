// Vectors of 8: the language's conversions are templates over them.
#include "runtime/exec/narrow_tensor.h"

#include <algorithm>
#include <cstring>

#include "runtime/core/lang.h"
#include "runtime/core/sanitizer.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::rt {
namespace {

constexpr int kLanes = 8;
using HalfLanes = lang::Vec<lang::u16, kLanes>;
using FloatLanes = lang::Vec<float, kLanes>;

// Converts whole vectors, then the rest in a vector of its own.
template <typename From, typename To, typename FromLanes, typename ToLanes, typename Convert>
void convert_run(const From* from, To* to, std::int64_t num_elems, const Convert& convert) {
  for (std::int64_t i = 0; i < num_elems; i += kLanes) {
    const std::size_t lanes =
        static_cast<std::size_t>(std::min<std::int64_t>(kLanes, num_elems - i));
    FromLanes in{};
    std::memcpy(&in, from + i, lanes * sizeof(From));
    const ToLanes out = convert(in);
    std::memcpy(to + i, &out, lanes * sizeof(To));
  }
}

template <typename Convert>
void widen_run(const void* from, float* to, std::int64_t num_elems, const Convert& convert) {
  convert_run<lang::u16, float, HalfLanes, FloatLanes>(static_cast<const lang::u16*>(from), to,
                                                       num_elems, convert);
}
template <typename Convert>
void narrow_run(const float* from, void* to, std::int64_t num_elems, const Convert& convert) {
  convert_run<float, lang::u16, FloatLanes, HalfLanes>(from, static_cast<lang::u16*>(to), num_elems,
                                                       convert);
}

bool contains(const std::vector<BufferIndex>& list, BufferIndex buffer) {
  return std::ranges::find(list, buffer) != list.end();
}

// What the steps of an entry do with a buffer.
struct BufferUse {
  bool is_tiled = true;  // by every step so far
  std::uint32_t num_kernels = 0, nested_kernels = 0, last_kernel = 0;
};

void note_use(const ProgramImage& image, std::span<const Step> steps, BufferIndex buffer,
              bool is_nested, BufferUse& use) {
  for (const Step& step : steps) {
    if (step.kind == StepKind::Launch) {
      const KernelInfo& kernel = image.kernels[step.index];
      if (contains(kernel.untouched, buffer)) continue;
      use.is_tiled = use.is_tiled && contains(kernel.tiled, buffer);
      use.last_kernel = step.index;
      ++use.num_kernels;
      if (is_nested) ++use.nested_kernels;
      continue;
    }
    const bool names_it = (step.kind == StepKind::Zero || step.has_source()) &&
                          (step.index == buffer || step.index2 == buffer);
    if (names_it) use.is_tiled = false;
    for (const auto* held : {&step.cond, &step.body, &step.orelse}) {
      note_use(image, *held, buffer, true, use);
    }
  }
}

}  // namespace

void widen(const void* from, DType dtype, float* to, std::int64_t num_elems) {
  if (dtype == kF16) {
    widen_run(from, to, num_elems, [](HalfLanes x) { return lang::from_f16(x); });
  } else {
    widen_run(from, to, num_elems, [](HalfLanes x) { return lang::from_bf16(x); });
  }
}

void narrow(const float* from, void* to, DType dtype, std::int64_t num_elems) {
  if (dtype == kF16) {
    narrow_run(from, to, num_elems, [](FloatLanes x) { return lang::f32_to_f16(x); });
  } else {
    narrow_run(from, to, num_elems, [](FloatLanes x) { return lang::f32_to_bf16(x); });
  }
}

Result<BufferIndex> find_tiled(const ProgramImage& image, EntryKind entry, BufferRole role,
                               const HostEnv& env) {
  const auto found = std::ranges::find(image.buffers, role, &BufferInfo::role);
  if (found == image.buffers.end() || found->dtype != kF32) return kNoIndex;
  const auto buffer = static_cast<BufferIndex>(found - image.buffers.begin());
  BufferUse use;
  note_use(image, image.entries[static_cast<std::size_t>(entry)].steps, buffer, false, use);
  if (!use.is_tiled || use.num_kernels == 0) return kNoIndex;
  if (role != BufferRole::Output) return buffer;
  // One launch makes all elements.
  if (use.num_kernels != 1 || use.nested_kernels != 0) return kNoIndex;
  const auto groups = TRY(kernel_groups(image, use.last_kernel, env));
  const std::int64_t group_elems = image.kernels[use.last_kernel].group_elems;
  return groups >= (env.n + group_elems - 1) / group_elems ? buffer : kNoIndex;
}

void PartRunner::begin(const NarrowTensor& tensor, bool is_output, std::span<void* const> buffers) {
  tensor_ = tensor;
  is_output_ = is_output;
  if (tensor.buffer == kNoIndex) return;
  num_buffers_ = buffers.size();
  const std::size_t threads = tensor.room.size() / static_cast<std::size_t>(kPartBytes);
  tables_.resize(threads * num_buffers_);
  free_.resize(threads);
  for (std::size_t i = 0; i < threads; ++i) {
    free_[i] = i;
    std::ranges::copy(buffers, tables_.begin() + static_cast<std::ptrdiff_t>(i * num_buffers_));
  }
}

bool PartRunner::takes_part(const KernelInfo& kernel) const {
  return tensor_.buffer != kNoIndex && contains(kernel.tiled, tensor_.buffer);
}

void PartRunner::run(const KernelInfo& kernel, KernelFunction function, const KernelArgs& args,
                     std::uint64_t begin, std::uint64_t end) CINCH_CALLS_KERNELS {
  std::size_t thread = 0;
  {
    const std::lock_guard lock(mutex_);
    thread = free_.back();
    free_.pop_back();
  }
  auto* part = reinterpret_cast<float*>(tensor_.room.data() + thread * kPartBytes);
  void** const table = tables_.data() + thread * num_buffers_;
  KernelArgs own = args;
  own.buffers = table;
  const std::uint64_t multiple = kernel.group_multiple, each = kernel.group_elems;
  const std::uint64_t step =
      std::max<std::uint64_t>(kMostTiledElems / each / multiple, 1) * multiple;
  for (std::uint64_t at = begin; at < end; at += step) {
    const std::uint64_t last = std::min(at + step, end);
    const auto first_elem = static_cast<std::int64_t>(at * each);
    const std::int64_t num_elems =
        std::min(static_cast<std::int64_t>(last * each), tensor_.num_elems) - first_elem;
    auto* const data = static_cast<lang::u16*>(tensor_.data) + first_elem;
    // Kernels add the place of a group's elements in the whole tensor.
    const auto begin_of_tensor =
        reinterpret_cast<std::uintptr_t>(part) - static_cast<std::uintptr_t>(first_elem) * 4;
    table[tensor_.buffer] =
        reinterpret_cast<void*>(begin_of_tensor);  // NOLINT(performance-no-int-to-ptr)
    if (!is_output_ && num_elems > 0) widen(data, tensor_.dtype, part, num_elems);
    function(&own, at, last);
    if (is_output_ && num_elems > 0) narrow(part, data, tensor_.dtype, num_elems);
  }
  const std::lock_guard lock(mutex_);
  free_.push_back(thread);
}

}  // namespace cinch::rt
