// A list of tensors of one worker, compressed and decompressed on a GPU, all in the same launches.
// Calls only enqueue on the caller's stream: nothing waits, nothing is allocated, counts and sizes
// of payloads stay on the device. What went wrong there is read later, by collect(). A call comes
// after those before it on the device, too, whatever their streams; a stream lives until its work
// is done. One call at a time, as Session has it.
//
//   auto session = GpuSession::open(program, {.tensors = {{.rows = n}}, .seed = 7});
//   session->encode(gradients, payloads, step, stream);      // device memory
//   session->decode(payloads, outputs, step, stream);
//   auto outcomes = session->collect(stream);                // waits
//
// A call may be captured into a CUDA graph once the same call was made (or prepared) with the same
// memory: captured, it enqueues kernels only, which read parameters and step from device memory, as
// the last prepare() left them. The order of replays and other calls is the caller's.
//
// As a ListSession it has the same calls on views, which go on the stream that use_stream() named
// last, at first that of opening.
//
// A session closes when its work is done. Where calls were captured, the whole context is waited
// for; while the driver refuses that, because a stream captures, memory is kept (device.h).
#pragma once
#include <optional>
#include <string_view>
#include <utility>

#include "runtime/call/list_session.h"
#include "runtime/collective/rank_exchange.h"
#include "runtime/gpu/program.h"
#include "runtime/payload/payload.h"
#include "runtime/tuning/tuning.h"

namespace cinch::rt {

struct GpuSessionOptions {
  std::vector<ListTensor> tensors;
  DType dtype = kF32;  // of gradients and outputs: f32, f16 or bf16
  std::uint32_t world = 1, worker = 0;
  std::uint32_t machine_ranks = 0;  // as of SessionOptions
  std::uint64_t seed = 0;
  /// Values that parameters begin with, by name.
  std::vector<std::pair<std::string, double>> parameters;
  /// Values that parameters will have at most: memory is made for both these and the first, at the
  /// largest sizes of all steps.
  std::vector<std::pair<std::string, double>> largest_parameters;
  /// As of SessionOptions.
  bool only_decodes = false;
  /// Of all that the session holds on the device, from when the stream of opening comes there.
  MemorySource memory;
  /// Is there memory for keep_states?
  bool keeps_states = false;
  /// For tests and tuning; results never depend on it. None: that of the device in the tables.
  std::optional<GpuTuning> tuning;
};

/// A payload in device memory, at a multiple of 16. For encode `size_bytes` is the room there is
/// (at least payload_bound), for decode at least what the payload has.
struct GpuPayload {
  GpuAddress address = 0;
  std::int64_t size_bytes = 0;
};

class GpuSession : public ListSession {
 public:
  /// Allocates everything and enqueues the states' initial values. Errors: InvalidArgument, those
  /// of parameters, OutOfMemory (it names a size that grows without end), Unavailable (a program
  /// whose loops have no bound for a GPU), Device.
  static Result<GpuSession> open(std::shared_ptr<const GpuProgram> program,
                                 const GpuSessionOptions& options, GpuStream stream = nullptr);
  ~GpuSession() override;
  GpuSession(GpuSession&&) noexcept;
  GpuSession& operator=(GpuSession&&) noexcept;

  const ProgramInfo& info() const override;
  std::size_t num_tensors() const;
  std::size_t size() const override { return num_tensors(); }
  std::int64_t num_elems(std::size_t tensor) const override;
  /// Where everything is in a payload with every count at its bound, in the memory that `layout`
  /// has, and most bytes that one can have, with the parameters of now. Errors: Overflow.
  Status lay_out_payload(std::size_t tensor, std::uint64_t step,
                         PayloadLayout& layout) const override;
  Result<std::int64_t> payload_bound(std::size_t tensor, std::uint64_t step = 0) const override;
  /// What its payloads' headers say, without flags and length.
  Result<PayloadHeader> header_for(std::size_t tensor, std::uint64_t step) const override;
  /// Of the device: states, workspace and tables.
  std::size_t memory_bytes() const;
  std::size_t state_bytes() const override;
  std::size_t workspace_bytes() const override { return memory_bytes() - state_bytes(); }
  void use_stream(void* stream) override;
  /// Kernels that a call of the kind enqueues, however many tensors there are.
  std::size_t num_launches(EntryKind kind) const;

