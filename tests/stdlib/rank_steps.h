// Runs library programs with a `sync` on several ranks with synthetic gradients.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/rank_runs.h"
#include "tests/stdlib/golden.h"

namespace cinch::testing {

using Values = std::vector<float>;
using ByRank = std::vector<Values>;

/// `file` within the library: "sparsify/gtopk.cinch".
Loaded load_library(const std::string& file, const Bindings& bindings);

/// On CPUs, with as many ranks as the first step has gradients, and as many elements as the first
/// gradient.
RankResults results_of(const Loaded& program, RankCase one_case);

RankCase steps_of(std::size_t world, std::size_t n, std::size_t steps, DataKind kind);

}  // namespace cinch::testing
