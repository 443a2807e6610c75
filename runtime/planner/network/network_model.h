// Times of a transport's exchanges: measured points, and a line through them for each kind. Kept as
// JSON, so that plans can be chosen later and elsewhere.
#pragma once
#include <array>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective/loopback.h"
#include "runtime/collective/transport.h"

namespace cinch::rt {

// Fits lines to measured times: a cost for each call plus a cost for each byte or element.

/// seconds = base + slope * size
struct Line {
  double base = 0, slope = 0;
  double at(double size) const { return base + slope * size; }
  friend bool operator==(const Line&, const Line&) = default;
};

struct Sample {
  double size = 0, seconds = 0;
  friend bool operator==(const Sample&, const Sample&) = default;
};

/// A line, and its distance from the samples as shares of their times.
struct FittedLine {
  Line line;
  double typical_error = 0;  // median
  double largest_error = 0;
  friend bool operator==(const FittedLine&, const FittedLine&) = default;
};

/// Fits a line whose base and slope are not negative. It minimises errors relative to the times, so
/// that short exchanges fit as well as long ones. Outliers count little. Samples without a time are
/// left out.
FittedLine fit_line(std::span<const Sample> samples);

/// One measured exchange. For a collective, `bytes` is what the rank that sends most sends, by
/// bytes_to_send, so that kinds can be compared. For messages, each rank sends one and receives one
/// at once.
struct NetworkPoint {
  ExchangeKind kind = ExchangeKind::Send;
  std::uint64_t bytes = 0;
  double seconds = 0;  // until the last rank has finished
  friend bool operator==(const NetworkPoint&, const NetworkPoint&) = default;
};

inline constexpr std::array kMeasuredKinds = {ExchangeKind::Send,      ExchangeKind::AllReduce,
                                              ExchangeKind::AllGather, ExchangeKind::ReduceScatter,
                                              ExchangeKind::AllToAll,  ExchangeKind::Broadcast};

struct NetworkModel {
  std::string transport;
  std::uint32_t world = 1;
  std::array<FittedLine, kMeasuredKinds.size()> lines;  // by kMeasuredKinds
  /// By kMeasuredKinds: seconds between small exchanges if several are under way at once. The rest
  /// of a line's base overlaps.
  std::array<double, kMeasuredKinds.size()> gaps{};
  std::vector<NetworkPoint> points;
  /// Ranks are numbered machine by machine, with this many on each. If there are several on each of
  /// several machines, messages between ranks of one machine have a line of their own, over links
  /// of their own; the line of Send is then that between machines.
  std::uint32_t ranks_per_machine = 1;
  FittedLine within = {};
  double within_gap = 0;
  std::vector<NetworkPoint> within_points = {};

  bool has_two_networks() const { return ranks_per_machine > 1 && ranks_per_machine < world; }
  bool is_within(std::uint32_t from, std::uint32_t to) const {
    return has_two_networks() && from / ranks_per_machine == to / ranks_per_machine;
  }
  /// Returns the kind's index; Receive counts as Send.
  static std::size_t index_of(ExchangeKind kind);
  const FittedLine& of(ExchangeKind kind) const { return lines[index_of(kind)]; }
  friend bool operator==(const NetworkModel&, const NetworkModel&) = default;
};

NetworkModel fit_network(std::string transport, std::uint32_t world,
                         std::vector<NetworkPoint> points);
/// The model of loopback's links, from their shape alone, without measuring.
NetworkModel shaped_network(std::uint32_t world, const LinkShape& shape);

std::string network_to_json(const NetworkModel& model);
/// Errors: CorruptFile (says where), VersionMismatch.
Result<NetworkModel> network_from_json(std::string_view text);

struct ProbeOptions {
  std::uint64_t largest_bytes = 16 << 20;  // the most that a rank sends in one exchange
  /// About the time of all measurements. Slow exchanges are measured less often, and not up to the
  /// largest size.
  double seconds = 5;
  std::chrono::milliseconds timeout{30000};
  std::uint32_t ranks_per_machine = 1;  // as of NetworkModel; divides the number of ranks
};

/// Measures the network. All ranks call it with the same options and get the same model. Errors:
/// those of the transport.
Result<NetworkModel> measure_network(Transport& transport, const ProbeOptions& options);

}  // namespace cinch::rt
