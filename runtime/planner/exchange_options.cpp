// The tree is a grammar: one function for each rule, which calls the rules that follow it.
#include "runtime/planner/exchange_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <utility>

#include "runtime/core/ids.h"

namespace cinch::rt {
namespace {

using Action = OptionAction;
using Scope = OptionScope;
using Device = OptionDevice;
using Next = std::function<void()>;

constexpr std::array kFirstRaw = {Action::ReduceScatter, Action::Reduce};
constexpr std::array kFirstCompressed = {Action::AllToAll, Action::Gather};

Action second_of(Action first) {
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

const char* action_name(Action action) {
  static constexpr const char* kNames[] = {"compress",       "decompress", "all_reduce",
                                           "reduce_scatter", "reduce",     "all_gather",
                                           "broadcast",      "all_to_all", "gather"};
  return name_in(kNames, action, "step");
}

const char* scope_name(Scope scope) {
  static constexpr const char* kNames[] = {"flat", "intra", "inter"};
  return name_in(kNames, scope, "scope");
}

}  // namespace

std::size_t num_compressions(const ExchangeOption& option) {
  return static_cast<std::size_t>(
      std::ranges::count(option, OptionAction::Compress, &OptionStep::action));
}

bool compresses_copies(const ExchangeOption& option) {
  // Scopes whose ranks hold the same values.
  std::vector<OptionScope> alike;
  for (const OptionStep& step : option) {
    switch (step.action) {
      case OptionAction::Compress:
        if (!alike.empty()) return true;
        break;
      case OptionAction::AllReduce:
      case OptionAction::AllGather:
      case OptionAction::Broadcast:
        alike.push_back(step.scope);
        break;
      default:
        break;
    }
  }
  return false;
}

std::vector<ExchangeOption> all_exchange_options(const OptionLimits& limits) {
  return Enumeration(limits).run();
}

std::string describe_option(const ExchangeOption& option) {
  std::string text;
  for (const OptionStep& step : option) {
    if (!text.empty()) text += ", ";
    text += action_name(step.action);
    if (step.action == OptionAction::Compress || step.action == OptionAction::Decompress) {
      text += step.device == OptionDevice::Cpu ? " cpu" : " gpu";
    } else {
      text +=
          fmt::format(" {}{}", scope_name(step.scope), step.is_compressed ? " of payloads" : "");
    }
  }
  return text;
}

std::optional<ExchangeOption> option_described(std::string_view text) {
  for (ExchangeOption& option : all_exchange_options()) {
    if (describe_option(option) == text) return std::move(option);
  }
  return std::nullopt;
}

}  // namespace cinch::rt
