// One program's trial: what the interpreter says, beside one or more of what runs kernels. A
// failure is a word of its kind and what was found; the kind is what a reducer keeps.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tests/programs/harness/gradients.h"

namespace cinch::testing {

enum class Runner : std::uint8_t {
  Machine,  // kernel IR as it stands (harness/kernel_machine.h)
  InPlace,  // the same, of a program whose states are updated in place
  Lowest,   // compiled kernels of the lowest level of vectors
  Levels,   // all levels that this machine has
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
  std::uint64_t seed = 0;  // of orders, threads and task splits
};

struct TrialResult {
  /// "refused", "internal", "machine", "in-place", "cpu", "gpu"; empty: all agree.
  std::string kind;
  std::string text;
  std::uint64_t num_steps_done = 0, num_steps_failed = 0;  // of the interpreter: checks fail
  bool agrees() const { return kind.empty(); }
};

TrialResult try_program(const std::string& name, const std::string& text,
                        const TrialOptions& options);

}  // namespace cinch::testing
