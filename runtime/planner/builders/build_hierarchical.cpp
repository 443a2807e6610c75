// Plans for all options of the decision tree between machines of several ranks each, in messages. A
// bundle has a group for each rank; machine and number on it tell who keeps a group when values are
// scattered.

#include "runtime/planner/builders/builders.h"

namespace cinch::rt {
namespace {

using Indices = std::vector<std::uint32_t>;

class HierarchicalBuilder {
 public:
  explicit HierarchicalBuilder(const BundleContext& context) : c_(context) {
    for (std::uint32_t g = 0; g < c_.world; ++g) held_.push_back(g);
  }

  void run() {
    const std::size_t last_join = last_joining_step();
    for (std::size_t i = 0; i < c_.option.size(); ++i) {
      is_last_ = i + 1 == c_.option.size();
      joins_later_ = i < last_join;
      run_step(c_.option[i]);
    }
  }

 private:
  // The members of a collective, in rank order, and the groups that each of them keeps.
  struct Phase {
    Indices members;
    std::vector<Indices> kept;  // by member
    Indices held;               // by each of them before the collective
    std::size_t own = 0;        // this rank's index
  };

  // The last collective that combines values of ranks, even if it has only one rank here.
  std::size_t last_joining_step() const {
    std::size_t last = 0;
    std::vector<OptionScope> begun;
    for (std::size_t i = 0; i < c_.option.size(); ++i) {
      const OptionStep& step = c_.option[i];
      const bool gives_back =
          step.action == OptionAction::AllGather || step.action == OptionAction::Broadcast;
      if (step.action == OptionAction::Compress || step.action == OptionAction::Decompress)
        continue;
      if (gives_back && !begun.empty() && begun.back() == step.scope) {
        begun.pop_back();
        continue;
      }
      last = i;
      if (!gives_back && step.action != OptionAction::AllReduce) begun.push_back(step.scope);
    }
    return last;
  }

  void run_step(const OptionStep& step) {
    switch (step.action) {
      case OptionAction::Compress:
        return compress();
      case OptionAction::Decompress:
        return decompress();
      case OptionAction::AllReduce: {
        const bool is_last = std::exchange(is_last_, false);
        reduce(step.scope, /*scatters=*/true);
        is_last_ = is_last;
        return give_back();
      }
      case OptionAction::ReduceScatter:
      case OptionAction::Reduce:
        return reduce(step.scope, step.action == OptionAction::ReduceScatter);
      case OptionAction::AllToAll:
      case OptionAction::Gather:
        return collect(step.scope, step.action == OptionAction::AllToAll);
      case OptionAction::AllGather:
      case OptionAction::Broadcast:
        // Without a first collective of its scope, all members send their payloads to all.
        if (phases_.empty() || scopes_.back() != step.scope) return gather_all(step.scope);
        return step.is_compressed ? give_back_payloads() : give_back();
    }
  }

  std::uint32_t group(std::uint32_t g) const { return c_.bundle.groups[g]; }
  std::uint32_t machine() const { return c_.rank / c_.ranks_per_machine; }
  std::uint32_t number() const { return c_.rank % c_.ranks_per_machine; }
  std::uint32_t dense_slot(std::uint32_t g) const {
    return c_.to.add_slot(dense_bytes(c_.plan, group(g)));
  }

  Phase phase_of(OptionScope scope, bool scatters) const {
    Phase phase;
    phase.held = held_;
    const std::uint32_t on_each = c_.ranks_per_machine, machines = c_.world / on_each;
    const std::uint32_t size = scope == OptionScope::Flat    ? c_.world
                               : scope == OptionScope::Intra ? on_each
                                                             : machines;
    for (std::uint32_t j = 0; j < size; ++j) {
      const std::uint32_t rank = scope == OptionScope::Flat    ? j
                                 : scope == OptionScope::Intra ? machine() * on_each + j
                                                               : j * on_each + number();
      if (rank == c_.rank) phase.own = j;
      phase.members.push_back(rank);
      phase.kept.push_back(kept_by(j, scope, scatters));
    }
    return phase;
  }
  // Of the groups that this rank holds, those of member j; without scattering the first member has
  // all.
  Indices kept_by(std::uint32_t j, OptionScope scope, bool scatters) const {
    Indices kept;
    for (const std::uint32_t g : held_) {
      const std::uint32_t part = scope == OptionScope::Flat    ? g
                                 : scope == OptionScope::Intra ? g % c_.ranks_per_machine
                                                               : g / c_.ranks_per_machine;
      if (j == (scatters ? part : 0)) kept.push_back(g);
    }
    return kept;
  }
  void enter(OptionScope scope, const Phase& phase) {
    phases_.push_back(phase);
    scopes_.push_back(scope);
    held_ = phase.kept[phase.own];
  }
  // A collective of a single rank has no messages.
  void begin_round(const Phase& phase, bool is_sized) const {
    if (phase.members.size() > 1) c_.to.begin_round(is_sized);
  }
  bool are_copies_sized() const { return are_sums_ ? c_.are_sums_sized : c_.is_sized; }
  Phase leave() {
    Phase phase = std::move(phases_.back());
    phases_.pop_back();
    scopes_.pop_back();
    held_ = phase.held;
    return phase;
  }

