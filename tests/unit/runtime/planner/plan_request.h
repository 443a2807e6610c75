// Tensors and compressors for tests of plans, and all ways to exchange a tensor.
#pragma once
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "runtime/core/ids.h"
#include "runtime/planner/planner.h"

namespace cinch::rt {

// Codec 0 may be cut and has payloads of known length; codec 1 has neither property; codec 2 has a
// `sync` whose collectives are unknown, codec 3 one with three collectives.
inline PlanRequest mixed_request(const std::string& plan, std::uint32_t world) {
  const auto half = [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
    return 64 + 2 * static_cast<std::uint64_t>(rows * cols);
  };
  const auto rounds = [world](std::int64_t rows, std::int64_t) -> Result<std::vector<SyncRound>> {
    const std::uint64_t bytes = 4 * static_cast<std::uint64_t>(rows);
    return std::vector<SyncRound>{
        {{CollectiveKind::AllReduce, RankReduction::Sum, 0}, kF32, bytes, bytes},
        {{CollectiveKind::AllGather, RankReduction::None, 0}, kF16, 7, 7 * std::uint64_t{world}},
        {{CollectiveKind::Broadcast, RankReduction::None, world - 1}, kF32, bytes, bytes}};
  };
  PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.codecs = {{"cuts", true, false, true, half},
                    {"whole", false, false, false, half},
                    {"meets", false, true, true, half, {}, {}},
                    {"meets_in_parts", false, true, true, half, {}, rounds}};
  request.tensors = {
      {"bias", 10, 1, kDense},    {"scalar", 1, 1, kDense}, {"large", 100000, 1, 0},
      {"small", 3, 1, 0},         {"empty", 0, 1, 0},       {"matrix", 300, 40, 1},
      {"little_matrix", 3, 5, 1}, {"protocol", 30, 40, 2},  {"dense_large", 50001, 1, kDense},
      {"parts", 20, 40, 3},       {"no_parts", 0, 40, 3}};
  request.piece_bytes = 64 << 10;
  return request;
}

inline Plan plan_of(const PlanRequest& request) {
  const auto plan = build_plan(request);
  EXPECT_TRUE(plan) << (plan ? "" : plan.error().message);
  return plan ? *plan : Plan();
}

// All ways to synchronise one tensor between machines, which the builder must be able to write. The
// tree is a grammar: one function for each rule, which calls the rules that follow it.

struct OptionLimits {
  bool has_cpu = true;  // may CPUs compress, too?
  /// The most compressions on the way, since each loses accuracy.
  std::size_t most_compressions = SIZE_MAX;
};

inline std::size_t num_compressions(const ExchangeOption& option) {
  return static_cast<std::size_t>(
      std::ranges::count(option, OptionAction::Compress, &OptionStep::action));
}

namespace option_tree {

using Action = OptionAction;
using Scope = OptionScope;
using Device = OptionDevice;
using Next = std::function<void()>;

inline constexpr std::array kFirstRaw = {Action::ReduceScatter, Action::Reduce};
inline constexpr std::array kFirstCompressed = {Action::AllToAll, Action::Gather};

inline Action second_of(Action first) {
  const bool scatters = first == Action::ReduceScatter || first == Action::AllToAll;
  return scatters ? Action::AllGather : Action::Broadcast;
}

class Enumeration {
 public:
  explicit Enumeration(const OptionLimits& limits) : limits_(limits) {}

  std::vector<ExchangeOption> run() {
    const Next keep = [this] { found_.push_back(steps_); };
    flat(keep);
    hierarchical(keep);
    return std::move(found_);
  }

 private:
  void with(const OptionStep& step, const Next& next) {
    steps_.push_back(step);
    next();
    steps_.pop_back();
  }
  void on_each_device(Action action, const Next& next) {
    for (const Device device : {Device::Gpu, Device::Cpu}) {
      if (device == Device::Cpu && !limits_.has_cpu) continue;
      with({action, Scope::Flat, device, false}, next);
    }
  }
  void compress(const Next& next) {
    if (num_compressions(steps_) < limits_.most_compressions) {
      on_each_device(Action::Compress, next);
    }
  }
  void decompress(const Next& next) { on_each_device(Action::Decompress, next); }
  void raw(Action action, Scope scope, const Next& next) {
    with({action, scope, Device::Gpu, false}, next);
  }
  void compressed(Action action, Scope scope, const Next& next) {
    with({action, scope, Device::Gpu, true}, next);
  }

