// The version of this build, for --version, doctor and reports.
#pragma once

namespace cinch::driver {

inline constexpr const char* kVersion = CINCH_VERSION;

}  // namespace cinch::driver
