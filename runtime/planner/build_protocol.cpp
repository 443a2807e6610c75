// Programs with a `sync`: parts that compute, and between them the collectives they ask for.
#include "runtime/planner/builders.h"

namespace cinch::rt {
namespace {

using Slots = std::vector<std::uint32_t>;

Slots add_slots(RankBuilder& to, std::uint32_t count, std::uint64_t capacity) {
  Slots slots;
  for (std::uint32_t i = 0; i < count; ++i) slots.push_back(to.add_slot(capacity));
  return slots;
}

class ProtocolBuilder {
 public:
  ProtocolBuilder(const BundleContext& context, std::uint32_t group)
      : context_(context), to_(context.to), group_(group) {}

  void add_round(const SyncRound& round) {
    Task exchange = collective(round);
    Task part = exchange;
    part.kind = TaskKind::Part;
    Slots operands = exchange.reads;
    add_part(std::move(part), operands);
    before_.insert(before_.end(), exchange.writes.begin(), exchange.writes.end());
    to_.add(std::move(exchange));
  }

  // From the last collective to the end, on which all agree, and what then happens to states.
  void add_end() {
    Task part;
    part.kind = TaskKind::Part;
    add_part(part, {});
    part.groups = {group_};
    part.part = num_parts_;
    part.reads = before_;
    to_.add(std::move(part));
  }

 private:
  Task collective(const SyncRound& round) {
    const std::uint32_t world = context_.world;
    Task task;
    task.kind = TaskKind::Exchange;
    task.groups = {group_};
    task.exchange = exchange_kind_of(round.collective.kind);
    task.reduction = round.collective.reduction;
    task.dtype = round.dtype;
    task.peer = round.collective.root;
    switch (round.collective.kind) {
      case CollectiveKind::AllGather:
        task.reads = add_slots(to_, 1, round.sent_bytes);
        task.writes = add_slots(to_, world, round.sent_bytes);
        break;
      case CollectiveKind::AllToAll:
        task.reads = add_slots(to_, world, round.sent_bytes / world);
        task.writes = add_slots(to_, world, round.sent_bytes / world);
        break;
      case CollectiveKind::ReduceScatter:
        task.reads = add_slots(to_, world, round.received_bytes);
        task.writes = add_slots(to_, 1, round.received_bytes);
        break;
      case CollectiveKind::Broadcast:
        task.writes = add_slots(to_, 1, round.received_bytes);
        if (task.peer == context_.rank) task.reads = task.writes;
        break;
      case CollectiveKind::AllReduce:
      case CollectiveKind::None:
        task.reads = task.writes = add_slots(to_, 1, round.received_bytes);
        break;
    }
    return task;
  }

  void add_part(Task part, const Slots& operands) {
    const std::uint32_t own = to_.add_slot(1);
    const Slots all = add_slots(to_, context_.world, 1);
    part.groups = {group_};
    part.part = num_parts_++;
    part.reads = before_;
    part.writes = {own};
    part.writes.insert(part.writes.end(), operands.begin(), operands.end());
    to_.add(std::move(part));
    to_.all_gather({group_}, own, all);
    before_ = all;
  }

  const BundleContext& context_;
  RankBuilder& to_;
  const std::uint32_t group_;
  std::uint32_t num_parts_ = 0;
  Slots before_;  // what the next part begins with
};

}  // namespace

void build_protocol(const BundleContext& context, std::uint32_t group,
                    const std::vector<SyncRound>& rounds) {
  ProtocolBuilder builder(context, group);
  for (const SyncRound& round : rounds) builder.add_round(round);
  builder.add_end();
}

}  // namespace cinch::rt
