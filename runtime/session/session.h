// One tensor of one worker, which one compiled program compresses and decompresses step by step. A
// session holds the tensor's states, the parameters' values and all memory. It takes one call at a
// time: a call that another thread makes meanwhile returns InvalidArgument and changes nothing.
// Sessions are independent of one another.
//
//   auto session = Session::open(std::move(image), {.rows = n, .seed = 7});
//   auto payload = session->encode(gradient, step);        // a view, valid until the next call
//   session->decode(*payload, out, step);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/call/list_call.h"
#include "runtime/call/list_session.h"
#include "runtime/call/tensor_facts.h"
#include "runtime/collective/rank_exchange.h"
#include "runtime/core/memory_source.h"
#include "runtime/payload/payload.h"
#include "runtime/session/loaded_program.h"

namespace cinch::rt {
struct SessionOptions {
  /// Shape of the tensor: a vector of n elements is [n, 1]. For a matrix program, cols is the
  /// product of all dimensions but the first.
  std::int64_t rows = 0;
  std::int64_t cols = 1;
  std::uint32_t threads = 0;        // 0: all of the machine; at most kMaxThreads
  std::uint32_t world = 1;          // ranks
  std::uint32_t worker = 0;         // this rank, below world
  std::uint32_t machine_ranks = 0;  // on each machine; 0: all ranks are on one
  std::uint64_t seed = 0;
  // Number of the tensor: tensors with different numbers draw differently
  std::uint32_t tensor = 0;
  std::uint32_t piece = 0;  // number of the piece of the tensor
  /// The session holds no states. Encode, sync, access to states, and a finish that has states
  /// return InvalidArgument.
  bool only_decodes = false;
  /// Threads shared with other sessions instead of `threads` of its own; outlives the session. May
  /// be null.
  TaskRunner* runner = nullptr;
  /// Set to true from anywhere to end the running call with Error Cancelled; outlives the session.
  /// May be null.
  const std::atomic<bool>* cancelled = nullptr;

  MemorySource memory;  // source of states and workspace; its functions outlive the session

  TensorFacts facts() const {
    return {rows, cols, world, worker, seed, tensor, piece, machine_ranks};
  }

  // For tests and tuning; results never depend on these.
  std::optional<CpuTuning> tuning;    // none: the tables' values for the image's architecture
  std::uint64_t groups_per_task = 0;  // 0: chosen by size
  bool poison_memory = false;         // fill memory that a call must write before it reads
};

class Session {
 public:
  /// Allocates the states and computes their initial values. Errors: InvalidArgument (a negative
  /// shape, 2^32 elements or more, worker not below world), those of LoadedProgram::load,
  /// OutOfMemory, CheckFailed.
  static Result<Session> open(std::shared_ptr<const LoadedProgram> program, const SessionOptions&);
  static Result<Session> open(ProgramImage image, const SessionOptions& options);

  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const ProgramInfo& info() const;
  const ProgramImage& image() const;
  const SessionOptions& options() const;
  std::int64_t num_elems() const { return options().rows * options().cols; }

  /// Binds a run-time parameter for the calls that follow. Errors: InvalidArgument (no such name),
  /// OutOfRange (names parameter, value and range); the old value stays.
  /// A scalar `input` is set in the same way, for one step (GivenInputs).
  Status set_parameter(std::string_view name, double value);
  /// Takes an array for an `input`, for one step: f32, f16 or bf16, with the tensor's elements. It
  /// stays in place until the step's last call. Errors: InvalidArgument (no such input, another
  /// length or type); nothing changes then.
  Status set_input(std::string_view name, const ConstTensorView& array);
  /// As ListSession::make_up_inputs.
  Status make_up_inputs(const ConstTensorView& array);

  /// The largest size in bytes, header included, that a payload can have with the present
  /// parameters. Errors: Overflow.
  Result<std::int64_t> payload_bound(std::uint64_t step = 0) const;
  /// Lays out the fields of such a payload, with counts at their bounds, in the memory that
  /// `layout` has. Errors: Overflow.
  Status lay_out_payload(std::uint64_t step, PayloadLayout& layout) const;
  /// The header of its payloads, without flags and length.
  Result<PayloadHeader> header_for(std::uint64_t step) const;
  /// Bytes of memory held besides states; grows with the first call of each kind.
  Result<std::int64_t> workspace_bytes() const;
  std::int64_t state_bytes() const;
  /// Bytes that the steps of the last call moved, if the image counts accesses. What the session
  /// itself moves around them is not counted.
  Result<AccessCounts> last_accesses() const;