  // When all ranks have been added, the program finishes.
  void finish_if_complete(Value to) {
    if (num_added_ < c_.world || joins_later_ || is_finished_) return;
    for (const std::uint32_t g : held_) c_.to.finish(group(g), to);
    is_finished_ = true;
  }

  void reduce(OptionScope scope, bool scatters) {
    const Phase phase = phase_of(scope, scatters);
    // A single member has nothing to add, unless no later step would.
    if (phase.members.size() == 1 && joins_later_) return enter(scope, phase);
    begin_round(phase, false);
    std::map<std::uint32_t, std::uint32_t> own;
    for (std::size_t j = 0; j < phase.members.size(); ++j) {
      for (const std::uint32_t g : phase.kept[j]) {
        const std::uint32_t slot = dense_slot(g);
        c_.to.encode_dense(from_, group(g), slot);
        if (j == phase.own) own[g] = slot;
        if (j != phase.own) c_.to.send(group(g), slot, phase.members[j]);
      }
    }
    for (const std::uint32_t g : phase.kept[phase.own]) {
      Indices slots;
      for (std::size_t j = 0; j < phase.members.size(); ++j) {
        slots.push_back(j == phase.own ? own[g] : dense_slot(g));
        if (j != phase.own) c_.to.receive(group(g), slots[j], phase.members[j]);
      }
      c_.to.clear(group(g));
      for (const std::uint32_t slot : slots) c_.to.decode_add_dense(group(g), slot);
    }
    from_ = Value::Sum;
    num_added_ *= static_cast<std::uint32_t>(phase.members.size());
    enter(scope, phase);
    finish_if_complete(Value::Sum);
  }

  // Sends what each member keeps to all members, in f32.
  void give_back() {
    const Phase phase = leave();
    begin_round(phase, false);
    const Value to = is_last_ ? Value::Update : Value::Sum;
    Indices own;
    for (const std::uint32_t g : phase.kept[phase.own]) {
      own.push_back(dense_slot(g));
      c_.to.encode_dense(Value::Sum, group(g), own.back());
      for (const std::uint32_t member : phase.members) {
        if (member != c_.rank) c_.to.send(group(g), own.back(), member);
      }
    }
    // What others wait for comes first.
    for (std::size_t i = 0; i < own.size() && is_last_; ++i) {
      c_.to.decode_dense(group(phase.kept[phase.own][i]), own[i], to);
    }
    for (std::size_t j = 0; j < phase.members.size(); ++j) {
      if (j == phase.own) continue;
      for (const std::uint32_t g : phase.kept[j]) {
        const std::uint32_t slot = dense_slot(g);
        c_.to.receive(group(g), slot, phase.members[j]);
        c_.to.decode_dense(group(g), slot, to);
      }
    }
  }

  // What no program has seen is the program's own; the rest is for what carries its sums.
  void compress() {
    site_ = from_ == Value::Gradient          ? Site::Worker
            : !is_finished_                   ? Site::Hop
            : std::exchange(has_owner_, true) ? Site::Return
                                              : Site::Owner;
    are_sums_ = is_decoded_ || is_finished_;
    copies_.clear();
    Indices groups, slots;
    for (const std::uint32_t g : held_) {
      groups.push_back(group(g));
      slots.push_back(payload_slot(g));
      copies_[g] = {slots.back()};
    }
    num_copies_ = 1;
    if (groups.empty()) return;
    if (are_sums_) return c_.encode_sums(site_, groups, slots);
    c_.to.encode(site_, from_, groups, slots);
  }
  std::uint32_t payload_slot(std::uint32_t g) const {
    return are_sums_ ? c_.add_sum_slot(group(g)) : c_.add_slot(group(g));
  }
  std::uint32_t payload_group(std::uint32_t g) const {
    return are_sums_ ? c_.sum_group(group(g)) : group(g);
  }

