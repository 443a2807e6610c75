// A list of tensors of one worker that one program compresses: hundreds of them, of one element or
// of many millions, with a state and a payload each. A call is one parallel run over all its
// tensors. Small tensors are spread over the threads; every idle thread takes a part of the large
// ones. Results do not depend on the number of threads. A list takes one call at a time, as Session
// does.
//
//   auto list = SessionList::open(program, {.seed = 7}, {{{.rows = 10}, {.rows = 1'000'000}}});
//   list->encode({.step = step}, gradients, payloads);
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/call/list_session.h"
#include "runtime/session/session.h"

namespace cinch::rt {

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
