// The tasks around an all-reduce of payloads: from these to arrays that the transport adds up, and
// back, where all of it is the wire's memory on the host (else: device_sums.h).
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/call/summed_arrays.h"
#include "runtime/sync/piece_memory.h"
#include "runtime/sync/task_facts.h"

namespace cinch::rt {

class SumTasks {
 public:
  /// Makes the layout that of a piece's payloads in this step.
  using LayOut = std::function<Status(std::uint32_t piece, PayloadLayout& layout)>;

  SumTasks(const Plan& plan, std::uint32_t world) : plan_(plan), world_(world) {}
  /// In the order of codecs.
  void add_codec(const ProgramInfo& info) { summed_.push_back(SummedArrays::of(info, world_)); }
  /// Null: its payloads do not add up.
  const SummedArrays* summed(std::uint32_t codec) const {
    const std::optional<SummedArrays>& found = summed_[codec];
    return found ? &*found : nullptr;
  }

  /// Errors: InvalidArgument (payloads that do not add up, a plan without room for them),
  /// CorruptPayload, those of SummedArrays.
  Status spread(const Task& task, PieceMemory& memory, const LayOut& lay_out);
  Status join(const Task& task, PieceMemory& memory, const LayOut& lay_out);

 private:
  /// Sets layout_ and arrays_ to the piece's, which follow the ones before.
  Status arrays_of(const SummedArrays& summed, std::uint32_t piece,
                   std::span<const std::uint32_t> slots, PieceMemory& memory,
                   const LayOut& lay_out);
  Result<const SummedArrays*> summed_of(const Task& task) const;

  const Plan& plan_;
  std::uint32_t world_;
  std::vector<std::optional<SummedArrays>> summed_;  // by codec
  // Of the running task; they keep their memory.
  PayloadLayout layout_;
  std::vector<SumArray> wanted_;
  std::vector<std::span<std::uint8_t>> arrays_;
  std::vector<std::span<const std::uint8_t>> joined_;
  std::vector<std::size_t> next_bytes_;
  std::vector<PayloadBytes> payloads_;
};

}  // namespace cinch::rt