  void decompress() {
    const Value to = is_last_ ? Value::Update : Value::Sum;
    const bool was_finished = is_finished_;
    if (was_finished) {
      for (const std::uint32_t g : held_) c_.decode_sums(site_, {group(g)}, copies_[g], to);
    } else {
      for (const std::uint32_t g : held_) {
        c_.to.clear(group(g));
        for (const std::uint32_t slot : copies_[g]) decode_add(g, slot);
      }
    }
    is_decoded_ = true;
    from_ = Value::Sum;
    num_copies_ = 1;
    if (!was_finished) finish_if_complete(to);
  }

  void decode_add(std::uint32_t g, std::uint32_t slot) const {
    if (are_sums_) return c_.decode_add_sum(site_, group(g), slot);
    c_.to.decode_add(site_, group(g), slot);
  }

  void send_copies(std::uint32_t g, std::uint32_t to) {
    for (const std::uint32_t slot : copies_[g]) c_.to.send(payload_group(g), slot, to);
  }
  Indices receive_copies(std::uint32_t g, std::uint32_t from) {
    Indices slots;
    for (std::uint32_t i = 0; i < num_copies_; ++i) {
      slots.push_back(payload_slot(g));
      c_.to.receive(payload_group(g), slots.back(), from);
    }
    return slots;
  }
  // Copies of one group from all members, in member order.
  Indices copies_of_all(const Phase& phase, std::uint32_t g) {
    Indices all;
    for (std::size_t j = 0; j < phase.members.size(); ++j) {
      const Indices slots = j == phase.own ? copies_[g] : receive_copies(g, phase.members[j]);
      all.insert(all.end(), slots.begin(), slots.end());
    }
    return all;
  }
  void multiply(std::size_t members) {
    num_copies_ *= static_cast<std::uint32_t>(members);
    num_added_ *= static_cast<std::uint32_t>(members);
  }

  void collect(OptionScope scope, bool scatters) {
    const Phase phase = phase_of(scope, scatters);
    begin_round(phase, are_copies_sized());
    for (std::size_t j = 0; j < phase.members.size(); ++j) {
      if (j == phase.own) continue;
      for (const std::uint32_t g : phase.kept[j]) send_copies(g, phase.members[j]);
    }
    std::map<std::uint32_t, Indices> all;
    for (const std::uint32_t g : phase.kept[phase.own]) all[g] = copies_of_all(phase, g);
    copies_ = std::move(all);
    multiply(phase.members.size());
    enter(scope, phase);
  }

  void gather_all(OptionScope scope) {
    const Phase phase = phase_of(scope, true);
    begin_round(phase, are_copies_sized());
    for (const std::uint32_t g : held_) {
      for (const std::uint32_t member : phase.members) {
        if (member != c_.rank) send_copies(g, member);
      }
    }
    std::map<std::uint32_t, Indices> all;
    for (const std::uint32_t g : held_) all[g] = copies_of_all(phase, g);
    copies_ = std::move(all);
    multiply(phase.members.size());
  }

  void give_back_payloads() {
    const Phase phase = leave();
    begin_round(phase, are_copies_sized());
    for (const std::uint32_t g : phase.kept[phase.own]) {
      for (const std::uint32_t member : phase.members) {
        if (member != c_.rank) send_copies(g, member);
      }
    }
    for (std::size_t j = 0; j < phase.members.size(); ++j) {
      if (j == phase.own) continue;
      for (const std::uint32_t g : phase.kept[j]) copies_[g] = receive_copies(g, phase.members[j]);
    }
  }

  const BundleContext& c_;
  bool is_last_ = false, is_finished_ = false, has_owner_ = false;
  bool joins_later_ = false;  // does a later step join values?
  Indices held_;              // numbers of groups in the bundle
  Value from_ = Value::Gradient;
  Site site_ = Site::Worker;                 // of the payloads
  bool are_sums_ = false;                    // are they what sums were encoded to?
  bool is_decoded_ = false;                  // has a program decoded what is held?
  std::map<std::uint32_t, Indices> copies_;  // payloads of held groups: slots
  std::uint32_t num_copies_ = 1;             // of each group
  // Number of ranks in the held values, all copies together
  std::uint32_t num_added_ = 1;
  std::vector<Phase> phases_;        // begun but not ended
  std::vector<OptionScope> scopes_;  // of the phases
};

}  // namespace

void build_hierarchical(const BundleContext& context) {
  HierarchicalBuilder(context).run();
}

}  // namespace cinch::rt
