// Programs with a `sync`: computing parts, and the collectives between them. If several tensors
// need a collective at the same place of their programs, it is one exchange.
#include <algorithm>
#include <tuple>

#include "runtime/planner/builders/builders.h"

namespace cinch::rt {
namespace {

using Slots = std::vector<std::uint32_t>;
using Sizes = std::vector<std::uint64_t>;

bool are_alike(const SyncRound& a, const SyncRound& b) {
  const auto kind = [](const SyncRound& round) {
    const CollectiveInfo& of = round.collective;
    const RankGroups& groups = round.groups;
    return std::tuple(of.kind, of.reduction, of.root, round.dtype, groups.size, groups.stride);
  };
  return kind(a) == kind(b);
}

class ProtocolBuilder {
 public:
  ProtocolBuilder(const BundleContext& context, const std::vector<Protocol>& protocols)
      : context_(context),
        to_(context.to),
        protocols_(protocols),
        before_(protocols.size()),
        num_parts_(protocols.size()) {}

  void run() {
    std::size_t most = 0;
    for (const Protocol& each : protocols_) most = std::max(most, each.rounds.size());
    for (std::size_t place = 0; place < most; ++place) add_place(place);
    for (std::size_t i = 0; i < protocols_.size(); ++i) add_part(i, Task{}, {});
  }

 private:
  // By protocol of one exchange: its inputs and outputs.
  struct Operands {
    std::vector<Slots> reads, writes;
  };

  void add_place(std::size_t place) {
    std::vector<bool> is_made(protocols_.size());
    for (std::size_t i = 0; i < protocols_.size(); ++i) {
      if (is_made[i] || protocols_[i].rounds.size() <= place) continue;
      std::vector<std::size_t> members;
      for (std::size_t j = i; j < protocols_.size(); ++j) {
        const auto& rounds = protocols_[j].rounds;
        const bool joins =
            rounds.size() > place && are_alike(rounds[place], protocols_[i].rounds[place]);
        if (!joins) continue;
        members.push_back(j);
        is_made[j] = true;
      }
      add_exchange(place, members);
    }
  }

  void add_exchange(std::size_t place, const std::vector<std::size_t>& members) {
    const SyncRound& first = protocols_[members[0]].rounds[place];
    Task exchange;
    exchange.kind = TaskKind::Exchange;
    exchange.exchange = exchange_kind_of(first.collective.kind);
    exchange.reduction = first.collective.reduction;
    exchange.dtype = first.dtype;
    exchange.peer = first.collective.root;
    const Operands operands = add_operands(place, members, exchange);
    for (std::size_t m = 0; m < members.size(); ++m) {
      add_part(members[m], exchange, operands.reads[m]);
      before_[members[m]] = operands.writes[m];
      exchange.groups.push_back(protocols_[members[m]].group);
    }
    to_.add(std::move(exchange));
  }

  // Sets the exchange's slots.
  Operands add_operands(std::size_t place, const std::vector<std::size_t>& members,
                        Task& exchange) {
    Sizes sent, received;
    for (const std::size_t m : members) {
      sent.push_back(protocols_[m].rounds[place].sent_bytes);
      received.push_back(protocols_[m].rounds[place].received_bytes);
    }
    const std::uint32_t world = context_.world;
    Operands made{std::vector<Slots>(members.size()), std::vector<Slots>(members.size())};
    const auto add = [&](std::uint32_t count, const Sizes& sizes, Slots& all,
                         std::vector<Slots>& parts) {
      for (std::uint32_t i = 0; i < count; ++i) {
        const RankBuilder::JointSlot slot = to_.add_joint_slot(sizes);
        all.push_back(slot.all);
        for (std::size_t m = 0; m < members.size(); ++m) parts[m].push_back(slot.parts[m]);
      }
    };
    // Ranks of other groups get nothing.
    const auto add_rows = [&](Slots& all, std::vector<Slots>& parts) {
      const RankGroups& groups = protocols_[members[0]].rounds[place].groups;
      Sizes row = sent;
      for (std::uint64_t& bytes : row) bytes /= groups.are_all() ? world : groups.size;
      const Sizes nothing(row.size());
      for (std::uint32_t rank = 0; rank < world; ++rank) {
        add(1, groups.are_together(context_.rank, rank) ? row : nothing, all, parts);
      }
    };
    switch (exchange.exchange) {
      case ExchangeKind::AllGather:
        add(1, sent, exchange.reads, made.reads);
        add(world, sent, exchange.writes, made.writes);
        break;
      case ExchangeKind::AllToAll:
        add_rows(exchange.reads, made.reads);
        add_rows(exchange.writes, made.writes);
        break;
      case ExchangeKind::ReduceScatter:
        add(world, received, exchange.reads, made.reads);
        add(1, received, exchange.writes, made.writes);
        break;
      default:
        add(1, received, exchange.writes, made.writes);
        if (exchange.exchange == ExchangeKind::Broadcast && exchange.peer != context_.rank) break;
        exchange.reads = exchange.writes;
        made.reads = made.writes;
        break;
    }
    return made;
  }

  // `next`: the collective at which the part ends, or a default task if there is none.
  void add_part(std::size_t which, Task next, const Slots& operands) {
    next.kind = TaskKind::Part;
    next.groups = {protocols_[which].group};
    next.part = num_parts_[which]++;
    next.reads = before_[which];
    next.writes = operands;
    to_.add(std::move(next));
  }

  const BundleContext& context_;
  RankBuilder& to_;
  const std::vector<Protocol>& protocols_;
  std::vector<Slots> before_;             // by protocol: the input of its next part
  std::vector<std::uint32_t> num_parts_;  // by protocol
};

}  // namespace

void build_protocols(const BundleContext& context, const std::vector<Protocol>& protocols) {
  ProtocolBuilder(context, protocols).run();
}

}  // namespace cinch::rt
