// Places of values in memory: in whose place a scatter works, and the buffers of all others once
// the schedule is known.
#include <algorithm>
#include <ranges>

#include "compiler/ir/ops.h"
#include "compiler/kernelize/walk_pulls.h"

namespace cinch::codegen {
using ir::OpKind;
using ir::ValueId;

// Operators that hand on the first elements of an array in row-major order are followed to the
// value that is requested. Zeros behind the last element are no obstacle: the buffer begins as
// zeros. Nor are conversions of what is set, since they keep zeros.
ValueId Planner::asked_part(const Sink& s) const {
  const auto result = cx_.op(s.op).results[0];
  if (type(result).rank != 1) return result;
  const auto hands_on = [&](const ir::Op& op) {
    if (op.kind == OpKind::convert) return s.kind == SinkKind::Scatter;
    if (op.kind == OpKind::slice) return pc_.const_int(op.attrs.size) == 0;
    return op.kind == OpKind::reshape || op.kind == OpKind::chunk || op.kind == OpKind::unchunk;
  };
  ValueId part = result;
  while (!requests_.contains(part.index())) {
    const auto users = users_.find(part.index());
    if (users == users_.end() || users->second.size() != 1) return result;
    const auto& op = cx_.op(users->second[0]);
    if (!hands_on(op)) return result;
    part = op.results[0];
  }
  return requests_.at(part.index()).size() == 1 && !users_.contains(part.index()) ? part : result;
}

void Planner::make_where_asked(Sink& s) {
  const auto result = cx_.op(s.op).results[0], part = asked_part(s);
  if (s.kind == SinkKind::Scatter) {
    // A scatter onto zeros may add directly to the requested buffer, if its result is only added to
    // a buffer.
    const auto it = requests_.find(part.index());
    s.adds_to_buffer = it != requests_.end() && it->second.size() == 1 &&
                       it->second[0].adds_to_buffer && !users_.contains(part.index());
    if (s.adds_to_buffer) s.buffer = it->second[0].buffer;
  }
  if (!s.adds_to_buffer) s.buffer = whole_request(part);
  if (part == result || s.buffer == rt::kNoIndex) return;
  if (!pc_.steps.may_take()) {
    s.buffer = rt::kNoIndex;
    s.adds_to_buffer = false;
    return;
  }
  s.value = part;
  plan_.sink_of_op[cx_.value(part).def.index()] = static_cast<int>(plan_.sinks.size());
}

rt::BufferIndex Planner::whole_request(ValueId v) const {
  const auto it = requests_.find(v.index());
  if (it == requests_.end()) return rt::kNoIndex;
  const auto fits = std::ranges::find_if(it->second, [&](const StoreRequest& r) {
    return !pc_.is_packed(r.buffer) && !r.adds_to_buffer &&
           pc_.buffer(r.buffer).dtype == type(v).dtype && !is_bool(type(v).dtype);
  });
  return fits == it->second.end() ? rt::kNoIndex : fits->buffer;
}

// A pulled operator reads where its result is read. A value that must end in a buffer is read where
// it is made, by a store, or keeps its place for ever. 0: never read.
void Planner::find_last_reads() {
  constexpr auto kForEver = static_cast<std::size_t>(-1);
  const auto note = [](auto& reads, ValueId v, std::size_t at) {
    reads[v.index()] = std::max(reads[v.index()], at);
  };
  for (const auto id : ops_) {
    for (const auto r : cx_.op(id).results) {
      const auto asked = requests_.find(r.index());
      if (asked == requests_.end()) continue;
      const bool stays = ir::is_sweep(cx_.op(id).kind) && whole_request(r) != rt::kNoIndex;
      note(last_read_, r, stays ? kForEver : order_.at(id.index()));
    }
  }
  for (const auto id : std::views::reverse(ops_)) {
    if (!live_.contains(id.index())) continue;
    const auto& op = cx_.op(id);
    std::size_t at = 0;
    if (ir::is_sweep(op.kind)) {
      at = order_.at(id.index());
    } else {
      for (const auto r : op.results)
        at = std::max({at, last_read_[r.index()], last_base_[r.index()]});
    }
    const bool is_scatter = op.kind == OpKind::scatter;
    std::size_t operand = 0;
    for_each_used_value(cx_.fn, id, [&](ValueId v) {
      users_[v.index()].push_back(id);
      note(is_scatter && operand++ == 0 ? last_base_ : last_read_, v, at);
    });
  }
}

int Planner::source_of(ir::OpId op_id) {
  const auto base = cx_.op(op_id).operands[0];
  if (chosen_.contains(base.index())) {
    const auto stored = plan_.stored.find(base.index());
    const bool is_free = stored != plan_.stored.end() &&
                         plan_.sinks[stored->second].buffer == rt::kNoIndex &&
                         plan_.sinks[stored->second].changed_by < 0;
    if (is_free && pc_.steps.may_take()) return stored->second;
  }
  const auto made = plan_.sink_of_op.find(cx_.value(base).def.index());
  const bool is_free = made != plan_.sink_of_op.end() &&
                       plan_.sinks[made->second].kind == SinkKind::Scatter &&
                       plan_.sinks[made->second].buffer == rt::kNoIndex;
  // The op may change its base in place if all readers of the base, also through pulled operators,
  // come before.
  const auto at = order_.at(op_id.index());
  const auto read = last_read_.find(base.index());
  const bool is_last_use = is_free && (read == last_read_.end() || read->second < at) &&
                           last_base_.at(base.index()) == at;
  if (is_last_use && pc_.steps.may_take()) return made->second;
  return add_store({base, rt::kNoIndex, false}, "scattered", false);
}

void Planner::add_scatter(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  const auto base = op.operands[0];
  Sink s{
      .kind = SinkKind::Scatter, .op = op_id, .domain = tile(pc_.num_elems(type(op.operands[2])))};
  std::vector<Edge> before;
  const auto& made = cx_.def(base);
  const auto* scalar = made.kind == OpKind::fill ? &cx_.def(made.operands[0]) : nullptr;
  if (scalar && scalar->kind == OpKind::const_scalar && scalar->attrs.bits == 0) {
    make_where_asked(s);
    s.zero_first = !s.adds_to_buffer;
  } else {
    // Its base would lie in the buffer before.
    const rt::BufferIndex asked = whole_request(op.results[0]);
    if (!behind_checks_.contains(asked)) s.buffer = asked;
    const auto lies_in = cx_.in_buffer.find(base.index());
    const bool is_there = lies_in != cx_.in_buffer.end() && lies_in->second == s.buffer;
    if (!is_there) s.source = source_of(op_id);
  }
  const int id = static_cast<int>(plan_.sinks.size());
  if (s.source >= 0) {
    before.push_back({s.source, Align::None, 0, Edge::Kind::Change});
    for (int i = 0; i < id; ++i) {
      const bool reads = std::ranges::any_of(plan_.sinks[i].edges, [&](const Edge& e) {
        return e.from == s.source && e.kind == Edge::Kind::Value;
      });
      if (reads) before.push_back({i, Align::None, 0, Edge::Kind::Before});
    }
    // From here on nobody reads the base, not even the scatter's own values.
    plan_.sinks[s.source].changed_by = id;
  }
  s.edges = std::move(before);
  plan_.sink_of_op[op_id.index()] = id;
  // On a matrix, an index selects a row of values.
  const auto index_align = type(base).rank == 1 ? Align::Flat : Align::None;
  add(std::move(s), {{op.operands[1], index_align}, {op.operands[2], Align::Flat}});
}

// Gives places to values in memory, once the schedule is known. A sink that works in the place of
// another (Sink::source) has the other's buffer.

namespace {

class Places {
 public:
  Places(FunctionContext& cx, RegionPlan& plan) : cx_(cx), pc_(cx.program), plan_(plan) {}

