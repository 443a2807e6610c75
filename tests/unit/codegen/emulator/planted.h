// Texts with one fault, and the same without it.
#pragma once
#include <string>

#include "tests/unit/codegen/emulator/emulated.h"

namespace cinch::emulator {

/// A kernel `k(int* out, const int* in, unsigned n)`, or with floats. FAULT(…) is only in the
/// faulty twin, RIGHT(…) only in the other. `// here` marks the line of the finding, or several of
/// which the schedule chooses.
struct Planted {
  FindingKind kind = FindingKind::Race;
  std::string text;
  std::uint32_t n = 1024;  // of both arrays; `in` is initialised, `out` is not
  std::uint32_t blocks = 16, block = 64;
  std::size_t shared_bytes = 0;
  std::string says;         // must be part of the finding
  bool zeroes_out = false;  // initialises `out` with zeros
  rt::ErrorKind error = rt::ErrorKind::CheckFailed;
};

/// Runs both twins under 20 schedules: in one exactly this is found, in the other nothing.
void planted(const Planted& planted);

}  // namespace cinch::emulator
