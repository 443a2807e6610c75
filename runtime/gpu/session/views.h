// A session on a GPU as a list: views become addresses, and the stream is the one that was named
// last.
#pragma once
#include <span>
#include <vector>

#include "runtime/gpu/session/calls.h"
#include "runtime/gpu/session/core.h"

namespace cinch::rt {

class GpuViews : public GpuSessionPart {
 public:
  GpuViews(GpuSessionCore& core, GpuCalls& calls) : GpuSessionPart(core), calls_(calls) {}

  /// When a session opens: calls allocate nothing.
  void reserve();

  ListStatus encode(const ListCall& call, std::span<const ConstTensorView> gradients,
                    std::span<PayloadSlot> payloads);
  ListStatus decode(const ListCall& call, std::span<const PayloadBytes> payloads,
                    std::span<const TensorView> outputs);
  ListStatus decode_add(const ListCall& call, std::span<const PayloadBytes> payloads,
                        std::span<const std::span<float>> outputs);
  ListStatus finish(const ListCall& call, std::span<const std::span<float>> sums,
                    std::span<const TensorView> updates);

 private:
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

  GpuCalls& calls_;
  // Of the call that is made.
  std::vector<GpuAddress> from_, to_;
  std::vector<GpuPayload> payloads_;
};

}  // namespace cinch::rt
