// All ways to synchronise one tensor between machines with several devices each, as in the decision
// tree of Espresso (Wang et al., EuroSys 2023, figure 8): whether, where and on what device it is
// compressed, and which collectives carry it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cinch::rt {

enum class OptionAction : std::uint8_t {
  Compress,
  Decompress,  // and adds the result
  AllReduce,
  ReduceScatter,
  Reduce,
  AllGather,
  Broadcast,
  AllToAll,
  Gather
};

/// The participants: all devices, the devices of one machine, or the devices with the same number
/// on all machines.
enum class OptionScope : std::uint8_t { Flat, Intra, Inter };
enum class OptionDevice : std::uint8_t { Gpu, Cpu };

struct OptionStep {
  OptionAction action = OptionAction::AllReduce;
  OptionScope scope = OptionScope::Flat;    // of collectives
  OptionDevice device = OptionDevice::Gpu;  // that compresses and decompresses
  bool is_compressed = false;               // does a collective carry payloads?
  friend bool operator==(const OptionStep&, const OptionStep&) = default;
};

using ExchangeOption = std::vector<OptionStep>;

struct OptionLimits {
  bool has_cpu = true;  // may CPUs compress, too?
  /// The most compressions on the way, since each loses accuracy.
  std::size_t most_compressions = SIZE_MAX;
};

/// Lists all options, each once, in a fixed order: 4341, or 174 without CPUs. The first collective
/// of a pair decides the second (ReduceScatter or AllToAll: AllGather; Reduce or Gather:
/// Broadcast).
std::vector<ExchangeOption> all_exchange_options(const OptionLimits& limits = {});

/// The option with f32 within machines, and payloads to and from owners between machines.
ExchangeOption usual_hierarchical_option();
/// The option without any compression, in f32.
ExchangeOption dense_hierarchical_option();

std::size_t num_compressions(const ExchangeOption& option);
/// "reduce_scatter intra, compress gpu, all_to_all inter of payloads, …"
std::string describe_option(const ExchangeOption& option);

}  // namespace cinch::rt
