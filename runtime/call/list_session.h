// A list of tensors of one worker that one program compresses, on CPUs
// (runtime/session/session.h) or on a GPU (runtime/gpu/session/session.h). Views point to the
// memory that it computes in. On CPUs a call is complete when it returns. On a GPU it is put on a
// stream; collect() waits and reports how it went.
#pragma once

#include <optional>

#include "runtime/call/list_call.h"
#include "runtime/collective/rank_exchange.h"

namespace cinch::rt {
/// The outcome, for one tensor, of the calls since the last collect().
struct TensorOutcome {
  Status status = Ok{};            // of the first call that failed
  bool non_finite = false;         // of the last call's gradient, sum or payload
  std::int64_t payload_bytes = 0;  // of the last encode
};

class ListSession {
 public:
  ListSession() = default;
  virtual ~ListSession() = default;

  virtual const ProgramInfo& info() const = 0;
  virtual std::size_t size() const = 0;
  virtual std::int64_t num_elems(std::size_t tensor) const = 0;
  /// state_bytes: bytes of states. workspace_bytes: bytes of all other memory held now.
  virtual std::size_t state_bytes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;

  /// As Session::set_parameter, for all tensors.
  virtual Status set_parameter(std::string_view name, double value) = 0;
  /// As Session::set_input. On a GPU the array is f32 in the device's memory, copied on the stream.
  virtual Status set_input(std::size_t tensor, std::string_view name,
                           const ConstTensorView& array) = 0;
  /// Sets all inputs of a tensor where nobody has values, as in tests: numbers within their ranges,
  /// and `array` for each array.
  Status make_up_inputs(std::size_t tensor, const ConstTensorView& array) {
    for (const ParamInfo& param : info().params) {
      if (param.is_input) CINCH_TRY(set_parameter(param.name, param.default_value));
    }
    for (const StateInfo& state : info().states) {
      if (state.is_input) CINCH_TRY(set_input(tensor, state.name, array));
    }
    return Ok{};
  }
  /// lay_out_payload: the layout of a payload's fields with counts at their bounds, in the memory
  /// that `layout` has. payload_bound: the most bytes of a payload. Errors: Overflow.
  virtual Status lay_out_payload(std::size_t tensor, std::uint64_t step,
                                 PayloadLayout& layout) const = 0;
  virtual Result<std::int64_t> payload_bound(std::size_t tensor, std::uint64_t step) const = 0;
  /// The header of a tensor's payloads, without flags and length.
  virtual Result<PayloadHeader> header_for(std::size_t tensor, std::uint64_t step) const = 0;

  /// On a GPU: the stream for the calls below. On CPUs it has no effect.
  virtual void use_stream(void* /*stream*/) {}

