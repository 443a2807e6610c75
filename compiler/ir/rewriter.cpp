// Walks, uses, cloning and compaction.
#include "compiler/ir/rewriter.h"

#include <algorithm>

#include "compiler/ir/ops.h"
#include "runtime/core/mapped.h"

namespace cinch::ir {
namespace {

ValueId replaced(const ValueMap& map, ValueId value) {
  const auto found = map.find(value);
  return found == map.end() ? value : found->second;
}

ValueId new_value(Function& function, ValueId like, OpId def, std::uint32_t result_index) {
  Value value = function.values[like.index()];
  value.def = def;
  value.result_index = result_index;
  function.values.push_back(std::move(value));
  return ValueId(function.values.size() - 1);
}

}  // namespace

std::vector<RegionId> held_regions(const Function& function, const Op& op) {
  std::vector<RegionId> regions = op.regions;
  if (uses_attr(op.kind, AttrUse::Combiner) && op.attrs.combiner.is_valid()) {
    const Combiner& combiner = function.combiners[op.attrs.combiner.index()];
    if (!combiner.op) regions.push_back(combiner.region);
  }
  return regions;
}

void walk(const Function& function, RegionId region,
          const std::function<void(OpId, RegionId in)>& visit) {
  // Iterates by index: a visitor may add ops to the function, which moves the vectors.
  for (std::size_t i = 0; i < function.regions[region.index()].ops.size(); ++i) {
    const OpId op = function.regions[region.index()].ops[i];
    visit(op, region);
    for (RegionId inner : held_regions(function, function.ops[op.index()])) {
      walk(function, inner, visit);
    }
  }
}

void walk(const Function& function, const std::function<void(OpId, RegionId in)>& visit) {
  walk(function, function.body, visit);
}

std::vector<ValueId> result_values(const Function& function) {
  const Results& r = function.results;
  std::vector<ValueId> values;
  if (r.output.is_valid()) values.push_back(r.output);
  for (const auto* list : {&r.fields, &r.counts, &r.states}) {
    values.insert(values.end(), list->begin(), list->end());
  }
  return values;
}

Uses::Uses(const Function& function)
    : uses_(function.values.size()), results_(function.values.size(), false) {
  walk(function, [&](OpId id, RegionId) {
    for (ValueId operand : function.ops[id.index()].operands) uses_[operand.index()].push_back(id);
  });
  for (ValueId value : result_values(function)) results_[value.index()] = true;
}

UseLists::UseLists(Function& function) : function_(function) {
  Results& r = function.results;
  if (r.output.is_valid()) results_[r.output].push_back(&r.output);
  for (auto* list : {&r.fields, &r.counts, &r.states}) {
    for (ValueId& value : *list) results_[value].push_back(&value);
  }
}

void UseLists::learn_new_ops() {
  users_.resize(function_.values.size());
  for (; num_known_ops_ < function_.ops.size(); ++num_known_ops_) {
    for (ValueId operand : function_.ops[num_known_ops_].operands) {
      users_[operand.index()].emplace_back(num_known_ops_);
    }
  }
}

void UseLists::replace(ValueId from, ValueId to) {
  if (from == to) return;
  learn_new_ops();
  const std::vector<OpId> users = std::exchange(users_[from.index()], {});
  for (OpId id : users) std::ranges::replace(function_.ops[id.index()].operands, from, to);
  std::vector<OpId>& all = users_[to.index()];
  all.insert(all.end(), users.begin(), users.end());
  const auto results = results_.extract(from);
  if (!results) return;
  for (ValueId* entry : results.mapped()) *entry = to;
  std::vector<ValueId*>& entries = results_[to];
  entries.insert(entries.end(), results.mapped().begin(), results.mapped().end());
}

OpId clone_op(Function& function, OpId source, RegionId into, ValueMap& map) {
  Op op = function.ops[source.index()];
  for (ValueId& operand : op.operands) operand = replaced(map, operand);
  for (RegionId& region : op.regions) region = clone_region(function, region, map);
  if (uses_attr(op.kind, AttrUse::Combiner)) {
    Combiner combiner = function.combiners[op.attrs.combiner.index()];
    if (!combiner.op) {
      combiner.region = clone_region(function, combiner.region, map);
      function.combiners.push_back(combiner);
      op.attrs.combiner = CombinerId(function.combiners.size() - 1);
    }
  }
  const OpId id(function.ops.size());
  for (std::size_t i = 0; i < op.results.size(); ++i) {
    const ValueId old = op.results[i];
    op.results[i] = new_value(function, old, id, static_cast<std::uint32_t>(i));
    map[old] = op.results[i];
  }
  function.ops.push_back(std::move(op));
  function.regions[into.index()].ops.push_back(id);
  return id;
}

RegionId clone_region(Function& function, RegionId source, ValueMap& map) {
  const RegionId copy(function.regions.size());
  function.regions.emplace_back();
  const std::vector<OpId> ops = function.regions[source.index()].ops;
  const std::vector<ValueId> args = function.regions[source.index()].args;
  for (OpId op : ops) clone_op(function, op, copy, map);
  for (ValueId arg : args) function.regions[copy.index()].args.push_back(replaced(map, arg));
  return copy;
}

std::vector<ValueId> inline_region(Function& function, RegionId region,
                                   const std::vector<ValueId>& args, RegionId into) {
  ValueMap map;
  const std::vector<OpId> ops = function.regions[region.index()].ops;
  const std::vector<ValueId> formal = function.regions[region.index()].args;
  for (std::size_t i = 0; i < formal.size(); ++i) map[formal[i]] = args[i];
  std::vector<ValueId> yielded;
  for (OpId id : ops) {
    const OpKind kind = function.ops[id.index()].kind;
    if (kind == OpKind::arg) continue;
    if (kind != OpKind::yield) {
      clone_op(function, id, into, map);
      continue;
    }
    for (ValueId value : function.ops[id.index()].operands) yielded.push_back(replaced(map, value));
  }
  return yielded;
}

bool has_checks(const Function& function, OpId id) {
  const Op& op = function.ops[id.index()];
  bool found = op_info(op.kind).effect == Effect::Check;
  for (RegionId region : op.regions) {
    walk(function, region, [&](OpId inner, RegionId) {
      found |= op_info(function.ops[inner.index()].kind).effect == Effect::Check;
    });
  }
  return found;
}

namespace {

// Copies everything that the body reaches into an empty function, in the order of the walk.
class Compactor {
 public:
  explicit Compactor(const Function& from) : from_(from) { to_.kind = from.kind; }

