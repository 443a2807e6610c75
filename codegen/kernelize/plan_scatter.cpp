// Planner: where the result of a scatter lies. Nothing may read what a scatter has changed: it
// works in the buffer of its base only where its base is used up.
#include "codegen/kernelize/planner.h"
#include "codegen/kernelize/walk_pulls.h"

namespace cinch::codegen {

using ir::OpKind;
using ir::ValueId;

bool Planner::is_zero_fill(ValueId v) const {
  const auto& op = cx_.def(v);
  if (op.kind != OpKind::fill) return false;
  const auto& scalar = cx_.def(op.operands[0]);
  return scalar.kind == OpKind::const_scalar && scalar.attrs.bits == 0;
}

std::optional<StoreRequest> Planner::whole_request(ValueId v) const {
  const auto it = requests_.find(v.index());
  if (it == requests_.end()) return std::nullopt;
  for (const auto& r : it->second) {
    if (!pc_.is_packed(r.buffer) && !r.adds_to_buffer &&
        pc_.buffer(r.buffer).dtype == type(v).dtype && !is_bool(type(v).dtype)) {
      return r;
    }
  }
  return std::nullopt;
}

std::optional<StoreRequest> Planner::adding_request(ValueId v) const {
  const auto it = requests_.find(v.index());
  if (it == requests_.end() || it->second.size() != 1 || !it->second[0].adds_to_buffer)
    return std::nullopt;
  return it->second[0];
}

rt::BufferIndex Planner::scatter_destination(ir::OpId op_id) {
  const auto result = cx_.op(op_id).results[0];
  if (const auto r = whole_request(result)) return r->buffer;
  for (const auto user : users_after(result, op_id)) {
    const auto& u = cx_.op(user);
    if (u.kind == OpKind::scatter && u.operands[0] == result && is_last_use(result, user))
      return scatter_destination(user);
  }
  return add_room(result, "scattered");
}

bool Planner::is_last_use(ValueId v, ir::OpId op_id) const {
  if (requests_.contains(v.index())) return false;
  std::set<std::uint32_t> readers = {v.index()};
  for (const auto id : cx_.fn.regions[region_.index()].ops) {
    if (!live_.contains(id.index())) continue;
    const auto& op = cx_.op(id);
    bool reads = false;
    for_each_used_value(cx_.fn, id, [&](ValueId used) {
      reads |= readers.contains(used.index()) && !(id == op_id && used == v);
    });
    if (id == op_id && (op.operands[1] == v || op.operands[2] == v)) return false;
    if (!reads) continue;
    if (!ir::is_sweep(op.kind)) {
      for (const auto r : op.results) {
        readers.insert(r.index());
        if (order_.at(id.index()) > order_.at(op_id.index()) && requests_.contains(r.index()))
          return false;
      }
    } else if (order_.at(id.index()) >= order_.at(op_id.index())) {
      return false;
    }
  }
  return true;
}

std::optional<ir::OpId> Planner::scatter_onto(ValueId v) const {
  for (const auto user : users_after(v, cx_.value(v).def)) {
    const auto& u = cx_.op(user);
    if (u.kind == OpKind::scatter && u.operands[0] == v && !is_zero_fill(v)) return user;
  }
  return std::nullopt;
}

void Planner::add_scatter(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  const auto result = op.results[0], base = op.operands[0];
  Sink s{
      .kind = SinkKind::Scatter, .op = op_id, .domain = tile(pc_.num_elems(type(op.operands[2])))};
  const auto add_request = adding_request(result);
  s.adds_to_buffer = add_request && is_zero_fill(base) && users_after(result, op_id).empty();
  std::vector<int> before;
  if (s.adds_to_buffer) {
    s.buffer = add_request->buffer;
    satisfied_.insert({result.index(), s.buffer});
  } else {
    const auto stored = base_stores_.find(op_id.index());
    s.buffer = stored != base_stores_.end() ? plan_.sinks[stored->second].buffer
                                            : scatter_destination(op_id);
    s.zero_first = is_zero_fill(base);
    if (!s.zero_first) before = prepare_base(op_id, s.buffer);
    satisfied_.insert({result.index(), s.buffer});
    cx_.in_buffer[result.index()] = s.buffer;
  }
  const int id = static_cast<int>(plan_.sinks.size());
  plan_.sink_of_op[op_id.index()] = id;
  // On a matrix, an index stands for a row of values.
  const auto index_align = type(base).rank == 1 ? Align::Flat : Align::None;
  add(std::move(s), {{op.operands[1], index_align}, {op.operands[2], Align::Flat}});
  for (const int b : before) raise_level(id, plan_.sinks[b].level + 1);
  if (const auto stored = base_stores_.find(op_id.index()); stored != base_stores_.end())
    plan_.sinks[stored->second].changed_level = plan_.sinks[id].level;
}

std::vector<int> Planner::prepare_base(ir::OpId op_id, rt::BufferIndex buffer) {
  const auto base = cx_.op(op_id).operands[0];
  int of_base = -1;
  if (const auto stored = base_stores_.find(op_id.index()); stored != base_stores_.end()) {
    of_base = stored->second;
    // From here on nobody reads it, the scatter's own values included.
    plan_.sinks[of_base].changed_level = 0;
  } else if (const auto made = plan_.sink_of_op.find(cx_.value(base).def.index());
             cx_.def(base).kind == OpKind::scatter && made != plan_.sink_of_op.end() &&
             plan_.sinks[made->second].buffer == buffer) {
    of_base = made->second;  // in place
  }
  if (of_base < 0) return {add_store({base, buffer, false}, false)};
  auto before = readers_of(of_base);
  before.push_back(of_base);
  return before;
}

std::vector<int> Planner::readers_of(int sink) const {
  std::vector<int> readers;
  for (int i = 0; i < static_cast<int>(plan_.sinks.size()); ++i) {
    for (const auto& d : plan_.sinks[i].deps) {
      if (d.sink == sink) readers.push_back(i);
    }
  }
  return readers;
}

}  // namespace cinch::codegen
