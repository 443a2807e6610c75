// The search for an image whose code takes the place of code that was compiled quickly.
#pragma once
#include <chrono>
#include <functional>
#include <optional>

#include "runtime/image/image.h"

namespace cinch::rt {

/// Returns an image of the same program with better code, if there is one yet.
using FindBetterCode = std::function<std::optional<ProgramImage>()>;

/// Asks now and then: a tenth of a second after it was made, then ever less often, until an image
/// is found or half an hour has passed.
class BetterCodeSearch {
 public:
  BetterCodeSearch() = default;  // nothing to look for
  explicit BetterCodeSearch(FindBetterCode find);

  /// Returns better code for `image`, at most once. An image of another program is not returned.
  /// One thread at a time. Callers have one in every call, so most calls return at once.
  std::optional<ProgramImage> look(const ProgramImage& image);

 private:
  using Clock = std::chrono::steady_clock;

  FindBetterCode find_;  // empty: nothing to look for
  Clock::time_point begin_, next_look_;
};

}  // namespace cinch::rt
