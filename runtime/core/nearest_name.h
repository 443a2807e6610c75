// "Did you mean …?" for misspelt names in diagnostics, parameters, programs.
#pragma once

#include <string_view>
#include <vector>

namespace cinch {

/// The candidate nearest to `word` (edit distance with swaps, at most a third of its length, at
/// least 1), or "" if none is near. Ties go to the earlier candidate.
std::string_view nearest_name(std::string_view word,
                              const std::vector<std::string_view>& candidates);

}  // namespace cinch
