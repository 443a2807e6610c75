// What a compressor's author promises beside what the compiler proves: `claims` items, checked.
// Kept with the checked program alone, for `cinch verify`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dsl/source/source.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::sema {

enum class ClaimKind : std::uint8_t {
#define CINCH_CLAIM(Kind, name, takes, meaning) Kind,
#include "dsl/sema/claims.def"
};

/// What stands in the brackets behind a claim's name.
enum class ClaimTakes : std::uint8_t { Nothing, Number, Interval, State };

struct ClaimInfo {
  ClaimKind kind;
  std::string_view name;
  ClaimTakes takes;
  std::string_view meaning;
};

/// All claims, in the order of ClaimKind.
std::span<const ClaimInfo> all_claims();
inline const ClaimInfo& claim_info(ClaimKind kind) {
  return all_claims()[static_cast<std::size_t>(kind)];
}

struct Claim {
  ClaimKind kind;
  std::string text;  // as written
  dsl::Span span;
  HostExprId numbers[2];    // of the program's pool; Number has one, Interval two
  std::uint32_t state = 0;  // State: index into ProgramInfo::states
};

}  // namespace cinch::sema
