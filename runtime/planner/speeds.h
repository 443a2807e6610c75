// How fast programs run, as a file, so that steps are planned elsewhere and later.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/planner/plan_cost.h"

namespace cinch::rt {

struct ProgramSpeed {
  std::string program;      // as it was asked for: "onebit", "topk(ratio: 0.1)"
  bool is_carrier = false;  // what carries the program's sums, not the program itself
  std::array<std::uint64_t, 2> fingerprint{};
  CodecSpeed speed;
  CodecSpeed on_cpus;  // where the table has CPUs
};

struct SpeedTable {
  std::string device;         // "cpu", or the GPU's architecture: "sm_90"
  std::uint32_t threads = 1;  // of a rank
  double cores = 1;           // of the machine
  /// How many ranks measured at once, since ranks of one machine compute at once.
  std::uint32_t copies = 1;
  CodecSpeed dense;
  CostCurve clear;
  /// The CPUs beside a GPU, without their programs; none: not measured.
  std::optional<CpuSpeeds> cpus;
  std::vector<ProgramSpeed> programs;

  const ProgramSpeed* find(std::string_view program, bool is_carrier) const;
};

std::string speeds_to_json(const SpeedTable& table);
/// Errors: CorruptFile ("programs[1].encode: has no sizes that grow"), VersionMismatch.
Result<SpeedTable> speeds_from_json(std::string_view text);

/// A fingerprint as 32 hexadecimal digits, the second word first as the command and Python show
/// it, and back. Throws std::invalid_argument.
std::string fingerprint_text(const std::array<std::uint64_t, 2>& fingerprint);
std::array<std::uint64_t, 2> fingerprint_of(std::string_view text);

}  // namespace cinch::rt
