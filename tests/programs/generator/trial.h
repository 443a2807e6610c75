// Tries one program: compares the interpreter with one or more ways to run kernels. A failure has a
// kind, as a word, and a description; a reducer keeps the kind.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/programs/harness/gradients.h"

namespace cinch::testing {

enum class Runner : std::uint8_t {
  Machine,  // kernel IR run directly (harness/kernel_machine.h)
  InPlace,  // the same, for a program whose states are updated in place
  Lowest,   // kernels compiled for the lowest level of vectors
  Levels,   // for all levels of this machine
  Gpu,      // the emulated GPU, in a random order
};

struct Size {
  std::int64_t num_elems = 0;
  DataKind data = DataKind::Normal;
};

struct TrialOptions {
  std::vector<Runner> runners;
  std::vector<Size> sizes;
  std::uint64_t num_steps = 2;
  std::uint64_t seed = 0;  // for orders, threads and task splits
};

struct TrialResult {
  /// "refused", "internal", "machine", "in-place", "cpu", "gpu"; empty: all agree.
  std::string kind;
  std::string text;
  std::uint64_t num_steps_done = 0, num_steps_failed = 0;  // of the interpreter: checks may fail
  bool agrees() const { return kind.empty(); }
};

TrialResult try_program(const std::string& name, const std::string& text,
                        const TrialOptions& options);

}  // namespace cinch::testing
