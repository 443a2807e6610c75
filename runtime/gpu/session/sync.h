// A synchronisation on a GPU, of one tensor: launches as in any other call, and between them ranks
// that meet: in parts where the caller brings them together, else over the host, whose memory what
// is sent and received goes through.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/gpu/session/calls.h"
#include "runtime/gpu/session/core.h"
#include "runtime/gpu/session/memory.h"

namespace cinch::rt {

class GpuSync : public GpuSessionPart {
 public:
  GpuSync(GpuSessionCore& core, const GpuSessionMemory& memory, GpuCalls& calls)
      : GpuSessionPart(core), memory_(memory), calls_(calls) {}

  Status sync(ConstTensorView gradient, TensorView update, std::uint64_t step, RankExchange& ranks);
  Result<std::optional<RankPoint>> begin(ConstTensorView gradient, TensorView update,
                                         std::uint64_t step);
  Result<std::optional<RankPoint>> proceed(RankStatus all);

 private:
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

  const GpuSessionMemory& memory_;
  GpuCalls& calls_;
  Syncing syncing_;
};

}  // namespace cinch::rt
