// The functions that modules call during a launch. They run on the fibers of threads: exceptions
// must not pass frames of emulated code.
#include "codegen/emulator/launch.h"

#include <cmath>
#include <new>

namespace cinch::emulator {

Launch* g_launch = nullptr;

namespace {

template <class F>
auto guarded(F function) {
  try {
    return function(*g_launch);
  } catch (const std::bad_alloc&) {
    static_cast<void>(0);  // leaves the handler first: a fiber may not stay in it
  }
  g_launch->give_up();
}

void read(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.access(at, size, align, site, false, false); });
}
void write(void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.access(at, size, align, site, false, true); });
}
void strong_read(const void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.strong_access(at, size, align, site, false); });
}
void strong_write(void* at, std::uint64_t size, std::uint64_t align, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.strong_access(at, size, align, site, true); });
}
void out_of_fuel(std::uint32_t site) {
  guarded([&](Launch& launch) { launch.out_of_fuel(site); });
}
std::uint32_t sync_block(std::uint32_t op, std::uint32_t value, std::uint32_t site) {
  return guarded(
      [&](Launch& launch) { return launch.sync_block(static_cast<BlockOp>(op), value, site); });
}
void sync_warp(std::uint32_t mask, std::uint32_t site) {
  guarded([&](Launch& launch) { launch.meet_warp(WarpOp::Sync, mask, 0, 0, site); });
}
std::uint64_t shuffle(std::uint32_t mask, std::uint64_t value, std::uint32_t source,
                      std::uint32_t site) {
  return guarded(
      [&](Launch& launch) { return launch.meet_warp(WarpOp::Shuffle, mask, value, source, site); });
}
std::uint32_t vote(std::uint32_t op, std::uint32_t mask, std::uint32_t value, std::uint32_t site) {
  constexpr WarpOp kOps[] = {WarpOp::Ballot, WarpOp::Any, WarpOp::All};
  return static_cast<std::uint32_t>(
      guarded([&](Launch& launch) { return launch.meet_warp(kOps[op], mask, value, 0, site); }));
}
std::uint32_t match(std::uint32_t op, std::uint32_t mask, std::uint64_t value, std::uint32_t site) {
  const WarpOp warp_op =
      static_cast<MatchOp>(op) == MatchOp::Any ? WarpOp::MatchAny : WarpOp::MatchAll;
  return static_cast<std::uint32_t>(
      guarded([&](Launch& launch) { return launch.meet_warp(warp_op, mask, value, 0, site); }));
}
std::uint32_t active_mask(std::uint32_t) {
  return g_launch->own_lane_bit();
}
std::uint64_t atomic(std::uint32_t op, void* at, std::uint32_t size, std::uint64_t value,
                     std::uint64_t compare, std::uint32_t site) {
  return guarded([&](Launch& launch) {
    return launch.atomic(static_cast<AtomicOp>(op), at, size, value, compare, site);
  });
}
void fence(std::uint32_t) {
  guarded([&](Launch& launch) { launch.fence(); });
}
void trap(std::uint32_t site) {
  guarded([&](Launch& launch) { launch.trap(site); });
}

double round(std::uint32_t mode, double x) {
  switch (static_cast<RoundMode>(mode)) {
    case RoundMode::Nearest:
      return std::nearbyint(x);
    case RoundMode::Floor:
      return std::floor(x);
    case RoundMode::Ceil:
      return std::ceil(x);
    case RoundMode::Trunc:
      break;
  }
  return std::trunc(x);
}
float fma32(float a, float b, float c) {
  return std::fma(a, b, c);
}
double fma64(double a, double b, double c) {
  return std::fma(a, b, c);
}

}  // namespace

Hooks make_hooks(bool checks) {
  Hooks hooks;
#define CINCH_HOOK(name, result, parameters) hooks.name = name;
#include "codegen/emulator/hooks.def"
#undef CINCH_HOOK
  if (!checks) {
    hooks.read = [](const void*, std::uint64_t, std::uint64_t, std::uint32_t) {};
    hooks.write = [](void*, std::uint64_t, std::uint64_t, std::uint32_t) {};
  }
  return hooks;
}

}  // namespace cinch::emulator
