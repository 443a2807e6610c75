// Reads what Cinch writes for simulators of networks: GOAL, Chakra traces. Knows nothing of the
// writers. And LogGOPS, by its definition, over GOAL.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <vector>

namespace cinch::rt {

struct GoalNode {
  std::string op;  // calc, send, recv
  std::uint64_t size = 0;
  std::uint32_t peer = 0, tag = 0, cpu = 0;
  std::vector<std::uint32_t> after;  // indices of the rank's nodes, sorted
};
using GoalRanks = std::vector<std::vector<GoalNode>>;

/// None: the text is not GOAL, or a rank is missing. Labels are those of one rank, and known before
/// they are used.
class GoalReader {
 public:
  explicit GoalReader(const std::string& text) : text_(text) {}

  std::optional<GoalRanks> run() {
    std::uint64_t num_ranks = 0;
    if (!takes("num_ranks") || !takes_number(num_ranks)) return std::nullopt;
    GoalRanks ranks(num_ranks);
    for (std::uint64_t rank = 0; rank < num_ranks; ++rank) {
      std::uint64_t number = 0;
      if (!takes("rank") || !takes_number(number) || number != rank || !takes("{") ||
          !reads_rank(ranks[rank])) {
        return std::nullopt;
      }
    }
    std::string rest;
    return text_ >> rest ? std::nullopt : std::optional(ranks);
  }

 private:
  bool takes(std::string_view word) {
    std::string found;
    return static_cast<bool>(text_ >> found) && found == word;
  }
  bool takes_number(std::uint64_t& to, std::string_view unit = "") {
    std::string word;
    if (!(text_ >> word)) return false;
    const char* const end = word.data() + word.size();
    const auto [rest, error] = std::from_chars(word.data(), end, to);
    return error == std::errc() && std::string_view(rest, end - rest) == unit;
  }
  bool takes_option(std::string_view name, std::uint32_t& to) {
    std::uint64_t number = 0;
    if (!takes(name) || !takes_number(number)) return false;
    to = static_cast<std::uint32_t>(number);
    return number <= UINT32_MAX;
  }
  bool reads_rank(std::vector<GoalNode>& nodes) {
    std::map<std::string, std::uint32_t> labels;
    std::string word;
    while (text_ >> word && word != "}") {
      if (!word.ends_with(':')) {
        std::string earlier;
        if (!takes("requires") || !(text_ >> earlier) || !labels.contains(word) ||
            !labels.contains(earlier)) {
          return false;
        }
        nodes[labels[word]].after.push_back(labels[earlier]);
        continue;
      }
      word.pop_back();
      if (!labels.emplace(word, nodes.size()).second) return false;
      GoalNode& node = nodes.emplace_back();
      text_ >> node.op;
      const bool is_calc = node.op == "calc";
      if (!is_calc && node.op != "send" && node.op != "recv") return false;
      if (!takes_number(node.size, is_calc ? "" : "b")) return false;
      if (!is_calc && !(takes_option(node.op == "send" ? "to" : "from", node.peer) &&
                        takes_option("tag", node.tag))) {
        return false;
      }
      if (!takes_option("cpu", node.cpu)) return false;
    }
    for (GoalNode& node : nodes) std::ranges::sort(node.after);
    return word == "}";
  }

  std::istringstream text_;
};

/// LogGOPS (Hoefler, Schneider and Lumsdaine, HPDC 2010), without rendezvous: a send holds its cpu
/// for o and the way out for g + (bytes - 1) G; the message is there o + L + (bytes - 1) G after
/// its begin; a receive holds its cpu for o. Nanoseconds.
struct LogGops {
  std::uint64_t latency = 2500, overhead = 1500, gap = 1000, gap_per_byte = 6;

