// All ways to synchronise one tensor between machines with several devices each: the decision tree
// of Espresso (Wang et al., EuroSys 2023, figure 8).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/planner/planner.h"

namespace cinch::rt {

struct OptionLimits {
  bool has_cpu = true;  // may CPUs compress, too?
  /// The most compressions on the way, since each loses accuracy.
  std::size_t most_compressions = SIZE_MAX;
};

/// Lists all options, each once, in a fixed order: 4341, or 174 without CPUs. The first collective
/// of a pair decides the second (ReduceScatter or AllToAll: AllGather; Reduce or Gather:
/// Broadcast).
std::vector<ExchangeOption> all_exchange_options(const OptionLimits& limits = {});

std::size_t num_compressions(const ExchangeOption& option);

/// Does a step compress values that several ranks hold alike? Where a program draws random numbers,
/// each of them then gets another payload, and ranks end with different updates.
bool compresses_copies(const ExchangeOption& option);

/// "reduce_scatter intra, compress gpu, all_to_all inter of payloads, …"; and back, if it is one of
/// them all.
std::string describe_option(const ExchangeOption& option);
std::optional<ExchangeOption> option_described(std::string_view text);

}  // namespace cinch::rt
