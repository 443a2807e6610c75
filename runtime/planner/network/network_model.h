// Times of a transport's exchanges: measured points, and a line through them for each kind. Kept as
// JSON, so that plans can be chosen later and elsewhere.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/collective/loopback.h"
#include "runtime/collective/transport.h"
#include "runtime/planner/network/line_fit.h"

namespace cinch::rt {

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

}  // namespace cinch::rt
