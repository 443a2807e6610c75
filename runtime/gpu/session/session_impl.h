// The inside of a session on a GPU. Tables are written on the host, sent where they changed, and
// then all launches of a call are enqueued.
#pragma once
#include <array>
#include <optional>
#include <vector>

#include "runtime/call/state_file.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/core/sizes/host_memo.h"
#include "runtime/core/sizes/step_bounds.h"
#include "runtime/core/use_flag.h"
#include "runtime/gpu/batches.h"
#include "runtime/gpu/plan.h"
#include "runtime/gpu/session/session.h"
#include "runtime/gpu/stream_order.h"
#include "runtime/gpu/tables.h"

namespace cinch::rt {

struct GpuSession::Impl {
  Impl(std::shared_ptr<const GpuProgram> loaded, GpuSessionOptions opts);
  ~Impl() { arena.used_until(order.end()); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // What one kind of call does, in order, and the launches that it does it by.
  struct Plan {
    std::vector<PlannedLaunch> steps;
    std::vector<GpuBatch> batches;
    GpuArena::Piece table = GpuArena::kNone;  // the steps, as GpuStep
  };
  // What the launches of one kind of call read.
  struct Call {
    explicit Call(const GpuTensorLayout& layout, std::size_t num_tensors)
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

  // ---- session_open.cpp ----
  Status open(GpuStream stream);
  Status make_memory(GpuStream stream);
  Status set_parameters();
  Status plan(EntryKind kind);
  Status plan_entry(EntryKind runs, Plan& plan);
  Status plan_encode(Plan& plan);
  Status plan_init(Plan& plan);
  Status plan_decode(EntryKind kind, Plan& plan);
  Status plan_finish(Plan& plan);
  Status plan_sync(Plan& plan);
  /// How small and how large it gets, of a tensor, with the first and the largest parameters.
  Result<StepBounds> over_steps(HostExprId expr, const TensorFacts& tensor) const {
    return over_steps(info().exprs, expr, tensor);
  }
  Result<StepBounds> over_steps(const HostExprPool& pool, HostExprId expr,
                                const TensorFacts& tensor) const;
  Result<std::int64_t> most_rounds(HostExprId begin, HostExprId end) const;
  Status measure_buffer(std::size_t tensor, BufferIndex b);
  Status measure();
  Status measure_tensor(std::size_t tensor);
  Status place_memory(GpuStream stream);
  std::string largest_that_follows_step() const;
  Status send_constants(GpuStream stream);
  void place_buffers(EntryKind kind);
  GpuAddress own_address(std::size_t tensor, BufferIndex b) const;
  void note_what_follows_step();
  Status run_init(GpuStream stream);

  // ---- session_blocks.cpp ----
  Status count_blocks();
  /// Launches that take the same blocks: of a kernel, then of services, folds, and seals.
  std::size_t num_shapes() const { return image().kernels.size() + 4; }
  std::size_t shape_of(const PlannedLaunch& step) const;
  Result<std::int64_t> blocks_of(std::size_t shape, std::size_t tensor) const;
  Result<std::int64_t> kernel_blocks(std::size_t kernel, const TensorFacts& tensor) const;
  std::int64_t that_fit(std::int64_t blocks, std::int64_t resident) const;
  std::int64_t service_blocks(const TensorFacts& tensor) const;
  std::int64_t fold_blocks(const TensorFacts& tensor) const;
  std::int64_t fill_blocks(const TensorFacts& tensor) const;
  std::int64_t seal_blocks(std::size_t tensor) const;
  bool are_fields_in_place() const;
  bool is_narrow(const PlannedLaunch& step) const;
  bool is_narrow_service(const PlannedLaunch& step) const;
  void batch_steps();
  Status send_blocks(GpuStream stream);

  // ---- session.cpp: states, wherever the device has them now ----
  Result<std::vector<GpuAddress>> state_addresses(std::size_t tensor, GpuStream stream);
  Result<std::vector<std::vector<std::uint8_t>>> states(std::size_t tensor, GpuStream stream);
  Status set_states(std::size_t tensor, std::span<const std::uint8_t> bytes, GpuStream stream);
  StateFileKey state_key(std::size_t tensor) const;
  Status lay_out_payload(std::size_t tensor, std::uint64_t step, PayloadLayout& to) const;

  // ---- session_states.cpp: how large states are, and as they were before a step ----
  Status check_states(std::size_t tensor) const;
  void measure_kept_states();
  Status check_keeps() const;
  Status keep_states(GpuStream stream) const;
  Status take_back_states(std::size_t first, std::size_t count, GpuStream stream) const;
  Status copy_states(GpuAddress to, GpuAddress from, std::size_t size, GpuStream stream) const;

  // ---- session_calls.cpp ----
  /// Asks the driver about an address unless it was asked before, and notes it.
  Status check_address(GpuAddress address, GpuAddress& checked, const char* what,
                       std::size_t tensor) const;
  Status bind_tensors(EntryKind kind, std::span<const GpuAddress> gradients,
                      std::span<const GpuAddress> outputs);
  Status bind_payloads(EntryKind kind, std::span<const GpuPayload> payloads, std::uint64_t step);
  /// Everything of the tables that follows from parameters and step.
  Status write_facts(EntryKind kind, std::uint64_t step);
  Status write_sizes(EntryKind kind, std::size_t tensor, std::uint64_t step);
  Result<std::int64_t> rounds_at(const PlannedBound& bound, const HostEnv& at) const;
  Status check_fields(std::size_t tensor, const HostEnv& at) const;
  Status check_loops(const HostEnv& at, std::size_t tensor) const;
  void write_step(EntryKind kind, std::size_t tensor, std::uint64_t step);
  Status check_host_conditions(EntryKind kind, std::uint64_t step) const;
  struct Arrays {
    std::span<const GpuAddress> from;  // gradients or sums
    std::span<const GpuPayload> payloads;
    std::span<const GpuAddress> to;  // outputs or updates
  };
  /// A whole call but `sync`, with the arrays that the kind has.
  Status call_with(EntryKind kind, const Arrays& arrays, std::uint64_t step, GpuStream on);
  Result<std::vector<TensorOutcome>> collect(GpuStream from);
  Status call(EntryKind kind, std::uint64_t step, GpuStream stream);
  Status capture(EntryKind kind, GpuStream stream);
  Status enqueue(EntryKind kind, GpuStream stream);
  Status launch(EntryKind kind, const GpuBatch& batch, bool begins_call, GpuStream stream);
  Result<bool> is_capturing(GpuStream stream) const;

  // ---- session_list.cpp ----
  template <typename Read>
  ListStatus call_list(EntryKind kind, const ListCall& on, const Read& read);
  template <typename View>
  ListStatus decode_list(EntryKind kind, const ListCall& call,
                         std::span<const PayloadBytes> payloads, std::span<const View> outputs,
                         DType dtype);
  /// Adds to the arrays of a call. Errors: InvalidArgument, with the place.
  template <typename View>
  ListStatus read_views(std::span<const View> views, DType dtype,
                        std::vector<GpuAddress>& to) const;
  ListStatus read_payload(PayloadBytes bytes);

  // ---- session_sync.cpp: of a session of one tensor ----
  using StatusWords = std::array<std::uint32_t, kStatusWords>;
  /// Of one that is under way.
  struct Syncing {
    bool is_under_way = false;
    std::uint64_t step = 0;
    GpuStream stream = nullptr;
    GpuAddress update = 0;
    std::size_t batch = 0;  // the next one, or where ranks wait
    StatusWords words{};
    bool is_over = false;  // a status other than Good is known to all
  };
  Status sync(ConstTensorView gradient, TensorView update, std::uint64_t step, RankExchange& ranks);
  Result<std::optional<RankPoint>> begin_sync(ConstTensorView gradient, TensorView update,
                                              std::uint64_t step);
  Result<std::optional<RankPoint>> continue_sync(RankStatus all);
  Status enqueue_begin();
  /// Over the host, for who does not bring the ranks together himself.
  Result<RankStatus> meet(const RankPoint& point, RankExchange& ranks) const;
  Status refuse_capture(GpuStream on) const;
  Result<std::optional<RankPoint>> run_to_point();
  /// Where ranks wait at it, if they do.
  Result<std::optional<RankPoint>> point_at(const PlannedLaunch& meeting);
  Result<CollectiveCall> call_at(const PlannedLaunch& meeting) const;
  Status launch_rest(const GpuBatch& batch);
  /// What kernels have found so far. Waits.
  Status read_status();
  /// Kernels leave out the rest of a tensor that is marked or failed.
  Status mark_status(RankStatus all) const;
  /// Where gradients were widened from, updates are narrowed to.
  Status turn_to_update();
  /// As kernels look at them. Errors: those of formulas, Device.
  Result<bool> hold(const std::vector<GpuCondition>& conditions) const;

  const ProgramImage& image() const { return program->image(); }
  const ProgramInfo& info() const { return program->info(); }
  const GpuDevice& device() const { return *program->device(); }
  std::size_t num_tensors() const { return facts.size(); }
  Plan& plan_of(EntryKind kind) { return plans[static_cast<std::size_t>(kind)]; }
  bool has(EntryKind kind) const { return image().entries[static_cast<std::size_t>(kind)].present; }
  static bool takes_gradient(EntryKind kind) {
    return kind == EntryKind::Encode || kind == EntryKind::Sync;
  }
  // Of the session's type; what is added to is f32.
  static bool gives_output(EntryKind kind) {
    return kind == EntryKind::Decode || kind == EntryKind::Finish || kind == EntryKind::Sync;
  }
  // Init shares the table of what takes the gradient: neither has the other's buffers.
  Call& call_of(EntryKind kind) {
    const EntryKind first = has(EntryKind::Sync) ? EntryKind::Sync : EntryKind::Encode;
    return *calls[static_cast<std::size_t>(kind == EntryKind::Init ? first : kind)];
  }
  /// Binds the tensor's memo to it.
  HostEnv env(std::size_t tensor, std::uint64_t step) const {
    HostEnv env = host_env(facts[tensor], parameters, step);
    memos[tensor].bind(info().exprs, env);
    env.memo = &memos[tensor];
    return env;
  }
  bool is_f32() const { return options.dtype == kF32; }
  BufferIndex buffer_of(BufferRole role, std::uint32_t role_index = 0) const;

  UseFlag in_use;
  std::shared_ptr<const GpuProgram> program;
  GpuSessionOptions options;
  GpuTuning tuning;
  GpuTensorLayout layout;
  std::vector<TensorFacts> facts;
  mutable std::vector<HostMemo> memos;  // by tensor
  ParameterValues parameters, largest;
  std::array<std::unique_ptr<Call>, kNumEntries> calls;  // null: the program cannot
  std::array<Plan, kNumEntries> plans;
  std::vector<PlannedBound> bounds;      // of all loops
  std::uint64_t parameters_version = 0;  // counts changes
  bool sizes_follow_step = false;
  PayloadLayout bound;  // of the tensor that is looked at; keeps its memory

  GpuStreamOrder order;  // of all calls
  // Memory. By tensor and buffer: what the session holds itself; the largest a buffer gets.
  GpuArena arena;
  std::vector<std::vector<GpuArena::Piece>> pieces;  // kNone: the caller's
  std::vector<std::vector<std::int64_t>> capacities;
  std::vector<GpuArena::Piece> constants;                // by constant
  std::vector<GpuArena::Piece> scratch_in, scratch_out;  // f32, by tensor; may be kNone
  std::array<GpuArena::Piece, kNumEntries> table_pieces{};
  // Status words and counts, zero at the start of each call.
  GpuArena::Piece call_words = 0, swapped = 0, outcomes = 0;
  std::size_t call_words_bytes = 0;
  // What keep_states copies, and where to.
  struct Kept {
    GpuArena::Piece own = 0, copy = 0;
    std::size_t first_tensor = 0, num_tensors = 0;  // equal shares of it are theirs
  };
  std::vector<Kept> kept;
  GpuArena::Piece first_blocks = GpuArena::kNone;  // of one tensor there is no table
  Syncing syncing;
  GpuStream stream = nullptr;  // of calls on views
  // Of the call on views that is made: kept, so that calls allocate nothing.
  std::vector<GpuAddress> read_from, read_to;
  std::vector<GpuPayload> read_payloads;
  // By shape: blocks; where those of each tensor begin, as num_tensors + 1 words; and whether no
  // tensor has more than one.
  std::vector<std::uint32_t> num_blocks, block_begins;
  std::vector<bool> is_narrow_shape;
};

}  // namespace cinch::rt
