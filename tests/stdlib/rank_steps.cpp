// Bodies of rank_steps.h.
#include "tests/stdlib/rank_steps.h"

#include <filesystem>

namespace cinch::testing {

Loaded load_library(const std::string& file, const Bindings& bindings) {
  auto program = make_program(std::filesystem::path(file).stem().string(), library_text(file));
  program->bindings = bindings;
  return load(*program);
}

RankResults results_of(const Loaded& program, RankCase one_case) {
  one_case.options.rows = static_cast<std::int64_t>(one_case.gradients[0][0].size());
  one_case.options.world = static_cast<std::uint32_t>(one_case.gradients[0].size());
  return program == nullptr ? RankResults() : run_ranks_on_cpu(program, one_case);
}

RankCase steps_of(std::size_t world, std::size_t n, std::size_t steps, DataKind kind) {
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
