// Calls of a session on a GPU: the caller's memory bound, tables written and sent, launches
// enqueued, and what became of them.
#pragma once

#include "runtime/gpu/session/core.h"

namespace cinch::rt {

/// The arrays that a kind of call has.
struct GpuCallArrays {
  std::span<const GpuAddress> from;  // gradients or sums
  std::span<const GpuPayload> payloads;
  std::span<const GpuAddress> to;  // outputs or updates
};

class GpuCalls : public GpuSessionPart {
 public:
  GpuCalls(GpuSessionCore& core, GpuSessionMemory& memory, const GpuBlocks& blocks)
      : GpuSessionPart(core), memory_(memory), blocks_(blocks) {}

  /// When a session opens: do sizes have to be written anew for each step?
  void note_what_follows_step();
  /// As GpuSession's.
  Status set_parameter(std::string_view name, double value);
  Status lay_out_payload(std::size_t tensor, std::uint64_t step, PayloadLayout& to) const;
  Result<std::int64_t> payload_bound(std::size_t tensor, std::uint64_t step);

  /// A whole call but `sync`.
  Status call_with(EntryKind kind, const GpuCallArrays& arrays, std::uint64_t step, GpuStream on);
  /// The same with the memory that is bound.
  Status call(EntryKind kind, std::uint64_t step, GpuStream stream);
  Status prepare(EntryKind kind, std::uint64_t step, GpuStream stream);
  Result<std::vector<TensorOutcome>> collect(GpuStream from);

  // ---- parts of a call ----
  Status bind_tensors(EntryKind kind, std::span<const GpuAddress> gradients,
                      std::span<const GpuAddress> outputs);
  /// Everything of the tables that follows from parameters and step.
  Status write_facts(EntryKind kind, std::uint64_t step);
  Status check_host_conditions(EntryKind kind, std::uint64_t step) const;
  /// For a call that is not captured.
  void take_best_kernels(EntryKind kind);
  Status launch(EntryKind kind, const GpuBatch& batch, bool begins_call, GpuStream stream);
  Result<bool> is_capturing(GpuStream stream) const;

 private:
  /// Asks the driver about an address unless it was asked before, and notes it.
  Status check_address(GpuAddress address, GpuAddress& checked, const char* what,
                       std::size_t tensor) const;
  Status bind_payloads(EntryKind kind, std::span<const GpuPayload> payloads, std::uint64_t step);
  Status write_sizes(EntryKind kind, std::size_t tensor, std::uint64_t step);
  Status check_parameter(std::string_view name, double value) const;
  Result<std::int64_t> rounds_at(const PlannedBound& bound, const HostEnv& at) const;
  Status check_fields(std::size_t tensor, const HostEnv& at) const;
  Status check_loops(const HostEnv& at, std::size_t tensor) const;
  void write_step(EntryKind kind, std::size_t tensor, std::uint64_t step);
  Status capture(EntryKind kind, GpuStream stream);
  Status enqueue(EntryKind kind, GpuStream stream);

  GpuSessionMemory& memory_;
  const GpuBlocks& blocks_;
  bool sizes_follow_step_ = false;
  PayloadLayout bound_;  // of the tensor that is looked at; keeps its memory
};

/// The error for GpuOutcome::failed. Errors: CheckFailed (a check of the program), CorruptPayload,
/// VersionMismatch; Internal for an unknown number.
Status gpu_fault(const ProgramImage& image, std::uint32_t failed);

}  // namespace cinch::rt
