// Bytes that share links. Every flow that is under way has its max–min fair share: no flow can have
// more without taking from one that has no more itself (Bertsekas and Gallager, Data Networks,
// 1992, section 6.5.2). Packets, queues and congestion control are not looked at.
//
// Times are whole picoseconds, and each step of the clock ends at least one flow, so that nothing
// is ever left whose end the clock cannot show.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <span>
#include <utility>
#include <vector>

namespace cinch::rt {

using Picoseconds = std::int64_t;
inline constexpr Picoseconds kNeverEnds = INT64_MAX;

/// A link of a flow, and the part of its bytes that goes over it.
struct FlowLink {
  std::uint32_t link = 0;
  double part = 1;
  friend auto operator<=>(const FlowLink&, const FlowLink&) = default;
};

/// The links of a flow, each once, and the most that it may have of them.
struct FlowPath {
  std::vector<FlowLink> links;
  double most_bytes_per_second = 0;  // of one flow; 0: as much as the links have
  friend auto operator<=>(const FlowPath&, const FlowPath&) = default;
};

class FlowNetwork {
 public:
  explicit FlowNetwork(std::vector<double> link_bytes_per_second);

  /// Returns the number of the path, for start. Paths that are alike have one number.
  std::size_t add_path(const FlowPath& path);
  /// Starts a flow of at least a byte at the time that advance has come to. `id` is told when it
  /// ends.
  void start(std::size_t path, std::uint64_t bytes, std::uint64_t id);
  /// When the next flow ends if none starts before; kNeverEnds: none is under way.
  Picoseconds next_end();
  /// Goes on to `now`, at most next_end(), and appends the ids of flows that end there.
  void advance(Picoseconds now, std::vector<std::uint64_t>& ended);

  std::size_t num_active() const { return num_active_; }
  /// By link: what was carried so far.
  const std::vector<double>& carried_bytes() const { return carried_; }

 private:
  // What flows of one path have been served so far, in parts of a byte.
  using Served = std::int64_t;
  using Finish = std::pair<Served, std::uint64_t>;  // when a flow is over, and its id
  // Flows with the same links have the same rate, so one count serves them all.
  struct Path {
    FlowPath of;
    Served served = 0;
    double rate = 0;  // of each flow, in parts a picosecond
    std::priority_queue<Finish, std::vector<Finish>, std::greater<>> flows;
  };

  void update_rates();
  void find_next_end();
  /// Ends flows of the path that are over at `now`, and returns whether there are any.
  bool end_flows(Path& path, Picoseconds now, std::vector<std::uint64_t>& ended);
  Picoseconds end_of(const Path& path) const;
  /// Freezes all paths of the links with the least share left, and returns how many.
  std::size_t freeze_least();
  void choose(std::size_t path);
  void freeze(Path& path, double rate);
  /// What each flow without a rate would get of the link.
  double share_of(std::uint32_t link) const;
  double most_of(const Path& path) const;

  std::vector<double> capacity_;  // parts a picosecond
  std::vector<double> carried_;
  std::map<FlowPath, std::size_t> known_;
  std::vector<Path> paths_;
  std::vector<std::size_t> active_;  // paths with flows
  Picoseconds now_ = 0, next_end_ = kNeverEnds;
  std::size_t num_active_ = 0;
  bool is_stale_ = false;  // rates
  // Of an update.
  std::vector<double> left_;                        // by link
  std::vector<double> open_;                        // by link: flows without a rate, by their parts
  std::vector<std::size_t> num_open_;               // by link: such paths
  std::vector<std::uint32_t> in_use_;               // links
  std::vector<std::vector<std::size_t>> paths_of_;  // by link in use: active paths
  std::vector<bool> is_frozen_;                     // by path
  std::vector<std::size_t> chosen_;                 // paths
};

}  // namespace cinch::rt
