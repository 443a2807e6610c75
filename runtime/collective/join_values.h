// Joins one element over ranks, rank by rank.
#pragma once
#include "runtime/core/lang.h"
#include "runtime/image/image.h"

namespace cinch::rt {

template <typename T>
T join_values(RankReduction how, T a, T b) {
  switch (how) {
    case RankReduction::Min:
      return lang::min(a, b);
    case RankReduction::Max:
      return lang::max(a, b);
    default:
      return lang::add(a, b);
  }
}

}  // namespace cinch::rt
