// Finding: a fault of a kernel on the emulated GPU.
#pragma once
#include <cstdint>
#include <string>

namespace cinch::emulator {

enum class FindingKind : std::uint8_t {
  OutOfBounds,       // global or shared memory, or memory that is not the device's
  UseAfterFree,      // of freed memory
  Misaligned,        // an address that is not a multiple of its type's alignment
  Uninitialised,     // a read of bytes that nobody wrote
  Race,              // two unordered accesses, at least one of them a write, not both strong
  DivergentBarrier,  // threads of a block at different barriers, or ended
  DivergentWarp,     // lanes in a mask that are elsewhere or ended; a mask without its own lane
  Hang,              // threads that wait for ever, endless loops
  Trap,              // __trap()
};

/// The name in messages: "out of bounds".
const char* finding_kind_name(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::Trap;
  std::string kernel;
  int line = 0;      // of the emitted text; 0 if unknown
  std::string text;  // for people: who, where, what else; quotes the line
};

}  // namespace cinch::emulator
