// Arithmetic on whole arrays of a device's memory, by the services that every image holds. It
// serves tensors that no program works on.
#pragma once

#include "runtime/gpu/program.h"
#include "runtime/tuning/tuning.h"

namespace cinch::rt {

/// Two arrays of a device, each at a multiple of its elements' size. Calls skip pairs of no
/// elements.
struct GpuArrayPair {
  GpuAddress to = 0, from = 0;
  std::int64_t num_elems = 0;
  GpuAddress flag = 0;  // a byte, for calls that use a flag
};

/// Calls put work on one stream and wait for nothing. Pairs of a call share launches, so no pair
/// may use the memory of another pair's `to`. Errors of calls: Device.
class GpuArrays {
 public:
  /// `program`: any program for the device. Errors: InvalidArgument (a program without gradient and
  /// output), OutOfMemory, Device.
  static Result<GpuArrays> make(std::shared_ptr<const GpuProgram> program, GpuStream stream);

  /// to += from, f32.
  Status add(std::span<const GpuArrayPair> pairs);
  /// Copies elements of one byte, of any type.
  Status copy(std::span<const GpuArrayPair> pairs);
  /// For pairs whose flag is not 0: copy_where copies, zero_where writes zeros to `to`. Errors:
  /// also Internal (has_flags is false).
  Status copy_where(std::span<const GpuArrayPair> pairs);
  Status zero_where(std::span<const GpuArrayPair> pairs);
  /// Does the program have one more buffer than add uses, as flags need?
  bool has_flags() const { return flag_ != kNoIndex; }
  /// divide: to = from / divisor, f32; `to` may be `from`. multiply: to = from * factor.
  Status divide(std::span<const GpuArrayPair> pairs, float divisor);
  Status multiply(std::span<const GpuArrayPair> pairs, float factor);
  /// Converts f16 or bf16 to f32, and back.
  Status widen(std::span<const GpuArrayPair> pairs, DType from);
  Status narrow(std::span<const GpuArrayPair> pairs, DType to);
  /// Notes whether some `from`, f32, holds an infinite value or a NaN.
  Status look_for_non_finite(std::span<const GpuArrayPair> pairs);
  /// Was such a value found since the last call of this? Waits.
  Result<bool> take_non_finite();

 private:
  // Which operand of a service is its tensor; the others are buffers.
  enum class Operands : std::uint8_t { ToIsTensor, FromIsTensor, Buffers };

  GpuArrays(std::shared_ptr<const GpuProgram> program, GpuStream stream);
  Status place_memory();
  Status run_where(GpuStep step, std::span<const GpuArrayPair> pairs);
  Status clear(GpuArena::Piece piece, unsigned char byte);
  /// `words`: status words for the pairs of one launch.
  Status run(const GpuStep& step, Operands operands, std::span<const GpuArrayPair> pairs,
             GpuArena::Piece words);
  Status run(const GpuStep& step, Operands operands, std::span<const GpuArrayPair> pairs) {
    return run(step, operands, pairs, zeros_);
  }
  Status launch(const GpuStep& step, Operands operands, std::span<const GpuArrayPair> pairs,
                GpuArena::Piece words);
  std::uint32_t write_table(Operands operands, std::span<const GpuArrayPair> pairs);
  std::size_t table_bytes(std::size_t num_pairs) const;

  std::shared_ptr<const GpuProgram> program_;
  GpuStream stream_;
  GpuTuning tuning_;
  GpuTensorLayout layout_;
  BufferIndex to_ = kNoIndex, from_ = kNoIndex;  // buffers that the operands use
  BufferIndex flag_ = kNoIndex;                  // buffer that the flag uses
  std::size_t most_pairs_ = 1;                   // in one launch
  GpuArena arena_;
  GpuArena::Piece table_ = 0, zeros_ = 0, looks_ = 0;
  std::vector<std::uint8_t> bytes_;       // the table: entries, then the first block of each
  std::vector<GpuArrayPair> with_elems_;  // pairs of the call that have elements
};

}  // namespace cinch::rt