  /// How often the body of each loop of the program ran in the last call. Loops are in program
  /// order, outer ones before inner ones.
  Result<std::vector<std::int64_t>> last_loop_rounds() const;

  /// Compresses. The payload is a view into the session, valid until its next call. A gradient with
  /// a non-finite value gives a marked payload and leaves the states as they were. After an error
  /// the states are as before, too. Errors: InvalidArgument (length or type of the gradient; a
  /// program with a `sync` body), CheckFailed, Cancelled, OutOfMemory, Overflow.
  Result<std::span<const std::uint8_t>> encode(ConstTensorView gradient, std::uint64_t step);

  /// Decompresses into `out` (f32, f16 or bf16). The payload is untrusted: header, sizes, counts,
  /// indices and their order are checked before anything is written. A marked payload gives NaN
  /// throughout. Errors: CorruptPayload (names the field), VersionMismatch, and those of encode.
  Status decode(std::span<const std::uint8_t> payload, TensorView out, std::uint64_t step);
  /// out += decode(payload), in f32.
  Status decode_add(std::span<const std::uint8_t> payload, std::span<float> out,
                    std::uint64_t step);
  /// Turns the sum over ranks of decoded payloads into the update. Runs the program's `finish`, or
  /// else computes sum / world for each element. If the sum has a non-finite value, a program's
  /// `finish` gives NaN throughout and leaves the states. `update` may be `sum`'s memory.
  Status finish(std::span<const float> sum, TensorView update, std::uint64_t step);

  /// Runs the program's `sync`, on all ranks at once. It turns this rank's gradient into the
  /// update, which is the same on all ranks. If the gradient of one rank holds a non-finite value,
  /// the updates of all ranks are NaN throughout and no states advance. `update` may be the
  /// gradient's memory. Errors: those of encode and of RankExchange; CheckFailed also if another
  /// rank failed. After an error the states of all ranks are as before. If a rank gets another
  /// error, it has not reached the others, and they wait.
  Status sync(ConstTensorView gradient, TensorView update, std::uint64_t step, RankExchange& ranks);

  /// The same for callers who bring the ranks together themselves. Both calls run up to the point
  /// where this rank waits for the others, or to the end (none). `all`: the result of meet_at();
  /// the output of a collective is there then. Tensors must live until the end. Errors: those of
  /// sync, but no rank is left waiting.
  Result<std::optional<RankPoint>> begin_sync(ConstTensorView gradient, TensorView update,
                                              std::uint64_t step);
  Result<std::optional<RankPoint>> continue_sync(RankStatus all);

  /// Takes all memory that a call of the kind (Encode, Decode, DecodeAdd, Finish) on a tensor of
  /// this type needs from `options().memory`, so that the call itself takes none. `is_in_place`: a
  /// finish whose update is its sum's memory. Errors: InvalidArgument, OutOfMemory, Overflow.
  Status reserve(EntryKind kind, DType dtype, bool is_in_place, std::uint64_t step);

  /// Replaces SessionOptions::tuning for the calls that follow; results never depend on it.
  Status set_tuning(const CpuTuning& tuning);

  /// Undoes the changes to states of the last encode, sync or finish (the program's own), if that
  /// call succeeded. Decoding in between does not matter. Works once.
  Status take_back();

  /// Saves the states; take_back_states restores them. In between there may be at most one call of
  /// each kind that changes states.
  Status keep_states();
  Status take_back_states();

  /// The stored bytes of a state, by index of ProgramInfo::states: a view, valid until the next
  /// call.
  Result<std::span<const std::uint8_t>> state(std::uint32_t index) const;
  /// Replaces a state. Errors: InvalidArgument (another length).
  Status set_state(std::uint32_t index, std::span<const std::uint8_t> bytes);
  /// Writes all states to a file, or reads them (state_file.h). After an error nothing has changed.
  /// Errors: Io, CorruptFile, VersionMismatch, InvalidArgument (states of another program or
  /// shape).
  Status save_states(const std::filesystem::path& path) const;
  Status load_states(const std::filesystem::path& path);
  /// The same as bytes in memory.
  Result<std::vector<std::uint8_t>> states_as_bytes() const;
  Status set_states(std::span<const std::uint8_t> bytes);

