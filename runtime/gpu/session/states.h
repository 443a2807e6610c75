// States of a session on a GPU, wherever the device has them now, and as they were before a step. A
// call writes the next states beside the present ones and then says which are which; so they are
// taken back by that word, but where a program needs copies.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/call/state_file.h"
#include "runtime/gpu/session/core.h"
#include "runtime/gpu/session/memory.h"

namespace cinch::rt {

class GpuStates : public GpuSessionPart {
 public:
  GpuStates(GpuSessionCore& core, GpuSessionMemory& memory)
      : GpuSessionPart(core), memory_(memory) {}

  /// When a session opens: asks for memory of copies.
  void measure();

  Result<std::vector<std::vector<std::uint8_t>>> read(std::size_t tensor, GpuStream stream);
  Result<std::vector<std::uint8_t>> as_bytes(std::size_t tensor, GpuStream stream);
  Status set(std::size_t tensor, std::span<const std::uint8_t> bytes, GpuStream stream);

  Status keep(GpuStream stream) const;
  Status take_back(std::size_t first, std::size_t count, GpuStream stream) const;

 private:
  // What keep() copies, and where to.
  struct Kept {
    GpuArena::Piece own = 0, copy = 0;
    std::size_t first_tensor = 0, num_tensors = 0;  // equal shares of it are theirs
  };

  Result<std::vector<GpuAddress>> addresses(std::size_t tensor, GpuStream stream);
  StateFileKey key(std::size_t tensor) const;
  Status check_keeps() const;
  Status copy(GpuAddress to, GpuAddress from, std::size_t size, GpuStream stream) const;

  GpuSessionMemory& memory_;
  std::vector<Kept> kept_;
};

}  // namespace cinch::rt
