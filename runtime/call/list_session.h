// A list of tensors of one worker that one program compresses, wherever it computes: on CPUs
// (runtime/session/session_list.h) or on a GPU (runtime/gpu/session/session.h). Views point to the
// memory that it computes in. On CPUs a call has been done when it returns; on a GPU it is put on a
// stream, and collect() waits and tells how it went.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/call/list_call.h"
#include "runtime/call/tensor_view.h"
#include "runtime/collective/rank_exchange.h"
#include "runtime/core/error.h"
#include "runtime/core/program_info.h"
#include "runtime/image/image.h"
#include "runtime/payload/payload.h"

namespace cinch::rt {

/// How the calls since the last collect() went for one tensor.
struct TensorOutcome {
  Status status = Ok{};            // of the first that failed
  bool non_finite = false;         // the last call's gradient, sum or payload
  std::int64_t payload_bytes = 0;  // of the last encode
};

class ListSession {
 public:
  ListSession() = default;
  virtual ~ListSession() = default;

  virtual const ProgramInfo& info() const = 0;
  virtual std::size_t size() const = 0;
  virtual std::int64_t num_elems(std::size_t tensor) const = 0;
  /// Of states, and of all other memory that is held now.
  virtual std::size_t state_bytes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;

  /// As Session::set_parameter, for all.
  virtual Status set_parameter(std::string_view name, double value) = 0;
  /// Where the fields of a payload stand, counts at their bounds, in the memory that `layout` has;
  /// and most bytes that one can have. Errors: Overflow.
  virtual Status lay_out_payload(std::size_t tensor, std::uint64_t step,
                                 PayloadLayout& layout) const = 0;
  virtual Result<std::int64_t> payload_bound(std::size_t tensor, std::uint64_t step) const = 0;
  /// What its payloads' headers say, without flags and length.
  virtual Result<PayloadHeader> header_for(std::size_t tensor, std::uint64_t step) const = 0;

  /// Of a GPU: the stream that the calls below go on. On CPUs there is none.
  virtual void use_stream(void* /*stream*/) {}

  /// Arrays have an entry per tensor of the call, whose memory no other entry shares. Errors, with
  /// their place where it is known: those of Session and GpuSession; OutOfRange (a number of no
  /// tensor), InvalidArgument (a tensor twice; arrays of different lengths).
  ///
  /// On CPUs a call does all or nothing. On a GPU it is on all tensors, in their order and of the
  /// type that the list was opened for; one that is at fault leaves the others unharmed; payloads
  /// begin at multiples of 16, and how long they became collect() tells: PayloadSlot::bytes stays.
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

  /// A tensor's synchronisation with other ranks, at once or in parts, as of Session: it has been
  /// done when it ends. On a GPU it is the list's only tensor, gradient and update are different
  /// memory, and collectives in parts are on the device's.
  virtual Status sync(std::size_t tensor, ConstTensorView gradient, TensorView update,
                      std::uint64_t step, RankExchange& ranks) = 0;
  virtual Result<std::optional<RankPoint>> begin_sync(std::size_t tensor, ConstTensorView gradient,
                                                      TensorView update, std::uint64_t step) = 0;
  virtual Result<std::optional<RankPoint>> continue_sync(std::size_t tensor, RankStatus all) = 0;

  /// Of a GPU, as of GpuSession: for the next replay of a captured call; waits and tells, by
  /// tensor. Errors: InvalidArgument (on CPUs), those of GpuSession.
  virtual Status prepare(EntryKind /*kind*/, std::uint64_t /*step*/) { return no_stream(); }
  virtual Result<std::vector<TensorOutcome>> collect() { return no_stream(); }

  /// The states of a tensor as a state file (state_file.h), and back. Errors: as
  /// Session::set_states; Device.
  virtual Result<std::vector<std::uint8_t>> states_as_bytes(std::size_t tensor) const = 0;
  virtual Status set_states(std::size_t tensor, std::span<const std::uint8_t> bytes) = 0;
  /// Notes the states of all tensors, which take_back_states makes those of now again; between the
  /// two at most one call of a kind that changes states. Errors: OutOfMemory, Device.
  virtual Status keep_states() = 0;
  virtual Status take_back_states() = 0;
  /// Of one tensor alone.
  virtual Status take_back_tensor(std::size_t tensor) = 0;

 private:
  static tl::unexpected<Error> no_stream() {
    return fail(ErrorKind::InvalidArgument,
                "the session is on the CPU: its calls end when they are done");
  }
};

}  // namespace cinch::rt
