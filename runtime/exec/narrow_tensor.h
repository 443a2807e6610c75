// Tensors of f16 and bf16, which kernels see as f32. Where each group of a kernel takes or makes
// only its own elements, they are converted part by part, in memory of the thread.
#pragma once
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// Elements of f16 or bf16 to f32, and back, rounded as the language does.
void widen(const void* from, DType dtype, float* to, std::int64_t num_elems);
void narrow(const float* from, void* to, DType dtype, std::int64_t num_elems);

inline constexpr std::int64_t kPartBytes = std::int64_t{kMostTiledElems} * 4;

/// The gradient or the output of an entry, if all that the entry does with it goes group by group;
/// else kNoIndex. Errors: those of formulas.
Result<BufferIndex> find_tiled(const ProgramImage& image, EntryKind entry, BufferRole role,
                               const HostEnv& env);

/// A call's tensor that is converted part by part.
struct NarrowTensor {
  BufferIndex buffer = kNoIndex;  // kNoIndex: there is none
  void* data = nullptr;
  DType dtype = kF32;
  std::int64_t num_elems = 0;
  /// kPartBytes for each thread.
  std::span<std::uint8_t> room = {};
};

/// Runs groups on parts of a NarrowTensor.
class PartRunner {
 public:
  /// Begins a call. `buffers` and what `tensor` names outlive it.
  void begin(const NarrowTensor& tensor, bool is_output, std::span<void* const> buffers);
  /// Does the kernel touch the tensor?
  bool takes_part(const KernelInfo& kernel) const;
  /// Called from as many threads at a time as there is room for.
  void run(const KernelInfo& kernel, KernelFunction function, const KernelArgs& args,
           std::uint64_t begin, std::uint64_t end);

 private:
  NarrowTensor tensor_;
  bool is_output_ = false;
  std::size_t num_buffers_ = 0;
  std::vector<void*> tables_;  // a table of buffers for each thread
  std::vector<std::size_t> free_;
  std::mutex mutex_;
};

}  // namespace cinch::rt
