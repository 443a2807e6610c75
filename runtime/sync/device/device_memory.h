// Memory of a step's values on a device: the wire, sums, and f32 copies of the user's tensors if
// these lie elsewhere or have another type.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/device/compute_device.h"
#include "runtime/plan/plan.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {

struct DeviceMemoryNeeds {
  PieceList apart;                   // pieces whose result may not overwrite its input
  std::uint64_t gathered_bytes = 0;  // size of gathering()
  std::span<std::uint8_t> wire;      // the wire of a host, which has no other; outlives the memory
};

class DeviceMemory {
 public:
  /// `plan` and `device` outlive this. Errors: OutOfMemory, Device.
  static Result<DeviceMemory> make(const Plan& plan, std::uint32_t rank, ComputeDevice& device,
                                   const DeviceMemoryNeeds& needs);

  std::span<std::uint8_t> wire() const { return wire_; }
  /// Place of payloads before they are joined.
  std::uint8_t* gathering() const { return gathering_; }

  std::uint8_t* slot(std::uint32_t slot) const { return wire_.data() + own_->slots[slot].offset; }
  /// f32; null if no task of this rank adds up the piece, or if it has no elements.
  std::uint8_t* sum(std::uint32_t piece) const { return sums_[piece]; }
  std::uint8_t* apart(std::uint32_t piece) const { return apart_[piece]; }
  /// f32 of the gradient, later of the update: a plan reads no gradient after it wrote the update.
  /// On a GPU the first call makes memory for all pieces. Errors: OutOfMemory, Device.
  Result<std::uint8_t*> values(std::uint32_t piece);
  /// The same as f16 or bf16.
  Result<std::uint8_t*> halves(std::uint32_t piece);

 private:
  // Memory that the first request makes.
  struct Copies {
    std::int64_t element_bytes = 0;
    std::vector<std::uint8_t*> pieces;
    std::vector<MemoryPieces> memory;
  };
  DeviceMemory(const Plan& plan, std::uint32_t rank, ComputeDevice& device);
  Result<std::uint8_t*> copy_of(Copies& copies, std::uint32_t piece);

  const Plan* plan_;
  const RankPlan* own_;
  ComputeDevice* device_;
  MemoryPieces memory_;
  std::span<std::uint8_t> wire_;
  std::uint8_t* gathering_ = nullptr;
  std::vector<std::uint8_t*> sums_, apart_;  // by piece
  Copies values_, halves_;
};

}  // namespace cinch::rt
