// What the parts of a session on a GPU share: the program, the tensors and parameters, and for each
// kind of call what it does and the tables that its launches read.
#pragma once

#include <array>

#include "runtime/call/tensor_facts.h"
#include "runtime/core/sizes/host_memo.h"
#include "runtime/core/sizes/host_range.h"
#include "runtime/core/use_flag.h"
#include "runtime/gpu/events.h"
#include "runtime/gpu/plan.h"
#include "runtime/gpu/session/session.h"

namespace cinch::rt {
/// What one kind of call does, in order, and the launches that it does it by.
struct GpuCallPlan {
  std::vector<PlannedLaunch> steps;
  std::vector<GpuBatch> batches;
  GpuArena::Piece table = GpuArena::kNone;  // the steps, as GpuStep
  const GpuKernels* kernels = nullptr;      // of the last call that was not captured
};

/// What the launches of one kind of call read.
struct GpuCallTables {
  GpuCallTables(const GpuTensorLayout& layout, std::size_t num_tensors)
      : table(layout, num_tensors),
        checked_gradients(num_tensors),
        checked_outputs(num_tensors),
        checked_payloads(num_tensors) {}
  GpuTable table;
  // By tensor: the addresses that were last found to be the device's memory.
  std::vector<GpuAddress> checked_gradients, checked_outputs, checked_payloads;
  std::vector<GpuPayload> payloads;  // of the last call; where fields lie in them follows sizes
  // The table's sizes are those of these parameters, and of this step where sizes follow it.
  std::optional<std::uint64_t> sizes_version;
  std::uint64_t sizes_step = 0;
  bool was_made = false;  // its memory is bound
};

struct GpuSessionCore {
  GpuSessionCore(std::shared_ptr<const GpuProgram> loaded, GpuSessionOptions opts);
  GpuSessionCore(const GpuSessionCore&) = delete;
  GpuSessionCore& operator=(const GpuSessionCore&) = delete;

  const ProgramImage& image() const { return program->image(); }
  const ProgramInfo& info() const { return program->info(); }
  const GpuDevice& device() const { return *program->device(); }
  std::size_t num_tensors() const { return facts.size(); }
  bool is_f32() const { return options.dtype == kF32; }
  bool has(EntryKind kind) const { return image().entries[static_cast<std::size_t>(kind)].present; }
  GpuCallPlan& plan_of(EntryKind kind) { return plans[static_cast<std::size_t>(kind)]; }
  // Init and Encode (or Sync) use one table: they never bind the same buffers.
  GpuCallTables& call_of(EntryKind kind) {
    const EntryKind first = has(EntryKind::Sync) ? EntryKind::Sync : EntryKind::Encode;
    return *calls[static_cast<std::size_t>(kind == EntryKind::Init ? first : kind)];
  }
  BufferIndex buffer_of(BufferRole role, std::uint32_t role_index = 0) const;
  /// Binds the tensor's memo to it.
  HostEnv env(std::size_t tensor, std::uint64_t step) const;
  /// How small and how large it gets, of a tensor, with the first and the largest parameters.
  Result<StepBounds> over_steps(HostExprId expr, const TensorFacts& tensor) const {
    return over_steps(*info().exprs, expr, tensor);
  }
  Result<StepBounds> over_steps(const HostExprPool& pool, HostExprId expr,
                                const TensorFacts& tensor) const;

