#include "codegen/emulator/races/history.h"

#include <algorithm>

namespace cinch::emulator {
namespace {

struct ByThread {
  bool operator()(const std::pair<std::uint32_t, std::uint32_t>& a, std::uint32_t thread) const {
    return a.first < thread;
  }
};

}  // namespace

bool Knowledge::covers(std::uint32_t thread, std::uint32_t clock) const {
  const std::uint32_t warp = thread / kWarpLanes;
  if (warp < warps.size() && clock < warps[warp]) return true;
  const auto found = std::lower_bound(threads.begin(), threads.end(), thread, ByThread());
  return found != threads.end() && found->first == thread && clock < found->second;
}

void Knowledge::add_warp(std::uint32_t warp, std::uint32_t clock) {
  if (warp >= warps.size()) warps.resize(warp + 1);
  warps[warp] = std::max(warps[warp], clock);
}

void Knowledge::add_thread(std::uint32_t thread, std::uint32_t clock) {
  const auto at = std::lower_bound(threads.begin(), threads.end(), thread, ByThread());
  if (at != threads.end() && at->first == thread) {
    at->second = std::max(at->second, clock);
  } else {
    threads.insert(at, {thread, clock});
  }
}

void Knowledge::add(const Knowledge& other) {
  if (warps.size() < other.warps.size()) warps.resize(other.warps.size());
  for (std::size_t i = 0; i < other.warps.size(); ++i) {
    warps[i] = std::max(warps[i], other.warps[i]);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> all;
  all.reserve(threads.size() + other.threads.size());
  std::merge(threads.begin(), threads.end(), other.threads.begin(), other.threads.end(),
             std::back_inserter(all));
  threads.clear();
  for (const auto& [thread, clock] : all) {
    const std::uint32_t warp = thread / kWarpLanes;
    if (warp < warps.size() && clock <= warps[warp]) continue;
    if (!threads.empty() && threads.back().first == thread) {
      threads.back().second = clock;  // merged ascending: the larger comes last
    } else {
      threads.emplace_back(thread, clock);
    }
  }
}

KnowledgePtr joined(const KnowledgePtr& a, const KnowledgePtr& b) {
  if (!b || a == b) return a;
  if (!a) return b;
  auto all = std::make_shared<Knowledge>(*a);
  all->add(*b);
  return all;
}

}  // namespace cinch::emulator