  void give() {
    // A shared place has the name of its last scatter, and is the requested buffer if one is
    // requested.
    for (int id = 0; id < num_sinks(); ++id) {
      const Sink& s = plan_.sinks[id];
      if (!works_in_source(s)) continue;
      plan_.sinks[first_in_place(id)].buffer = s.buffer;
      last_scatter_[first_in_place(id)] = id;
    }
    for (int id = 0; id < num_sinks(); ++id) give_to(id);
  }

 private:
  int num_sinks() const { return static_cast<int>(plan_.sinks.size()); }
  ir::ValueId result(const Sink& s, std::size_t i = 0) const { return cx_.op(s.op).results[i]; }
  bool works_in_source(const Sink& s) const { return s.kind == SinkKind::Scatter && s.source >= 0; }
  // The first sink in the chain of sinks that share this one's place.
  int first_in_place(int id) const {
    while (works_in_source(plan_.sinks[id])) id = plan_.sinks[id].source;
    return id;
  }

  rt::BufferIndex room(ir::ValueId v, const char* otherwise) {
    const auto& name = cx_.value(v).name;
    return room(name.empty() ? otherwise : name, v);
  }
  rt::BufferIndex room(const std::string& name, ir::ValueId v) {
    const auto& t = cx_.value(v).type;
    return pc_.add_workspace(name, t.dtype, pc_.num_elems(t));
  }

