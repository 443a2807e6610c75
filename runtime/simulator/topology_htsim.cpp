// Fat trees of htsim, a simulator of packets. A file has lines of a word and a number:
//
//   Nodes 128                 hosts
//   Tiers 3                   of switches, 2 or 3
//   Podsize 16                hosts of a pod, with three tiers
//   Tier 0                    what follows is of the switches next to hosts; Tier 1 of those above
//   Downlink_speed_Gbps 200   of each link down
//   Radix_Down 4              links down
//   Radix_Up 4                links up; not of the topmost tier
//   Downlink_Latency_ns 1000
//   Switch_Latency_ns 500
//   Oversubscribed 2          without Radix_Up: down over up
//   Bundle 1                  links between two switches
//
// Words are the same in capitals and not, a line may end in a comment (#), and queues, which flows
// do not have, are left out.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "runtime/simulator/topology.h"

namespace cinch::rt {
namespace {

constexpr double kBytesPerGigabit = 1e9 / 8, kPicoseconds = 1000;  // of a nanosecond
constexpr double kMostNumber = 1e6;

struct HtsimTier {
  double gigabits = 0, latency = 0, switch_latency = 0;  // latencies in ns
  double radix_down = 0, radix_up = 0, bundle = 1, oversubscribed = 1;
};

std::string in_small(std::string_view word) {
  std::string small(word);
  for (char& c : small) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return small;
}

class HtsimReader {
 public:
  Result<Topology> read(std::string_view text) {
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = std::min(text.find('\n', begin), text.size());
      ++line_;
      CINCH_TRY(read_line(text.substr(begin, end - begin)));
      begin = end + 1;
    }
    return Topology::make(TRY(shape()));
  }

 private:
  tl::unexpected<Error> refuse(std::string_view what) const {
    return fail(ErrorKind::CorruptFile, fmt::format("topology: line {}: {}", line_, what));
  }
  static tl::unexpected<Error> lacks(std::string_view what) {
    return fail(ErrorKind::CorruptFile, fmt::format("topology: {}", what));
  }

  static std::string_view next_word(std::string_view& line) {
    constexpr std::string_view kSpace = " \t\r";
    line.remove_prefix(std::min(line.find_first_not_of(kSpace), line.size()));
    const std::string_view word = line.substr(0, line.find_first_of(kSpace));
    line.remove_prefix(word.size());
    return word;
  }

  Status read_line(std::string_view line) {
    line = line.substr(0, line.find('#'));
    const std::string word = in_small(next_word(line));
    if (word.empty()) return Ok{};
    if (!is_known(word)) return refuse(fmt::format("{} is not known here", shown(word)));
    const std::string_view digits = next_word(line);
    double value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    const bool is_number = error == std::errc() && end == digits.data() + digits.size();
    if (!is_number || value < 0 || value > kMostNumber) {
      return refuse(fmt::format("{} is not a number from 0 to {}", word, kMostNumber));
    }
    if (!next_word(line).empty()) return refuse("more than a word and a number");
    return take(word, value);
  }

  // Of a file that may be anything.
  static std::string shown(const std::string& word) {
    constexpr std::size_t kMostShown = 40;
    std::string text = word.substr(0, kMostShown);
    for (char& c : text) {
      if (c < ' ' || c > '~') c = '?';
    }
    return text.size() < word.size() ? text + "..." : text;
  }

  bool is_known(const std::string& word) const {
    HtsimTier any;
    const bool is_of_all =
        word == "nodes" || word == "tiers" || word == "podsize" || word == "tier";
    return is_of_all || word.starts_with("queue_") ||
           (tier_.has_value() && of_tier(word, any) != nullptr);
  }

  Status take(const std::string& word, double value) {
    const bool is_whole = value == std::floor(value);
    if (word == "tier") {
      if (value > 2 || !is_whole) return refuse("tiers are 0, 1 and 2");
      tier_ = static_cast<std::size_t>(value);
      return Ok{};
    }
    double* const of_all = word == "nodes"     ? &nodes_
                           : word == "tiers"   ? &tiers_
                           : word == "podsize" ? &pod_size_
                                               : nullptr;
    if (of_all == nullptr && word.starts_with("queue_")) return Ok{};
    double* const to = of_all != nullptr ? of_all
                       : tier_           ? of_tier(word, tier_of_[tier_.value_or(0)])
                                         : nullptr;
    if (to == nullptr) return Ok{};  // a queue of no tier
    const bool is_real =
        word.ends_with("_gbps") || word.ends_with("_ns") || word == "oversubscribed";
    if (!is_real && !is_whole) return refuse(fmt::format("{} is a whole number", word));
    *to = value;
    return Ok{};
  }