  /// Arrays have one entry for each tensor of the call; no two entries share memory. Errors, with
  /// the entry's index if it is known: those of Session and GpuSession; OutOfRange (no tensor has
  /// this number), InvalidArgument (a tensor twice; arrays of different lengths).
  ///
  /// On CPUs a call is all or nothing. On a GPU a call takes all tensors, in their order and of the
  /// list's type. A tensor that fails leaves the others unharmed. Payloads begin at multiples of
  /// 16, and collect() reports their sizes; PayloadSlot::bytes is not set.
  virtual ListStatus encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                            std::span<PayloadSlot> payloads) = 0;
  virtual ListStatus decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                            std::span<const TensorView> outputs) = 0;
  /// outputs += decoded payloads.
  virtual ListStatus decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                                std::span<const std::span<float>> outputs) = 0;
  /// On CPUs an update may be its sum's memory.
  virtual ListStatus finish(const ListCall& call, std::span<const std::span<float>> sums,
                            std::span<const TensorView> updates) = 0;

  /// Synchronises one tensor with other ranks, at once or in parts, as Session does; it is complete
  /// when the call ends. On a GPU the list has only this tensor, gradient and update are different
  /// memory, and collectives of parts use the device's memory.
  virtual Status sync(std::size_t tensor, ConstTensorView gradient, TensorView update,
                      std::uint64_t step, RankExchange& ranks) = 0;
  virtual Result<std::optional<RankPoint>> begin_sync(std::size_t tensor, ConstTensorView gradient,
                                                      TensorView update, std::uint64_t step) = 0;
  virtual Result<std::optional<RankPoint>> continue_sync(std::size_t tensor, RankStatus all) = 0;

  /// On a GPU, as GpuSession: prepare sets up the next replay of a captured call; collect waits and
  /// reports by tensor. Errors: InvalidArgument (on CPUs), those of GpuSession.
  virtual Status prepare(EntryKind /*kind*/, std::uint64_t /*step*/) { return no_stream(); }
  virtual Result<std::vector<TensorOutcome>> collect() { return no_stream(); }

  /// Returns the states of a tensor as a state file (state_file.h), or sets them. Errors: as
  /// Session::set_states; Device.
  virtual Result<std::vector<std::uint8_t>> states_as_bytes(std::size_t tensor) const = 0;
  virtual Status set_states(std::size_t tensor, std::span<const std::uint8_t> bytes) = 0;
  /// Saves the states of all tensors; take_back_states restores them. In between there may be at
  /// most one call of a kind that changes states. Errors: OutOfMemory, Device.
  virtual Status keep_states() = 0;
  virtual Status take_back_states() = 0;
  /// Restores one tensor alone.
  virtual Status take_back_tensor(std::size_t tensor) = 0;

 private:
  static tl::unexpected<Error> no_stream() {
    return fail(ErrorKind::InvalidArgument,
                "the session is on the CPU: its calls end when they are done");
  }
};

// Lists whose tensors, or payloads, lie in one buffer at offsets. Makes views of the pieces for
// SessionList and GpuSession. It does not access the memory, which may be a device's. Output
// vectors are reused, so that calls after the first allocate nothing.
//
//   bucket_tensors(bucket, num_elems, tensors);
//   arena_rooms(arena, bounds, rooms);    // sets arena.offsets
//   …                                     // encode into rooms; set arena.sizes
//   close_arena(arena);                   // payloads without gaps, ready to be sent

/// Payloads in one buffer begin at multiples of this.
inline constexpr std::size_t kArenaAlignment = 16;

struct Bucket {
  void* data = nullptr;
  DType dtype = kF32;
  std::int64_t num_elems = 0;  // at `data`
  /// In elements, by entry of the call; empty: the tensors follow one another.
  std::span<const std::int64_t> offsets;
};

/// Makes views of the call's tensors, which have `num_elems` elements. Errors, with the entry's
/// index: InvalidArgument (offsets for another number of entries, a type that sessions do not
/// take), OutOfRange (a tensor outside the bucket).
ListStatus bucket_tensors(const Bucket& bucket, std::span<const std::int64_t> num_elems,
                          std::vector<TensorView>& to);

struct PayloadArena {
  std::uint8_t* data = nullptr;           // at a multiple of kArenaAlignment if it is a device's
  std::size_t capacity = 0;               // bytes
  std::span<std::size_t> offsets, sizes;  // in bytes, by entry of the call
};

/// Bytes of an arena for payloads of at most `bounds` bytes. Errors: Overflow.
Result<std::size_t> arena_bytes(std::span<const std::size_t> bounds);
/// Assigns room for payloads of at most `bounds` bytes, one after the other, and sets their
/// offsets. Errors: InvalidArgument (too small, offsets or sizes for another number of entries),
/// Overflow.
Status arena_rooms(const PayloadArena& arena, std::span<const std::size_t> bounds,
                   std::vector<std::span<std::uint8_t>>& to);
/// Moves payloads of `sizes` bytes together: each begins at the first multiple after the one
/// before, with zeros between. The memory is this process's. Returns the bytes in use.
std::size_t close_arena(const PayloadArena& arena);
/// Makes views of the payloads from offsets and sizes. Errors: OutOfRange, with the payload's
/// index.
ListStatus arena_payloads(const PayloadArena& arena, std::vector<PayloadBytes>& to);

}  // namespace cinch::rt
