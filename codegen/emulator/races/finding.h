// Finding: something wrong that a kernel did on the emulated GPU.
#pragma once
#include <cstdint>
#include <string>

namespace cinch::emulator {

enum class FindingKind : std::uint8_t {
  OutOfBounds,       // global or shared memory, or memory that is not the device's
  UseAfterFree,      // of memory that was given back
  Misaligned,        // an address that its type's alignment does not divide
  Uninitialised,     // bytes read that nobody wrote
  Race,              // two accesses that nothing orders, one of them a write, not both strong
  DivergentBarrier,  // threads of a block at different barriers, or gone
  DivergentWarp,     // lanes that a mask names elsewhere or gone; a mask without its own lane
  Hang,              // threads that wait for ever, loops without end
  Trap,              // __trap()
};

/// "out of bounds", as messages give it.
const char* finding_kind_name(FindingKind kind);

struct Finding {
  FindingKind kind = FindingKind::Trap;
  std::string kernel;
  int line = 0;      // of the emitted text; 0 if unknown
  std::string text;  // for people: who, where, what else; quotes the line
};

}  // namespace cinch::emulator
