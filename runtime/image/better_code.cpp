// Body of better_code.h.
#include "runtime/image/better_code.h"

#include <algorithm>
#include <utility>

#include "runtime/image/image_file.h"

namespace cinch::rt {
namespace {

using std::chrono::milliseconds;

// A look opens a file. Compiling takes some tenths of a second if the machine has a processor to
// spare, and much longer if it has none.
constexpr milliseconds kFirstLook{100}, kLongestPause{5000};
constexpr int kPauseShare = 4;  // of the time since the search began
constexpr std::chrono::minutes kGivesUpAfter{30};

// Do the images differ in their code only? Bound values of parameters do not count: callers take
// them from the image that they have.
bool is_same_program(const ProgramImage& a, ProgramImage b) {
  if (a.fingerprint != b.fingerprint) return false;
  ProgramImage without_code = a;
  without_code.carrier = b.carrier = nullptr;
  without_code.binary.clear();
  b.binary.clear();
  b.info = a.info;
  return write_image(without_code) == write_image(b);
}

}  // namespace

BetterCodeSearch::BetterCodeSearch(FindBetterCode find)
    : find_(std::move(find)), begin_(Clock::now()), next_look_(begin_ + kFirstLook) {}

std::optional<ProgramImage> BetterCodeSearch::look(const ProgramImage& image) {
  if (!find_) return std::nullopt;
  const auto now = Clock::now();
  if (now < next_look_) return std::nullopt;
  const auto pause = std::chrono::duration_cast<milliseconds>((now - begin_) / kPauseShare);
  next_look_ = now + std::clamp(pause, kFirstLook, kLongestPause);
  std::optional<ProgramImage> better = find_();
  if (!better && now - begin_ < kGivesUpAfter) return std::nullopt;
  find_ = nullptr;
  if (better && !is_same_program(image, *better)) return std::nullopt;
  return better;
}

}  // namespace cinch::rt