  /// For the calls that follow. Errors: as Session::set_parameter; OutOfRange where the sizes that
  /// follow from it exceed those that the session was opened for. The old value stays then.
  Status set_parameter(std::string_view name, double value) override;
  Status set_input(std::size_t tensor, std::string_view name,
                   const ConstTensorView& array) override;

  /// One address per tensor, each at a multiple of the element's size (f32 for decode_add and for
  /// sums). Errors: InvalidArgument, OutOfRange, those of host checks, Device. A tensor whose
  /// gradient or payload is at fault leaves the others unharmed.
  Status encode(std::span<const GpuAddress> gradients, std::span<const GpuPayload> payloads,
                std::uint64_t step, GpuStream stream);
  Status decode(std::span<const GpuPayload> payloads, std::span<const GpuAddress> outputs,
                std::uint64_t step, GpuStream stream);
  /// outputs += decoded payloads, f32.
  Status decode_add(std::span<const GpuPayload> payloads, std::span<const GpuAddress> outputs,
                    std::uint64_t step, GpuStream stream);
  /// From sums over ranks (f32) to updates, as Session::finish; different memory.
  Status finish(std::span<const GpuAddress> sums, std::span<const GpuAddress> updates,
                std::uint64_t step, GpuStream stream);

  ListStatus encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                    std::span<PayloadSlot> payloads) override;
  ListStatus decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                    std::span<const TensorView> outputs) override;
  ListStatus decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                        std::span<const std::span<float>> outputs) override;
  ListStatus finish(const ListCall& call, std::span<const std::span<float>> sums,
                    std::span<const TensorView> updates) override;

  /// The program's `sync` of a session of one tensor, on all ranks at once: from gradient to
  /// update, in different memory. Waits for the stream wherever ranks meet. Errors: those of encode
  /// and of RankExchange, InvalidArgument (in a capture), what kernels found.
  Status sync(std::size_t tensor, ConstTensorView gradient, TensorView update, std::uint64_t step,
              RankExchange& ranks) override;
  /// In parts, the spans of a collective are addresses of the device, where its output is to be
  /// put.
  Result<std::optional<RankPoint>> begin_sync(std::size_t tensor, ConstTensorView gradient,
                                              TensorView update, std::uint64_t step) override;
  Result<std::optional<RankPoint>> continue_sync(std::size_t tensor, RankStatus all) override;

  /// Sends step and parameters of now for the next replay of a captured call of the kind; its
  /// memory stays as captured. Errors: InvalidArgument (no such call was made), Device.
  Status prepare(EntryKind kind, std::uint64_t step, GpuStream stream);
  Status prepare(EntryKind kind, std::uint64_t step) override;

  /// Waits for the stream and tells how the calls went, by tensor. Errors: Device.
  Result<std::vector<TensorOutcome>> collect(GpuStream stream);
  Result<std::vector<TensorOutcome>> collect() override;

  /// The stored bytes of a tensor's states, by index of ProgramInfo::states. Waits for the stream.
  Result<std::vector<std::vector<std::uint8_t>>> states(std::size_t tensor, GpuStream stream) const;
  /// The states of a tensor as a state file (state_file.h), and back. Both wait for the stream.
  /// Errors: as Session::set_states.
  Result<std::vector<std::uint8_t>> states_as_bytes(std::size_t tensor, GpuStream stream) const;
  Status set_states(std::size_t tensor, std::span<const std::uint8_t> bytes, GpuStream stream);
  Result<std::vector<std::uint8_t>> states_as_bytes(std::size_t tensor) const override;
  Status set_states(std::size_t tensor, std::span<const std::uint8_t> bytes) override;

  /// Notes the states of all tensors, which take_back_states makes those of now again; between the
  /// two at most one call of a kind that changes states. Nothing waits. Errors: Device;
  /// InvalidArgument (opened without keeps_states).
  Status keep_states(GpuStream stream);
  Status take_back_states(GpuStream stream);
  /// Of one tensor alone.
  Status take_back_states(GpuStream stream, std::size_t tensor);
  Status keep_states() override;
  Status take_back_states() override;
  Status take_back_tensor(std::size_t tensor) override;

 private:
  struct Impl;
  explicit GpuSession(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cinch::rt