  // A CPU sorts long rows as pairs of a key of 32 bits and its place, in two arrays
  // (prelude/cpu/sort.h).
  HostExprId sort_scratch_words(const Sink& sort) {
    constexpr std::int64_t kPairsAbove = 4096;
    constexpr int kPairedBits = 32, kWordsOfTwoPairs = 4;
    const auto& keys = cx_.value(cx_.op(sort.op).operands[0]).type;
    HostExprPool& pool = pc_.exprs();
    const HostExprId length = keys.rank < 2 ? pc_.num_elems(keys) : keys.dims[1];
    const bool is_short = pool.is_const(length) && pool.const_value(length).as_int() <= kPairsAbove;
    const HostExprId words = pc_.num_elems(cx_.value(result(sort)).type);
    if (is_short || keys.dtype.bits > kPairedBits) return words;
    return pool.mul(words, pool.const_int(kWordsOfTwoPairs));
  }

  void give_to(int id) {
    Sink& s = plan_.sinks[id];
    switch (s.kind) {
      case SinkKind::Store:
      case SinkKind::Scatter:
      case SinkKind::ScatterAdd:
      case SinkKind::ScatterSum:
      case SinkKind::Histogram:
      case SinkKind::RowPlaces:
        return give_one(id);
      case SinkKind::Argsort:
        s.results = {plan_.sinks[s.source].buffer,
                     pc_.add_workspace("sort_scratch", kU32, sort_scratch_words(s))};
        s.buffer = cx_.in_buffer[result(s).index()] = room(result(s), "order");
        return;
      case SinkKind::CheckUnique:
        s.buffer = pc_.add_workspace("uses", kU32, cx_.op(s.op).attrs.size);
        return;
      case SinkKind::Nonzero:
        if (cx_.op(s.op).results.size() > 1) cx_.in_buffer[result(s, 1).index()] = s.buffer;
        return;
      case SinkKind::Reduce:
        return give_each(s, "reduced");
      case SinkKind::Scan:
        return give_each(s, "scanned");
      case SinkKind::Control:
        return give_each(s, "carried");
      case SinkKind::Collective:
        s.results = {plan_.sinks[s.source].buffer};
        for (std::size_t i = 0; i < cx_.op(s.op).results.size(); ++i) {
          s.results.push_back(room(result(s, i), "received"));
          cx_.in_buffer[result(s, i).index()] = s.results.back();
        }
        return;
      case SinkKind::Kept:
        cx_.in_buffer[result(s).index()] = plan_.sinks[s.source].buffer;
        return;
      default:
        return;
    }
  }

  void give_one(int id) {
    Sink& s = plan_.sinks[id];
    const auto last = last_scatter_.find(id);
    if (works_in_source(s)) {
      s.buffer = plan_.sinks[s.source].buffer;
    } else if (s.buffer == rt::kNoIndex && last != last_scatter_.end()) {
      s.buffer = room(result(plan_.sinks[last->second]), "scattered");
    } else if (s.buffer == rt::kNoIndex) {
      s.buffer = s.kind == SinkKind::Store       ? room(s.room, s.value)
                 : s.kind == SinkKind::Scatter   ? room(result(s), "scattered")
                 : s.kind == SinkKind::Histogram ? room(result(s), "histogram")
                 : s.kind == SinkKind::RowPlaces ? room(result(s), "places")
                                                 : room(result(s), "added");
    }
    if (s.kind == SinkKind::Store || s.adds_to_buffer) return;
    cx_.in_buffer[held_value(cx_, s).index()] = s.buffer;
  }

  void give_each(Sink& s, const char* otherwise) {
    s.results.resize(cx_.op(s.op).results.size(), rt::kNoIndex);
    for (std::size_t i = 0; i < s.results.size(); ++i) {
      if (s.results[i] == rt::kNoIndex) s.results[i] = room(result(s, i), otherwise);
      cx_.in_buffer[result(s, i).index()] = s.results[i];
    }
  }

  FunctionContext& cx_;
  ProgramContext& pc_;
  RegionPlan& plan_;
  std::unordered_map<int, int> last_scatter_;  // by sink: the last scatter in its place
};

}  // namespace

void give_places(FunctionContext& cx, RegionPlan& plan) {
  Places(cx, plan).give();
}

}  // namespace cinch::codegen
