// How long the exchanges of a transport take: what was measured, and a line through it for each
// kind. Kept as JSON, so that plans can be chosen later and elsewhere.
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

/// Of a collective, `bytes` are those that the rank sends that sends most, as bytes_to_send says:
/// so kinds can be compared. Of messages, all ranks send one and receive one at once.
struct NetworkPoint {
  ExchangeKind kind = ExchangeKind::Send;
  std::uint64_t bytes = 0;
  double seconds = 0;  // until the last rank has ended
  friend bool operator==(const NetworkPoint&, const NetworkPoint&) = default;
};

inline constexpr std::array kMeasuredKinds = {ExchangeKind::Send,      ExchangeKind::AllReduce,
                                              ExchangeKind::AllGather, ExchangeKind::ReduceScatter,
                                              ExchangeKind::AllToAll,  ExchangeKind::Broadcast};

struct NetworkModel {
  std::string transport;
  std::uint32_t world = 1;
  std::array<FittedLine, kMeasuredKinds.size()> lines;  // by kMeasuredKinds
  /// By kMeasuredKinds: seconds from one small exchange to the next where several are under way at
  /// once; the rest of a line's base overlaps.
  std::array<double, kMeasuredKinds.size()> gaps{};
  std::vector<NetworkPoint> points;

  /// A Receive is its Send.
  static std::size_t index_of(ExchangeKind kind);
  const FittedLine& of(ExchangeKind kind) const { return lines[index_of(kind)]; }
  friend bool operator==(const NetworkModel&, const NetworkModel&) = default;
};

NetworkModel fit_network(std::string transport, std::uint32_t world,
                         std::vector<NetworkPoint> points);
/// Of loopback's links, without measuring: what their shape alone takes.
NetworkModel shaped_network(std::uint32_t world, const LinkShape& shape);

std::string network_to_json(const NetworkModel& model);
/// Errors: CorruptFile (says where), VersionMismatch.
Result<NetworkModel> network_from_json(std::string_view text);

}  // namespace cinch::rt