  UseFlag in_use;
  std::shared_ptr<const GpuProgram> program;
  GpuSessionOptions options;
  GpuTuning tuning;
  GpuTensorLayout layout;
  std::vector<TensorFacts> facts;
  mutable std::vector<HostMemo> memos;  // by tensor
  ParameterValues parameters, largest;
  std::vector<GivenInputs> given;                                 // by tensor
  std::uint64_t parameters_version = 0;                           // counts changes
  std::array<std::unique_ptr<GpuCallTables>, kNumEntries> calls;  // null: the program cannot
  std::array<GpuCallPlan, kNumEntries> plans;
  std::vector<PlannedBound> bounds;  // of all loops
  GpuStreamOrder order;              // of all calls
  GpuStream stream = nullptr;        // of calls on views
};

inline bool takes_gradient(EntryKind kind) {
  return kind == EntryKind::Encode || kind == EntryKind::Sync;
}
/// Of the session's type; what is added to is f32.
inline bool gives_output(EntryKind kind) {
  return kind == EntryKind::Decode || kind == EntryKind::Finish || kind == EntryKind::Sync;
}

/// A part of a session: state and functions of one job, over what all share.
class GpuSessionPart {
 public:
  explicit GpuSessionPart(GpuSessionCore& core) : core_(core) {}
  GpuSessionPart(const GpuSessionPart&) = delete;
  GpuSessionPart& operator=(const GpuSessionPart&) = delete;

 protected:
  ~GpuSessionPart() = default;
  GpuSessionCore& core() const { return core_; }
  const ProgramImage& image() const { return core_.image(); }
  const ProgramInfo& info() const { return core_.info(); }
  const GpuDevice& device() const { return core_.device(); }
  std::size_t num_tensors() const { return core_.num_tensors(); }
  bool has(EntryKind kind) const { return core_.has(kind); }
  bool is_f32() const { return core_.is_f32(); }
  BufferIndex buffer_of(BufferRole role, std::uint32_t role_index = 0) const {
    return core_.buffer_of(role, role_index);
  }
  HostEnv env(std::size_t tensor, std::uint64_t step) const { return core_.env(tensor, step); }

 private:
  GpuSessionCore& core_;
};

// The memory of a session on a GPU: measured when it opens, made once, and where everything is in
// it.

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

// How many blocks each launch of a session on a GPU takes, where those of each tensor begin, and
// what needs no more than one.

class GpuBlocks : public GpuSessionPart {
 public:
  GpuBlocks(GpuSessionCore& core, GpuSessionMemory& memory)
      : GpuSessionPart(core), memory_(memory) {}

  // ---- opening, in this order ----
  /// Asks for memory of the table.
  void measure();
  Status count();
  /// Makes launches of the steps that were planned.
  void batch_steps();
  Status send(GpuStream stream);

  // ---- launches ----
  std::uint32_t num_blocks(const PlannedLaunch& step) const { return num_blocks_[shape_of(step)]; }
  /// Where the launch finds the first block of each tensor; 0 of one tensor.
  GpuAddress first_block(const PlannedLaunch& step) const;

 private:
  /// Launches that take the same blocks: of a kernel, then of services, folds, seals and fills.
  std::size_t num_shapes() const { return image().kernels.size() + 4; }
  std::size_t shape_of(const PlannedLaunch& step) const;
  Result<std::int64_t> blocks_of(std::size_t shape, std::size_t tensor) const;
  Result<std::int64_t> kernel_blocks(std::size_t kernel, const TensorFacts& tensor) const;
  std::int64_t that_fit(std::int64_t blocks, std::int64_t resident) const;
  std::int64_t service_blocks(const TensorFacts& tensor) const;
  std::int64_t seal_blocks(std::size_t tensor) const;
  bool are_fields_in_place() const;
  bool is_narrow(const PlannedLaunch& step) const;
  bool is_narrow_service(const PlannedLaunch& step) const;

  GpuSessionMemory& memory_;
  GpuArena::Piece first_blocks_ = GpuArena::kNone;  // of one tensor there is no table
  // By shape: blocks; where those of each tensor begin, as num_tensors + 1 words; and whether no
  // tensor has more than one.
  std::vector<std::uint32_t> num_blocks_, block_begins_;
  std::vector<bool> is_narrow_shape_;
};

// Calls of a session on a GPU: the caller's memory bound, tables written and sent, launches
// enqueued, and what became of them.

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
  /// Errors: InvalidArgument (a tensor's input has no value).
  Status use_inputs(EntryKind kind, std::uint64_t step);
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
