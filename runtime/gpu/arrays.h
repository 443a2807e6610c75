// Arithmetic on whole arrays of a device's memory, by the services that every image holds: what is
// done to tensors that no program has a part in.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "runtime/gpu/program.h"
#include "runtime/tuning/numbers.h"

namespace cinch::rt {

/// Two arrays of a device, each at a multiple of its elements' size. Of no elements nothing is
/// done.
struct GpuArrayPair {
  GpuAddress to = 0, from = 0;
  std::int64_t num_elems = 0;
  GpuAddress flag = 0;  // a byte, of calls that ask for it
};

/// Calls enqueue on one stream and wait for nothing; pairs of a call share launches, so that none
/// has the memory of another one's `to`. Errors of calls: Device.
class GpuArrays {
 public:
  /// `program`: any for the device. Errors: InvalidArgument (one without gradient and output),
  /// OutOfMemory, Device.
  static Result<GpuArrays> make(std::shared_ptr<const GpuProgram> program, GpuStream stream);

  /// to += from, f32.
  Status add(std::span<const GpuArrayPair> pairs);
  /// Elements of one byte, whatever they are.
  Status copy(std::span<const GpuArrayPair> pairs);
  /// The same where the flag is not 0, and zeros to `to`. Errors: also Internal (has_flags).
  Status copy_where(std::span<const GpuArrayPair> pairs);
  Status zero_where(std::span<const GpuArrayPair> pairs);
  /// Has the program a buffer more than add takes, so that flags can be asked for?
  bool has_flags() const { return flag_ != kNoIndex; }
  /// to = from / divisor, f32; may be the same memory. And to = from * factor.
  Status divide(std::span<const GpuArrayPair> pairs, float divisor);
  Status multiply(std::span<const GpuArrayPair> pairs, float factor);
  /// f32 from f16 or bf16, and back.
  Status widen(std::span<const GpuArrayPair> pairs, DType from);
  Status narrow(std::span<const GpuArrayPair> pairs, DType to);
  /// Notes whether some `from`, f32, holds an infinite value or a NaN.
  Status look_for_non_finite(std::span<const GpuArrayPair> pairs);
  /// Was that so since the last call of this? Waits.
  Result<bool> take_non_finite();

 private:
  // Which of a service's operands is its tensor, and which are buffers.
  enum class Operands : std::uint8_t { ToIsTensor, FromIsTensor, Buffers };

  GpuArrays(std::shared_ptr<const GpuProgram> program, GpuStream stream);
  Status place_memory();
  Status run_where(GpuStep step, std::span<const GpuArrayPair> pairs);
  Status clear(GpuArena::Piece piece, unsigned char byte);
  /// `words`: status words of the pairs of a launch.
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
  BufferIndex to_ = kNoIndex, from_ = kNoIndex;  // of the buffers that operands take
  BufferIndex flag_ = kNoIndex;                  // and that flags do
  std::size_t most_pairs_ = 1;                   // of a launch
  GpuArena arena_;
  GpuArena::Piece table_ = 0, zeros_ = 0, looks_ = 0;
  std::vector<std::uint8_t> bytes_;       // the table: entries, then where blocks begin
  std::vector<GpuArrayPair> with_elems_;  // of a call
};

}  // namespace cinch::rt
