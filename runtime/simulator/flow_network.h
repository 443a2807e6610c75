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
#include <tuple>
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
  explicit FlowNetwork(const std::vector<double>& link_bytes_per_second);

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
    double rate = 0;  // of each flow, in parts a picosecond, since `since`
    Picoseconds since = 0;
    Served served = 0;  // then
    std::uint64_t version = 0;
    bool is_changed = false;
    std::priority_queue<Finish, std::vector<Finish>, std::greater<>> flows;
  };
  struct User {
    std::uint32_t path = 0;
    std::uint32_t use = 0;
  };
  // What an update knows of a link.
  struct Link {
    double left = 0, open = 0;   // open: flows without a rate, by their parts
    std::uint32_t num_open = 0;  // such paths
    std::uint32_t seen = 0;      // by which update
  };
  // The next end on a path; it counts if the path has that version still.
  struct End {
    Picoseconds time = 0;
    std::uint32_t path = 0;
    std::uint64_t version = 0;
    friend bool operator>(const End& a, const End& b) {
      return std::tie(a.time, a.path) > std::tie(b.time, b.path);
    }
  };

  void activate(std::uint32_t path);
  void deactivate(std::uint32_t path);
  /// New rates for all that shares links, at one remove or more, with what has changed.
  void update_rates();
  void visit(std::uint32_t path);
  Link& see(std::uint32_t link);
  /// Freezes all paths of the links with the least share left, and returns how many.
  std::size_t freeze_least();
  void choose(std::uint32_t path);
  void freeze(std::uint32_t path, double rate);
  void set_rate(std::uint32_t path, double rate);
  void schedule(std::uint32_t path);
  /// What each flow without a rate would get of the link.
  static double share_of(const Link& link);

  // By link.
  std::vector<Link> links_;
  std::vector<double> capacity_;          // parts a picosecond
  std::vector<std::vector<User>> users_;  // paths with flows
  std::vector<double> carried_;
  std::map<FlowPath, std::size_t> known_;
  std::vector<Path> paths_;
  // Uses of links, those of one path after those of another. Updates read them all, so what they
  // need lies close together.
  std::vector<std::uint32_t> link_of_, place_;  // place: among the link's users
  std::vector<double> part_;
  std::priority_queue<End, std::vector<End>, std::greater<>> ends_;
  Picoseconds now_ = 0;
  std::size_t num_active_ = 0;
  std::vector<std::uint32_t> changed_;        // paths with a flow more or less
  std::vector<std::uint32_t> changed_links_;  // of paths that have no flow any more
  // Of an update.
  std::uint32_t update_ = 0;
  std::vector<std::uint32_t> links_seen_, paths_seen_, capped_, chosen_;
  // By path, apart from the rest for the same reason.
  std::vector<std::uint32_t> first_use_;  // and one behind the last
  std::vector<double> most_;              // rate; 0: as much as the links have
  std::vector<std::uint32_t> seen_;       // by which update
  std::vector<double> rates_;             // below 0: none yet
  std::vector<double> num_flows_;
  std::size_t num_active_paths_ = 0;
};

}  // namespace cinch::rt