  // The second collective of a phase whose first left raw values (T1) or payloads (T2).
  void second_of_raw(Action second, Scope scope, const Next& next) {
    raw(second, scope, next);
    compress([&] { compressed(second, scope, [&] { decompress(next); }); });
  }
  void second_of_payloads(Action second, Scope scope, const Next& next) {
    compressed(second, scope, [&] { decompress(next); });
    decompress([&] { second_of_raw(second, scope, next); });
  }

  // The second collective between machines, of raw values, and everything after it (T5).
  void second_between(Action second, Action within, const Next& next) {
    raw(second, Scope::Inter, [&] { second_of_raw(within, Scope::Intra, next); });
    compress([&] {
      compressed(second, Scope::Inter, [&] { second_of_payloads(within, Scope::Intra, next); });
    });
  }
  // The phase between machines and everything after it: of raw values (T3), of payloads (T4).
  // `within` ends the phase within machines.
  void between_of_raw(Action within, const Next& next) {
    raw(Action::AllReduce, Scope::Inter, [&] { second_of_raw(within, Scope::Intra, next); });
    for (const Action first : kFirstRaw) {
      raw(first, Scope::Inter, [&] { second_between(second_of(first), within, next); });
    }
  }
  void between_of_payloads(Action within, const Next& next) {
    compressed(Action::AllGather, Scope::Inter,
               [&] { second_of_payloads(within, Scope::Intra, next); });
    for (const Action first : kFirstCompressed) {
      compressed(first, Scope::Inter, [&] {
        const Action second = second_of(first);
        compressed(second, Scope::Inter, [&] { second_of_payloads(within, Scope::Intra, next); });
        decompress([&] { second_between(second, within, next); });
      });
    }
  }

  void flat(const Next& next) {
    raw(Action::AllReduce, Scope::Flat, next);
    for (const Action first : kFirstRaw) {
      raw(first, Scope::Flat, [&] { second_of_raw(second_of(first), Scope::Flat, next); });
    }
    compress([&] {
      compressed(Action::AllGather, Scope::Flat, [&] { decompress(next); });
      for (const Action first : kFirstCompressed) {
        compressed(first, Scope::Flat,
                   [&] { second_of_payloads(second_of(first), Scope::Flat, next); });
      }
    });
  }

  void hierarchical(const Next& next) {
    for (const Action first : kFirstRaw) {
      raw(first, Scope::Intra, [&] { between(second_of(first), next); });
    }
    compress([&] {
      for (const Action first : kFirstCompressed) {
        compressed(first, Scope::Intra, [&] {
          between_of_payloads(second_of(first), next);
          decompress([&] { between(second_of(first), next); });
        });
      }
    });
  }
  // For raw values, compressed first or not.
  void between(Action within, const Next& next) {
    between_of_raw(within, next);
    compress([&] { between_of_payloads(within, next); });
  }

  OptionLimits limits_;
  ExchangeOption steps_;
  std::vector<ExchangeOption> found_;
};

inline const char* action_name(Action action) {
  static constexpr const char* kNames[] = {"compress",       "decompress", "all_reduce",
                                           "reduce_scatter", "reduce",     "all_gather",
                                           "broadcast",      "all_to_all", "gather"};
  return name_in(kNames, action, "step");
}

inline const char* scope_name(Scope scope) {
  static constexpr const char* kNames[] = {"flat", "intra", "inter"};
  return name_in(kNames, scope, "scope");
}

}  // namespace option_tree

/// Lists all options, each once, in a fixed order: 4341, or 174 without CPUs. The first collective
/// of a pair decides the second (ReduceScatter or AllToAll: AllGather; Reduce or Gather:
/// Broadcast).
inline std::vector<ExchangeOption> all_exchange_options(const OptionLimits& limits = {}) {
  return option_tree::Enumeration(limits).run();
}

/// "reduce_scatter intra, compress gpu, all_to_all inter of payloads, …"
inline std::string describe_option(const ExchangeOption& option) {
  std::string text;
  for (const OptionStep& step : option) {
    if (!text.empty()) text += ", ";
    text += option_tree::action_name(step.action);
    if (step.action == OptionAction::Compress || step.action == OptionAction::Decompress) {
      text += step.device == OptionDevice::Cpu ? " cpu" : " gpu";
    } else {
      text += fmt::format(" {}{}", option_tree::scope_name(step.scope),
                          step.is_compressed ? " of payloads" : "");
    }
  }
  return text;
}

}  // namespace cinch::rt
