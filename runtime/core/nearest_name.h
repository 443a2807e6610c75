// "Did you mean …?" for names that are nearly right: diagnostics, parameters, programs.
#pragma once

#include <string_view>
#include <vector>

namespace cinch {

/// The candidate nearest to `word` (edit distance with swaps, at most a third of its length, at
/// least 1), or "" when none is near. Ties go to the earlier candidate.
std::string_view nearest_name(std::string_view word,
                              const std::vector<std::string_view>& candidates);

}  // namespace cinch