  static double* of_tier(const std::string& word, HtsimTier& tier) {
    if (word == "downlink_speed_gbps") return &tier.gigabits;
    if (word == "downlink_latency_ns") return &tier.latency;
    if (word == "switch_latency_ns") return &tier.switch_latency;
    if (word == "radix_down") return &tier.radix_down;
    if (word == "radix_up") return &tier.radix_up;
    if (word == "bundle") return &tier.bundle;
    if (word == "oversubscribed") return &tier.oversubscribed;
    return nullptr;
  }

  // Links up of a switch of the tier.
  Result<std::uint32_t> links_up(std::size_t tier) const {
    const HtsimTier &below = tier_of_[tier], &above = tier_of_[tier + 1];
    const double given = below.radix_up;
    const double links =
        given > 0 ? given
                  : below.radix_down * below.gigabits / (above.gigabits * below.oversubscribed);
    const bool is_whole = links >= 1 && links <= kMostNumber && links == std::floor(links);
    if (is_whole) return static_cast<std::uint32_t>(links);
    return lacks(fmt::format("tier {} has no whole number of links up", tier));
  }

  Result<Topology::Shape> shape() const {
    if (tiers_ != 2 && tiers_ != 3) return lacks("Tiers are 2 or 3");
    if (nodes_ == 0) return lacks("Nodes is not above 0");
    const bool has_core = tiers_ == 3;
    for (std::size_t t = 0; t < static_cast<std::size_t>(tiers_); ++t) {
      const HtsimTier& tier = tier_of_[t];
      const bool is_there =
          tier.gigabits > 0 && tier.radix_down > 0 && tier.bundle > 0 && tier.oversubscribed > 0;
      if (!is_there) {
        return lacks(fmt::format("tier {} needs downlink_speed_gbps and radix_down above 0", t));
      }
    }
    const auto whole = [](double value) { return static_cast<std::uint32_t>(value); };
    // A way within a leaf has its switch once, one over a spine those of both leaves and the spine.
    const auto port = [this](std::size_t t, double speed) -> Topology::Port {
      const double below = t == 0 ? 0 : tier_of_[t - 1].switch_latency;
      const double ns = tier_of_[t].latency + (below + tier_of_[t].switch_latency) / 2;
      return {speed * kBytesPerGigabit, static_cast<Picoseconds>(std::llround(ns * kPicoseconds))};
    };
    Topology::Shape shape;
    shape.machines = {whole(nodes_)};
    shape.machines_per_leaf = whole(tier_of_[0].radix_down);
    shape.nic = shape.machine = port(0, tier_of_[0].gigabits);
    const auto bundle = whole(tier_of_[1].bundle);
    const std::uint32_t up = TRY(links_up(0));
    if (up % bundle != 0) return lacks("tier 0 has links up that do not fill bundles");
    shape.spines = up / bundle;
    shape.uplink = port(1, tier_of_[1].gigabits * bundle);
    if (!has_core) return shape;
    const auto pod = whole(pod_size_);
    if (pod == 0 || pod % shape.machines_per_leaf != 0) {
      return lacks(
          fmt::format("pods of {} hosts do not fill leaves of {}", pod, shape.machines_per_leaf));
    }
    shape.leaves_per_pod = pod / shape.machines_per_leaf;
    shape.core = port(2, tier_of_[2].gigabits * TRY(links_up(1)));
    return shape;
  }

  std::size_t line_ = 0;
  std::optional<std::size_t> tier_;
  double nodes_ = 0, tiers_ = 0, pod_size_ = 0;
  HtsimTier tier_of_[3];
};

}  // namespace

Result<Topology> topology_from_htsim(std::string_view text) {
  return HtsimReader().read(text);
}

Result<Topology> topology_from_text(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_json = first != std::string_view::npos && text[first] == '{';
  return is_json ? topology_from_json(text) : topology_from_htsim(text);
}

}  // namespace cinch::rt
