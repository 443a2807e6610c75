// Runs library programs that have a `sync` block on several ranks with synthetic gradients.
#pragma once
#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/rank_runs.h"
#include "tests/stdlib/golden.h"

namespace cinch::testing {

using Values = std::vector<float>;
using ByRank = std::vector<Values>;

/// Loads a program of the library. `file` is a path such as "sparsify/gtopk.cinch".
inline Loaded load_library(const std::string& file, const Bindings& bindings) {
  auto program = make_program(std::filesystem::path(file).stem().string(), library_text(file));
  program->bindings = bindings;
  return load(*program);
}

/// Runs the program on the CPU. The gradients of the first step determine the number of ranks and
/// of elements.
inline RankResults results_of(const Loaded& program, RankCase one_case) {
  one_case.options.rows = static_cast<std::int64_t>(one_case.gradients[0][0].size());
  one_case.options.world = static_cast<std::uint32_t>(one_case.gradients[0].size());
  return program == nullptr ? RankResults() : run_ranks_on_cpu(program, one_case);
}

inline RankCase steps_of(std::size_t world, std::size_t n, std::size_t steps, DataKind kind) {
  RankCase made;
  for (std::size_t step = 0; step < steps; ++step) {
    auto& ranks = made.gradients.emplace_back();
    for (std::size_t rank = 0; rank < world; ++rank) {
      ranks.push_back(make_gradient(kind, static_cast<std::int64_t>(n), 100 * step + rank));
    }
  }
  return made;
}

}  // namespace cinch::testing
