// The user's door: one tensor of one worker, compressed and decompressed step by step by one
// compiled program. Holds the tensor's states, the parameters' values and all memory. One call at a
// time: one that another thread makes meanwhile is an error (InvalidArgument) and changes nothing.
// Sessions are independent of one another.
//
//   auto session = Session::open(std::move(image), {.rows = n, .seed = 7});
//   auto payload = session->encode(gradient, step);        // a view, valid until the next call
//   session->decode(*payload, out, step);
#pragma once
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/call/tensor_facts.h"
#include "runtime/call/tensor_view.h"
#include "runtime/collective/rank_exchange.h"
#include "runtime/core/error.h"
#include "runtime/core/memory_source.h"
#include "runtime/exec/executor.h"
#include "runtime/payload/payload.h"
#include "runtime/session/loaded_program.h"

namespace cinch::rt {

struct SessionOptions {
  /// Shape of the tensor: a vector of n elements is [n, 1]. A matrix program takes the first
  /// dimension by the rest.
  std::int64_t rows = 0;
  std::int64_t cols = 1;
  std::uint32_t threads = 0;  // 0: all of the machine; at most kMaxThreads
  std::uint32_t world = 1;    // ranks
  std::uint32_t worker = 0;   // this rank, below world
  std::uint64_t seed = 0;
  std::uint32_t tensor = 0;  // number of the tensor: draws of different tensors differ
  std::uint32_t piece = 0;   // number of the piece of the tensor
  /// No states are held: encode, sync, what reads or sets states, and a finish that has any are
  /// InvalidArgument.
  bool only_decodes = false;
  /// Threads shared with other sessions instead of `threads` of its own; outlives the session. May
  /// be null.
  TaskRunner* runner = nullptr;
  /// Set to true from anywhere to end the running call with Error Cancelled; outlives the session.
  /// May be null.
  const std::atomic<bool>* cancelled = nullptr;

  MemorySource memory;  // of states and workspace; its functions outlive the session

  TensorFacts facts() const { return {rows, cols, world, worker, seed, tensor, piece}; }

  // For tests and tuning; results never depend on them.
  std::optional<CpuTuning> tuning;    // none: that of the image's architecture in the tables
  std::uint64_t groups_per_task = 0;  // 0: chosen by size
  bool poison_memory = false;         // fill what a call must write before it reads
};

class Session {
 public:
  /// Allocates the states and runs their initial values. Errors: InvalidArgument (a negative shape,
  /// 2^32 elements or more, worker not below world), those of LoadedProgram::load, OutOfMemory,
  /// CheckFailed.
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
  Status set_parameter(std::string_view name, double value);

  /// Most bytes a payload can have with the parameters of now, header included. Errors: Overflow.
  Result<std::int64_t> payload_bound(std::uint64_t step = 0) const;
  /// Where the fields of such a payload stand, counts at their bounds, in the memory that `layout`
  /// has. Errors: Overflow.
  Status lay_out_payload(std::uint64_t step, PayloadLayout& layout) const;
  /// What its payloads' headers say, without flags and length.
  Result<PayloadHeader> header_for(std::uint64_t step) const;
  /// Bytes of memory held besides states; grows with the first call of each kind.
  Result<std::int64_t> workspace_bytes() const;
  std::int64_t state_bytes() const;
  /// Bytes that the steps of the last call moved, where the image counts accesses; nothing of what
  /// the session itself does around them.
  Result<AccessCounts> last_accesses() const;

  /// How often the body of each loop of the program ran in the last call; loops in the order in
  /// which they stand, outer ones before those in them.
  Result<std::vector<std::int64_t>> last_loop_rounds() const;

  /// Compresses. The payload is a view into the session, valid until its next call. A gradient with
  /// a non-finite value gives a marked payload and leaves the states as they were. Errors:
  /// InvalidArgument (length or type of the gradient; a program with a `sync` body), CheckFailed,
  /// Cancelled, OutOfMemory, Overflow; states are then as before, too.
  Result<std::span<const std::uint8_t>> encode(ConstTensorView gradient, std::uint64_t step);

  /// Decompresses into `out` (f32, f16 or bf16). The payload is hostile: header, sizes, counts,
  /// indices and their order are checked before anything is written. A marked payload gives NaN
  /// throughout. Errors: CorruptPayload (names the field), VersionMismatch, and those of encode.
  Status decode(std::span<const std::uint8_t> payload, TensorView out, std::uint64_t step);
  /// out += decode(payload), in f32.
  Status decode_add(std::span<const std::uint8_t> payload, std::span<float> out,
                    std::uint64_t step);
  /// From the sum over ranks of decoded payloads to the update: the program's `finish`, else sum /
  /// world, element by element. A program's `finish` of a sum with a non-finite value gives NaN
  /// throughout and leaves the states. `update` may be `sum`'s memory.
  Status finish(std::span<const float> sum, TensorView update, std::uint64_t step);

  /// The program's `sync`, on all ranks at once: from this rank's gradient to the update, the same
  /// on all. Where the gradient of one rank holds a non-finite value, the updates of all are NaN
  /// throughout and no states advance. `update` may be the gradient's memory. Errors: those of
  /// encode and of RankExchange; CheckFailed also where another rank failed; the states of all
  /// ranks are then as before. A rank that gets another error has not met the others: they wait.
  Status sync(ConstTensorView gradient, TensorView update, std::uint64_t step, RankExchange& ranks);

  /// The same for those who bring the ranks together themselves: both run up to where this rank
  /// waits for the others, or to the end (none). `all`: what meet_at() gave, or would have; the
  /// output of a collective is there then. Tensors live on until the end. Errors: those of sync;
  /// nobody waits then.
  Result<std::optional<RankPoint>> begin_sync(ConstTensorView gradient, TensorView update,
                                              std::uint64_t step);
  Result<std::optional<RankPoint>> continue_sync(RankStatus all);

  /// Makes all memory that a call of the kind (Encode, Decode, DecodeAdd, Finish) on a tensor of
  /// this type takes from `options().memory`, so that the call itself takes none; `is_in_place`: a
  /// finish whose update is its sum's memory. Errors: InvalidArgument, OutOfMemory, Overflow.
  Status reserve(EntryKind kind, DType dtype, bool is_in_place, std::uint64_t step);

  /// For the calls that follow, in place of SessionOptions::tuning; results never depend on it.
  Status set_tuning(const CpuTuning& tuning);

  /// Takes back what the last call of an encode, sync or finish (the program's own) did to the
  /// states, if it succeeded; decoding in between does not matter. Once.
  Status take_back();

  /// Notes the states, which take_back_states makes those of now again; between the two at most one
  /// call of each kind that changes states.
  Status keep_states();
  Status take_back_states();

  /// The stored bytes of a state, by index of ProgramInfo::states: a view, valid until the next
  /// call.
  Result<std::span<const std::uint8_t>> state(std::uint32_t index) const;
  /// Replaces a state. Errors: InvalidArgument (another length).
  Status set_state(std::uint32_t index, std::span<const std::uint8_t> bytes);
  /// All states to and from a file (state_file.h). Errors: Io, CorruptFile, VersionMismatch,
  /// InvalidArgument (states of another program or shape); on error nothing has changed.
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

}  // namespace cinch::rt