  /// When the last node ends; none: nodes wait for each other.
  std::optional<std::uint64_t> nanoseconds_of(const GoalRanks& ranks) const {
    using Place = std::pair<std::uint32_t, std::uint32_t>;  // rank, node
    using Message = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
    struct State {
      std::vector<std::size_t> missing;
      std::vector<std::vector<std::uint32_t>> next;
      std::map<std::uint32_t, std::uint64_t> cpus;
      std::uint64_t out = 0, in = 0;
    };
    std::vector<State> states(ranks.size());
    std::map<Message, std::uint64_t> arrivals;
    std::map<Message, Place> waiting;
    using Event = std::pair<std::uint64_t, Place>;
    std::priority_queue<Event, std::vector<Event>, std::greater<>> events;
    std::size_t num_left = 0;
    for (std::uint32_t rank = 0; rank < ranks.size(); ++rank) {
      State& state = states[rank];
      state.next.resize(ranks[rank].size());
      for (std::uint32_t n = 0; n < ranks[rank].size(); ++n, ++num_left) {
        const auto& after = ranks[rank][n].after;
        state.missing.push_back(after.size());
        for (const std::uint32_t earlier : after) state.next[earlier].push_back(n);
        if (after.empty()) events.emplace(0, Place(rank, n));
      }
    }
    std::uint64_t last = 0;
    while (!events.empty()) {
      const auto [now, place] = events.top();
      const auto [rank, n] = place;
      events.pop();
      const GoalNode& node = ranks[rank][n];
      State& state = states[rank];
      std::uint64_t& cpu = state.cpus[node.cpu];
      const std::uint64_t on_link = node.op == "calc" ? 0 : (node.size - 1) * gap_per_byte;
      std::uint64_t begin = std::max(now, cpu);
      if (node.op == "send") begin = std::max(begin, state.out);
      if (node.op == "recv") {
        const Message message{node.peer, rank, node.tag};
        if (!arrivals.contains(message)) {
          waiting[message] = place;
          continue;
        }
        begin = std::max({begin, state.in, arrivals[message]});
      }
      if (begin > now) {
        events.emplace(begin, place);
        continue;
      }
      const std::uint64_t end = now + (node.op == "calc" ? node.size : overhead);
      cpu = end;
      if (node.op == "recv") state.in = now + gap + on_link;
      if (node.op == "send") {
        state.out = now + gap + on_link;
        const Message message{rank, node.peer, node.tag};
        arrivals[message] = end + latency + on_link;
        if (waiting.contains(message)) events.emplace(arrivals[message], waiting[message]);
      }
      for (const std::uint32_t later : state.next[n]) {
        if (--state.missing[later] == 0) events.push({end, {rank, later}});
      }
      last = std::max(last, end);
      --num_left;
    }
    return num_left == 0 ? std::optional(last) : std::nullopt;
  }
};

/// A message of protobuf's wire format: fields in their order.
struct ProtoField {
  std::uint64_t number = 0, value = 0;  // of a varint
  std::string bytes;                    // of a field with a length
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view bytes) : rest_(bytes) {}
  bool is_at_end() const { return rest_.empty(); }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<std::uint8_t>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    ADD_FAILURE() << "a varint without an end";
    rest_ = {};
    return 0;
  }
  std::string message() {
    const std::uint64_t size = varint();
    EXPECT_LE(size, rest_.size());
    const std::string found(rest_.substr(0, size));
    rest_.remove_prefix(found.size());
    return found;
  }
  std::vector<ProtoField> fields() {
    std::vector<ProtoField> all;
    while (!is_at_end()) {
      const std::uint64_t key = varint();
      ProtoField& field = all.emplace_back();
      field.number = key >> 3;
      EXPECT_TRUE((key & 7) == 0 || (key & 7) == 2) << "another wire type";
      if ((key & 7) == 0) field.value = varint();
      if ((key & 7) == 2) field.bytes = message();
    }
    return all;
  }

 private:
  std::string_view rest_;
};

struct ChakraNodeRead {
  std::uint64_t id = 0, type = 0, micros = 0;
  std::string name;
  std::vector<std::uint32_t> after;  // sorted
  /// By name: the number of the member of AttributeProto's oneof, and its value.
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> attributes;
  std::uint64_t attribute(const std::string& of) const { return attributes.at(of).second; }
};

inline std::vector<ChakraNodeRead> read_chakra(const std::vector<std::uint8_t>& file) {
  ProtoReader reader({reinterpret_cast<const char*>(file.data()), file.size()});
  const std::vector<ProtoField> metadata = ProtoReader(reader.message()).fields();
  EXPECT_EQ(metadata.size(), 1U);
  EXPECT_EQ(metadata.at(0).bytes, "0.0.4");
  std::vector<ChakraNodeRead> nodes;
  while (!reader.is_at_end()) {
    ChakraNodeRead& node = nodes.emplace_back();
    const std::string message = reader.message();
    for (const ProtoField& field : ProtoReader(message).fields()) {
      if (field.number == 1) node.id = field.value;
      if (field.number == 2) node.name = field.bytes;
      if (field.number == 3) node.type = field.value;
      if (field.number == 7) node.micros = field.value;
      ProtoReader packed(field.bytes);
      while (field.number == 5 && !packed.is_at_end()) {
        node.after.push_back(static_cast<std::uint32_t>(packed.varint()));
      }
      if (field.number != 10) continue;
      const std::vector<ProtoField> attribute = ProtoReader(field.bytes).fields();
      EXPECT_EQ(attribute.size(), 2U);
      node.attributes[attribute.at(0).bytes] = {attribute.at(1).number, attribute.at(1).value};
    }
    std::ranges::sort(node.after);
  }
  return nodes;
}

}  // namespace cinch::rt
