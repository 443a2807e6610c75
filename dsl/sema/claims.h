// `claims` items: properties that a compressor's author promises beyond those that the compiler
// proves. Only the checked program holds them, for `cinch verify`.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "dsl/source/source.h"
#include "runtime/core/sizes/host_expr_id.h"

namespace cinch::sema {

enum class ClaimKind : std::uint8_t {
#define CINCH_CLAIM(Kind, name, takes, meaning) Kind,
#include "dsl/sema/claims.def"
};

/// The arguments of a claim.
enum class ClaimTakes : std::uint8_t { Nothing, Number, Interval, State };

struct ClaimInfo {
  ClaimKind kind;
  std::string_view name;
  ClaimTakes takes;
  std::string_view meaning;
};

std::span<const ClaimInfo> all_claims();
inline const ClaimInfo& claim_info(ClaimKind kind) {
  return all_claims()[static_cast<std::size_t>(kind)];
}

struct Claim {
  ClaimKind kind;
  std::string text;  // as written
  dsl::Span span;
  HostExprId numbers[2];    // in the program's pool: one for Number, two for Interval
  std::uint32_t state = 0;  // State: index into ProgramInfo::states
};

}  // namespace cinch::sema
