// The inside of a session: what it holds, and its calls without the guard against exceptions.
#pragma once

#include "runtime/call/joins.h"
#include "runtime/call/parameters.h"
#include "runtime/call/state_file.h"
#include "runtime/core/sizes/host_memo.h"
#include "runtime/core/use_flag.h"
#include "runtime/exec/program_buffers.h"
#include "runtime/session/session.h"

namespace cinch::rt {

struct Session::Impl {
  Impl(std::shared_ptr<const LoadedProgram> loaded, const SessionOptions& opts);

  /// Makes a call, one at a time; use_at for one of a step.
  template <typename Call>
  auto use(const Call& call) {
    return guarded_use(in_use, call);
  }
  template <typename Call>
  auto use_at(std::uint64_t step, const Call& call) {
    return use([&]() -> decltype(call()) {
      CINCH_TRY(check_step(step));
      return call();
    });
  }

  /// Makes the states and computes their initial values.
  Status start();

  Result<std::span<const std::uint8_t>> encode(ConstTensorView gradient, std::uint64_t step);
  Status decode(std::span<const std::uint8_t> bytes, TensorView out, std::uint64_t step);
  Status decode_add(std::span<const std::uint8_t> bytes, std::span<float> out, std::uint64_t step);
  Status finish(std::span<const float> sum, TensorView update, std::uint64_t step);

  Status sync(ConstTensorView gradient, TensorView update, std::uint64_t step, RankExchange& ranks);

  Status lay_out_payload(std::uint64_t step, PayloadLayout& layout) const;
  Status set_input(std::string_view name, const ConstTensorView& array);
  Status set_state(std::uint32_t index, std::span<const std::uint8_t> bytes);
  Status take_back();
  Status keep_states();
  Status take_back_states();
  std::vector<StateView> state_views() const;
  StateFileKey state_key() const {
    return {program->image().fingerprint, options.rows, options.cols};
  }

  const ProgramInfo& info() const { return program->info(); }
  Status check_call(EntryKind kind) const {
    return rt::check_call(program->image(), kind, options.only_decodes);
  }
  bool has(EntryKind kind) const {
    return program->image().entries[static_cast<std::size_t>(kind)].present;
  }
  std::int64_t num_elems() const { return options.rows * options.cols; }
  std::int64_t f32_bytes() const { return num_elems() * static_cast<std::int64_t>(sizeof(float)); }
  /// The values that host expressions see in a step. Binds `memo` to them.
  HostEnv env(std::uint64_t step) const;
  PayloadHeader header(std::uint64_t step) const;

  Status reserve(EntryKind kind, DType dtype, bool is_in_place, std::uint64_t step);
  Status reserve_fields(bool is_encode);
  /// Binds the tensor's elements as f32, which kernels of a gradient only read.
  Status bind_gradient(const float* gradient);
  Status bind_output(float* to);
  /// Room for every element as f32.
  Status reserve_f32(AlignedBuffer& buffer) const;
  /// Does a call on a tensor of this type work on an f32 copy?
  bool needs_scratch(EntryKind kind, DType dtype, bool is_in_place) const;
  /// Reserves memory for the copy: for parts of it if the entry takes the tensor group by group.
  Status reserve_copy(EntryKind kind, void* data, DType dtype, std::uint64_t step);
  bool goes_by_parts() const { return narrow.buffer != kNoIndex; }

  Status check_tensor(const void* data, DType dtype, std::int64_t num_elems) const;
  CallInputs inputs_of(std::uint64_t step) const;
  /// For the run that begins.
  void use_best_code();
  Result<CallOutcome> run(EntryKind kind, std::uint64_t step);
  /// Makes the new values of states the current ones. This is the last thing that a call does.
  void commit(EntryKind kind);
  /// Returns the elements as f32: the tensor itself, or a converted copy.
  Result<const float*> as_f32(ConstTensorView tensor);
  /// Runs encode's kernels on bound buffers. Returns true if the gradient holds a non-finite value.
  Result<bool> run_encode(ConstTensorView gradient, std::uint64_t step);
  Status bind_fields_for_encode();
  Result<std::span<const std::uint8_t>> close_up(bool non_finite, std::uint64_t step);
  Status read_counts();
  /// Parses a payload into `view`.
  Status read(std::span<const std::uint8_t> bytes, std::uint64_t step);
  /// Runs Decode or DecodeAdd on the payload that read() parsed; writes `out`.
  Status run_decode(EntryKind kind, float* out, std::uint64_t step);
  Status bind_fields_for_decode();
  Status run_finish(std::span<const float> sum, float* update, bool& non_finite,
                    std::uint64_t step);

  // ---- session_sync.cpp ----
  struct Syncing {
    bool is_under_way = false;
    const float* gradient = nullptr;
    TensorView update;
    bool has_scratch = false;
    std::uint64_t step = 0;
    RankPoint point;  // the point at which it waits
    std::optional<Error> failure;
  };
  Result<std::optional<RankPoint>> begin_sync(ConstTensorView gradient, TensorView update,
                                              std::uint64_t step);
  Result<std::optional<RankPoint>> continue_sync(RankStatus all);
  RankPoint start_sync();
  RankPoint run_to_point();
  RankPoint stop_sync(const Error& error);
  Status end_sync(RankStatus all);

  UseFlag in_use;
  std::shared_ptr<const LoadedProgram> program;
  SessionOptions options;
  ParameterValues parameters;
  GivenInputs given;
  std::optional<TaskRunner> own_runner;
  TaskRunner& runner;
  ProgramBuffers buffers;
  std::shared_ptr<const LoadedCode> code;
  Executor executor;
  mutable HostMemo memo;
  AccessCounts accesses;
  Syncing syncing;
  std::optional<EntryKind> committed;  // kind of the last call, if it changed states
  const bool needs_copies;             // of states, to undo a step
  std::vector<std::uint8_t> kept;      // all states, one after the other
  AlignedBuffer payload;               // of the last encode
  AlignedBuffer input, output;         // f32 copies of tensors of other types, or of parts of them;
                                       // scratch of decode_add
  NarrowTensor narrow;                 // of the running call
  std::vector<AlignedBuffer> fields;   // fields that cannot lie in the payload itself
  // Data of the running call. It is kept here, so that calls allocate nothing.
  PayloadLayout bound, closed;        // with every count at its bound, or with encode's counts
  std::vector<std::uint32_t> counts;  // of encode
  PayloadView view;                   // the payload that is decoded
};

}  // namespace cinch::rt