 private:
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// A list of tensors of one worker that one program compresses: hundreds of them, of one element or
// of many millions, with a state and a payload each. A call is one parallel run over all its
// tensors. Small tensors are spread over the threads; every idle thread takes a part of the large
// ones. Results do not depend on the number of threads. A list takes one call at a time, as Session
// does.
//
//   auto list = SessionList::open(program, {.seed = 7}, {{{.rows = 10}, {.rows = 1'000'000}}});
//   list->encode({.step = step}, gradients, payloads);

class SessionList : public ListSession {
 public:
  /// Opens a session for each tensor, one after the other, as Session::open does. `common` has no
  /// shape, tensor, piece or runner. Errors: those of Session::open.
  static ListResult<SessionList> open(const std::shared_ptr<const LoadedProgram>& program,
                                      const SessionOptions& common,
                                      std::span<const ListTensor> tensors);
  ~SessionList() override;
  SessionList(SessionList&&) noexcept;
  SessionList& operator=(SessionList&&) noexcept;

  std::size_t size() const override;
  Session& operator[](std::size_t tensor);
  const Session& operator[](std::size_t tensor) const;
  /// How often threads were started together so far: at most once a call.
  std::uint64_t num_regions() const;

  const ProgramInfo& info() const override;
  std::int64_t num_elems(std::size_t tensor) const override { return (*this)[tensor].num_elems(); }
  std::size_t state_bytes() const override;
  std::size_t workspace_bytes() const override;
  Status set_parameter(std::string_view name, double value) override;
  Status set_input(std::size_t tensor, std::string_view name,
                   const ConstTensorView& array) override {
    return (*this)[tensor].set_input(name, array);
  }
  Status lay_out_payload(std::size_t tensor, std::uint64_t step,
                         PayloadLayout& layout) const override {
    return (*this)[tensor].lay_out_payload(step, layout);
  }
  Result<std::int64_t> payload_bound(std::size_t tensor, std::uint64_t step) const override {
    return (*this)[tensor].payload_bound(step);
  }
  Result<PayloadHeader> header_for(std::size_t tensor, std::uint64_t step) const override {
    return (*this)[tensor].header_for(step);
  }

  /// Arrays have one entry for each tensor of the call; no two entries share memory. A call is all
  /// or nothing: after an error every state is as before (but see CINCH_STATES_IN_PLACE in
  /// cinch.h), and outputs hold nothing of use. The error is that of the first entry in the array
  /// that fails, or Cancelled. Errors: as of Session's calls, with the entry's index; OutOfRange
  /// (no tensor has this number), InvalidArgument (a tensor twice; arrays of different lengths; a
  /// payload without room).
  ///
  /// The calling thread takes all memory from SessionOptions::memory.
  ListStatus encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                    std::span<PayloadSlot> payloads) override;
  ListStatus decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                    std::span<const TensorView> outputs) override;
  ListStatus decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                        std::span<const std::span<float>> outputs) override;
  ListStatus finish(const ListCall& call, std::span<const std::span<float>> sums,
                    std::span<const TensorView> updates) override;

  /// Different tensors may synchronise at once.
  Status sync(std::size_t tensor, ConstTensorView gradient, TensorView update, std::uint64_t step,
              RankExchange& ranks) override {
    return (*this)[tensor].sync(gradient, update, step, ranks);
  }
  Result<std::optional<RankPoint>> begin_sync(std::size_t tensor, ConstTensorView gradient,
                                              TensorView update, std::uint64_t step) override {
    return (*this)[tensor].begin_sync(gradient, update, step);
  }
  Result<std::optional<RankPoint>> continue_sync(std::size_t tensor, RankStatus all) override {
    return (*this)[tensor].continue_sync(all);
  }

  Result<std::vector<std::uint8_t>> states_as_bytes(std::size_t tensor) const override {
    return (*this)[tensor].states_as_bytes();
  }
  Status set_states(std::size_t tensor, std::span<const std::uint8_t> bytes) override {
    return (*this)[tensor].set_states(bytes);
  }
  Status keep_states() override;
  Status take_back_states() override;
  Status take_back_tensor(std::size_t tensor) override {
    return (*this)[tensor].take_back_states();
  }

 private:
  struct Impl;
  explicit SessionList(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cinch::rt