  Function run() {
    to_.body = copy_region(from_.body);
    const Results& r = from_.results;
    to_.results.output = r.output.is_valid() ? values_.at(r.output) : ValueId{};
    to_.results.fields = mapped_all(r.fields);
    to_.results.counts = mapped_all(r.counts);
    to_.results.states = mapped_all(r.states);
    return std::move(to_);
  }

 private:
  std::vector<ValueId> mapped_all(const std::vector<ValueId>& values) const {
    return mapped<ValueId>(values, [&](ValueId value) { return values_.at(value); });
  }

  RegionId copy_region(RegionId source) {
    const RegionId id(to_.regions.size());
    to_.regions.emplace_back();
    for (OpId op : from_.regions[source.index()].ops) {
      const OpId copy = copy_op(from_.ops[op.index()]);
      to_.regions[id.index()].ops.push_back(copy);
    }
    to_.regions[id.index()].args = mapped_all(from_.regions[source.index()].args);
    return id;
  }

  CombinerId copy_combiner(CombinerId source) {
    if (const auto found = combiners_.find(source); found != combiners_.end()) return found->second;
    Combiner combiner = from_.combiners[source.index()];
    if (!combiner.op) combiner.region = copy_region(combiner.region);
    const CombinerId id(to_.combiners.size());
    to_.combiners.push_back(combiner);
    combiners_[source] = id;
    return id;
  }

  OpId copy_op(const Op& source) {
    Op op = source;
    op.operands = mapped_all(source.operands);
    for (RegionId& region : op.regions) region = copy_region(region);
    if (uses_attr(op.kind, AttrUse::Combiner)) {
      op.attrs.combiner = copy_combiner(op.attrs.combiner);
    }
    const OpId id(to_.ops.size());
    for (ValueId& result : op.results) {
      const ValueId copy(to_.values.size());
      to_.values.push_back(from_.values[result.index()]);
      to_.values.back().def = id;
      values_[result] = copy;
      result = copy;
    }
    to_.ops.push_back(std::move(op));
    return id;
  }

  const Function& from_;
  Function to_;
  ValueMap values_;
  std::unordered_map<CombinerId, CombinerId> combiners_;
};

}  // namespace

void compact(Function& function) {
  function = Compactor(function).run();
}

}  // namespace cinch::ir
