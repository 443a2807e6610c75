// Every way to synchronise one tensor between machines of several devices each that the decision
// tree of Espresso (Wang et al., EuroSys 2023, figure 8) knows: whether, where and on what device
// it is compressed, and by which collectives it travels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cinch::rt {

enum class OptionAction : std::uint8_t {
  Compress,
  Decompress,  // and adds what has come
  AllReduce,
  ReduceScatter,
  Reduce,
  AllGather,
  Broadcast,
  AllToAll,
  Gather
};

/// Between whom: all devices, those of one machine, or those of the same number on all machines.
enum class OptionScope : std::uint8_t { Flat, Intra, Inter };
enum class OptionDevice : std::uint8_t { Gpu, Cpu };

struct OptionStep {
  OptionAction action = OptionAction::AllReduce;
  OptionScope scope = OptionScope::Flat;    // of collectives
  OptionDevice device = OptionDevice::Gpu;  // of compressing and decompressing
  bool is_compressed = false;               // what a collective carries
  friend bool operator==(const OptionStep&, const OptionStep&) = default;
};

using ExchangeOption = std::vector<OptionStep>;

struct OptionLimits {
  bool has_cpu = true;  // compressing on CPUs, too
  /// At most so many: each loses accuracy.
  std::size_t most_compressions = SIZE_MAX;
};

/// All of them, each once, in a fixed order: 4341, and 174 without CPUs. The second collective of a
/// pair follows from the first (ReduceScatter or AllToAll: AllGather; Reduce or Gather: Broadcast).
std::vector<ExchangeOption> all_exchange_options(const OptionLimits& limits = {});

/// f32 within machines, payloads to and from owners between them.
ExchangeOption usual_hierarchical_option();
/// Without any compression, in f32.
ExchangeOption dense_hierarchical_option();

std::size_t num_compressions(const ExchangeOption& option);
/// "reduce_scatter intra, compress gpu, all_to_all inter of payloads, …"
std::string describe_option(const ExchangeOption& option);

}  // namespace cinch::rt
