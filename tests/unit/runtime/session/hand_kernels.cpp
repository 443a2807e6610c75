// Kernels of a small sparsifier with error feedback, written by hand against KernelArgs. They are
// compiled into a shared object, whose bytes are the binary of an image. Buffer numbers are those
// of hand_program.cpp.
#include <cstdint>
#include <cstring>

#include "runtime/image/image.h"

// Nothing, or what tells this code from the other.
#ifndef CINCH_ADDED
#define CINCH_ADDED 0
#endif

using cinch::rt::KernelArgs;

namespace {

constexpr std::uint64_t kTile = 1024;

template <typename T>
T* buffer(const KernelArgs* args, int index) {
  return static_cast<T*>(args->buffers[index]);
}
float tau(const KernelArgs* args) {
  float value;
  std::memcpy(&value, &args->params[0], sizeof value);
  return value;
}

}  // namespace

// corrected = g + residual; elements that reach tau are sent and leave the residual. One task, in
// order.
extern "C" void hand_encode(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  const auto n = static_cast<std::uint32_t>(args->sizes[0]);
  const float* g = buffer<const float>(args, 0);
  const float* residual = buffer<const float>(args, 1);
  float* next = buffer<float>(args, 2);
  std::uint32_t* count = buffer<std::uint32_t>(args, 3);
  std::uint32_t* index = buffer<std::uint32_t>(args, 4);
  float* value = buffer<float>(args, 5);
  *count = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    if (!(g[i] - g[i] == 0)) args->status[0] |= 1;
    if (g[i] == 12345.0f) args->status[1] = 1;
    const float corrected = g[i] + residual[i];
    const bool is_sent = corrected >= tau(args) || corrected <= -tau(args);
    next[i] = is_sent ? 0 : corrected;
    if (!is_sent) continue;
    index[*count] = i;
    value[*count] = corrected;
    ++*count;
  }
}

extern "C" void hand_scatter(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t count = *buffer<const std::uint32_t>(args, 3);
  if (end * kTile > count) end = (count + kTile - 1) / kTile;
  for (std::uint64_t i = begin * kTile; i < end * kTile && i < count; ++i) {
    buffer<float>(args, 6)[buffer<const std::uint32_t>(args, 4)[i]] =
        buffer<const float>(args, 5)[i] + CINCH_ADDED;
  }
}

extern "C" void hand_scatter_add(const KernelArgs* args, std::uint64_t, std::uint64_t) {
  const std::uint64_t count = *buffer<const std::uint32_t>(args, 3);
  for (std::uint64_t i = 0; i < count; ++i) {
    buffer<float>(args, 6)[buffer<const std::uint32_t>(args, 4)[i]] +=
        buffer<const float>(args, 5)[i];
  }
}

// The residual starts as the tensor's number plus the seed, so that a test sees that both arrive.
extern "C" void hand_init(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t n = args->sizes[0];
  for (std::uint64_t i = begin * kTile; i < end * kTile && i < n; ++i) {
    buffer<float>(args, 2)[i] = static_cast<float>(args->draw[0] + args->draw[4]);
  }
}

// update = sum / world + residual; residual' = residual + 1.
extern "C" void hand_finish(const KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  const std::uint64_t n = args->sizes[0];
  for (std::uint64_t i = begin * kTile; i < end * kTile && i < n; ++i) {
    const float sum = buffer<const float>(args, 0)[i];
    if (!(sum - sum == 0)) __atomic_fetch_or(&args->status[0], 1u, __ATOMIC_RELAXED);
    const float residual = buffer<const float>(args, 1)[i];
    buffer<float>(args, 6)[i] = sum / static_cast<float>(args->sizes[1]) + residual;
    buffer<float>(args, 2)[i] = residual + 1;
  }
}
