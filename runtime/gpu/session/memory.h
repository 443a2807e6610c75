// The memory of a session on a GPU: measured when it opens, made once, and where everything is in
// it.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/gpu/session/core.h"

namespace cinch::rt {

class GpuSessionMemory : public GpuSessionPart {
 public:
  using GpuSessionPart::GpuSessionPart;
  ~GpuSessionMemory() { arena_.used_until(core().order.end()); }

  // ---- opening ----
  /// The most bytes of every buffer of every tensor, as pieces of the arena.
  Status measure();
  /// Of other parts, which add what they need before it is made.
  GpuArena& arena() { return arena_; }
  const GpuArena& arena() const { return arena_; }
  Status make(GpuStream stream);

  // ---- where it is ----
  /// Of what the session holds itself.
  GpuAddress own_address(std::size_t tensor, BufferIndex b) const;
  GpuArena::Piece piece(std::size_t tensor, BufferIndex b) const { return pieces_[tensor][b]; }
  /// By tensor and buffer: the largest a buffer gets.
  const std::vector<std::vector<std::int64_t>>& capacities() const { return capacities_; }
  GpuAddress status_words() const { return arena_.address(call_words_); }
  GpuAddress counts() const;
  GpuAddress outcomes() const { return arena_.address(outcomes_); }
  GpuAddress swapped() const { return arena_.address(swapped_); }
  GpuArena::Piece swapped_piece() const { return swapped_; }

  /// Status words and counts are zero at the start of each call.
  Status begin_call(GpuStream stream) const;

 private:
  Status check_states(std::size_t tensor) const;
  Status measure_tensor(std::size_t tensor);
  Status measure_buffer(std::size_t tensor, BufferIndex b);
  std::string largest_that_follows_step() const;
  Status place(GpuStream stream);
  Status clear(GpuArena::Piece piece, GpuStream stream) const;
  Status send_constants(GpuStream stream);
  void place_buffers(EntryKind kind);

  GpuArena arena_;
  std::vector<std::vector<GpuArena::Piece>> pieces_;  // kNone: the caller's
  std::vector<std::vector<std::int64_t>> capacities_;
  std::vector<GpuArena::Piece> constants_;                 // by constant
  std::vector<GpuArena::Piece> scratch_in_, scratch_out_;  // f32, by tensor; may be kNone
  std::array<GpuArena::Piece, kNumEntries> table_pieces_{};
  GpuArena::Piece call_words_ = 0, swapped_ = 0, outcomes_ = 0;
  std::size_t call_words_bytes_ = 0;
};

}  // namespace cinch::rt
