// The planner of plan_region.h: sinks in the order of the region, then levels, then kernels.
#include "codegen/kernelize/plan_region.h"

#include <algorithm>
#include <map>

#include "codegen/kernelize/choose_stores.h"
#include "codegen/kernelize/walk_pulls.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

using ir::OpKind;
using ir::ValueId;

bool is_store_of_barrier_possible(SinkKind kind) {
  return kind == SinkKind::RowReduce || kind == SinkKind::RunningSum || kind == SinkKind::Nonzero;
}

bool stands_alone(SinkKind kind) {
  return kind == SinkKind::Scan || kind == SinkKind::ScatterAdd || kind == SinkKind::Argsort ||
         kind == SinkKind::CheckHost || kind == SinkKind::CheckUnique || kind == SinkKind::Control;
}

class Planner {
 public:
  Planner(FunctionContext& cx, ir::RegionId region, const std::vector<StoreRequest>& requests)
      : cx_(cx), pc_(cx.program), region_(region) {
    for (const auto& r : requests) requests_[r.value.index()].push_back(r);
  }

  RegionPlan run(bool flag_nonfinite) {
    const auto ops =
        region_.is_valid() ? cx_.fn.regions[region_.index()].ops : std::vector<ir::OpId>();
    mark_live(ops);
    for (std::size_t i = 0; i < ops.size(); ++i) order_[ops[i].index()] = i;
    for (const auto op_id : ops) {
      if (!live_.contains(op_id.index())) continue;
      if (is_barrier(cx_.op(op_id).kind)) add_barrier(op_id);
      for (const auto result : cx_.op(op_id).results) add_requested_stores(result);
    }
    // What is asked for but defined outside: region arguments of an outer loop, outer values.
    for (auto& [value, unused] : std::map(requests_.begin(), requests_.end())) {
      add_requested_stores(ValueId(std::size_t{value}));
    }
    if (flag_nonfinite) add_nonfinite();
    group();
    return std::move(plan_);
  }

 private:
  // --- liveness
  // -------------------------------------------------------------------------------------------------------
  void mark_live(const std::vector<ir::OpId>& ops) {
    std::vector<ValueId> work;
    for (const auto& [value, unused] : requests_) work.push_back(ValueId(std::size_t{value}));
    for (const auto op_id : ops) {
      if (has_checks(op_id)) mark_op(op_id, work);
    }
    while (!work.empty()) {
      const auto v = work.back();
      work.pop_back();
      mark_op(cx_.value(v).def, work);
    }
  }
  void mark_op(ir::OpId op_id, std::vector<ValueId>& work) {
    if (!live_.insert(op_id.index()).second) return;
    for_each_used_value(cx_.fn, op_id, [&](ValueId v) { work.push_back(v); });
  }
  bool has_checks(ir::OpId op_id) const {
    const auto& op = cx_.op(op_id);
    if (ir::op_info(op.kind).effect == ir::Effect::Check) return true;
    for (const auto r : op.regions) {
      for (const auto inner : cx_.fn.regions[r.index()].ops) {
        if (has_checks(inner)) return true;
      }
    }
    return false;
  }

  // --- sinks
  // ----------------------------------------------------------------------------------------------------------
  int add(Sink sink, const std::vector<std::pair<ValueId, Align>>& pulled) {
    const int id = static_cast<int>(plan_.sinks.size());
    plan_.sinks.push_back(std::move(sink));
    collect(id, pulled);
    place(id);
    return id;
  }

  void collect(int id, const std::vector<std::pair<ValueId, Align>>& pulled) {
    PullWalk walk{cx_, plan_, region_, retired_, plan_.sinks[id].compaction, id};
    for (const auto& [v, align] : pulled) walk.visit(v, align);
    // A gather by the selection reads its source in place: the positions are still needed.
    if (walk.compaction >= 0) walk.add_dep(walk.compaction, Align::Flat);
    plan_.sinks[id].deps = std::move(walk.deps);
    pulled_[id] = pulled;
  }

  void add_barrier(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    switch (op.kind) {
      case OpKind::reduce:
        return op.attrs.axis == ir::kAll ? add_reduce(op_id) : add_row_reduce(op_id);
      case OpKind::matmul:
        return add_row_reduce(op_id);
      case OpKind::scan:
        return add_scan(op_id);
      case OpKind::nonzero:
        return add_nonzero(op_id);
      case OpKind::scatter:
        return add_scatter(op_id);
      case OpKind::scatter_add:
        return add_scatter_add(op_id);
      case OpKind::histogram:
        return add_histogram(op_id);
      case OpKind::argsort:
        return add_argsort(op_id);
      case OpKind::check:
        return add_check(op_id, SinkKind::Check);
      case OpKind::check_index:
        return add_check(op_id, SinkKind::CheckIndex);
      case OpKind::check_host:
        return add_check_host(op_id);
      case OpKind::check_unique:
        return add_check_unique(op_id);
      case OpKind::if_else:
      case OpKind::for_loop:
      case OpKind::while_loop:
        return add_control(op_id);
      default:
        CINCH_LIMITATION("no kernel yet for " + std::string(ir::op_info(op.kind).name));
    }
  }

  const ir::Type& type(ValueId v) const { return cx_.value(v).type; }
  Domain tile(HostExprId extent) const { return {kir::GroupKind::Tile, extent, {}, {}}; }
  Domain row(HostExprId rows, HostExprId cols) const {
    return {kir::GroupKind::Row, {}, rows, cols};
  }
  Domain domain_of(const ir::Type& t) const {
    return t.rank == 0 ? Domain{} : tile(pc_.num_elems(t));
  }

  std::vector<std::pair<ValueId, Align>> operands(const ir::Op& op, Align align) const {
    std::vector<std::pair<ValueId, Align>> out;
    for (const auto v : op.operands) out.push_back({v, type(v).rank == 0 ? Align::None : align});
    return out;
  }

  void add_reduce(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    Sink s{
        .kind = SinkKind::Reduce, .op = op_id, .domain = tile(pc_.num_elems(type(op.operands[0])))};
    for (const auto r : op.results) {
      s.results.push_back(
          pc_.add_workspace(name(r, "reduced"), type(r).dtype, pc_.exprs().const_int(1)));
      cx_.in_buffer[r.index()] = s.results.back();
    }
    plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
  }

  void add_row_reduce(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    const auto& t = type(op.operands[0]);
    Sink s{.kind = SinkKind::RowReduce, .op = op_id};
    Align align = Align::None;
    if (op.kind == OpKind::matmul) {
      s.domain = row(pc_.exprs().mul(t.dims[0], type(op.operands[1]).dims[1]), t.dims[1]);
    } else if (op.attrs.axis == 1) {
      s.domain = row(t.dims[0], t.dims[1]);
      align = Align::Flat;
    } else {
      s.domain = row(t.dims[1], t.dims[0]);
    }
    plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, align));
  }

  void add_scan(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    const auto& t = type(op.operands[0]);
    const auto& combiner = cx_.fn.combiners[op.attrs.combiner.index()];
    const bool is_running_sum =
        combiner.op == ScalarOp::add && is_int(t.dtype) && op.results.size() == 1 && t.rank == 1;
    Sink s{.kind = is_running_sum ? SinkKind::RunningSum : SinkKind::Scan, .op = op_id};
    if (is_running_sum) {
      s.domain = tile(t.dims[0]);
    } else {
      for (const auto r : op.results) {
        s.results.push_back(
            pc_.add_workspace(name(r, "scanned"), type(r).dtype, pc_.num_elems(type(r))));
        cx_.in_buffer[r.index()] = s.results.back();
      }
    }
    const auto pulled = operands(op, is_running_sum ? Align::Flat : Align::None);
    plan_.sink_of_op[op_id.index()] = add(std::move(s), pulled);
  }

  void add_nonzero(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    Sink s{.kind = SinkKind::Nonzero,
           .op = op_id,
           .domain = tile(pc_.num_elems(type(op.operands[0])))};
    s.buffer = pc_.count(op.attrs.index);
    if (op.results.size() > 1) cx_.in_buffer[op.results[1].index()] = s.buffer;
    plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
  }

  // --- scatter: where its result lies
  // ---------------------------------------------------------------------------------
  bool is_zero_fill(ValueId v) const {
    const auto& op = cx_.def(v);
    if (op.kind != OpKind::fill) return false;
    const auto& scalar = cx_.def(op.operands[0]);
    return scalar.kind == OpKind::const_scalar && scalar.attrs.bits == 0;
  }

  // The first request for a value that a scatter can meet by working in that very buffer.
  std::optional<StoreRequest> whole_request(ValueId v) const {
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

  rt::BufferIndex scatter_destination(ir::OpId op_id) {
    const auto result = cx_.op(op_id).results[0];
    if (const auto r = whole_request(result)) return r->buffer;
    for (const auto user : users_after(result, op_id)) {
      const auto& u = cx_.op(user);
      if (u.kind == OpKind::scatter && u.operands[0] == result) return scatter_destination(user);
    }
    return pc_.add_workspace(name(result, "scattered"), type(result).dtype,
                             pc_.num_elems(type(result)));
  }

  std::vector<ir::OpId> users_after(ValueId v, ir::OpId op_id) const {
    std::vector<ir::OpId> users;
    if (!region_.is_valid()) return users;
    for (const auto id : cx_.fn.regions[region_.index()].ops) {
      if (!live_.contains(id.index()) || order_.at(id.index()) <= order_.at(op_id.index()))
        continue;
      bool uses = false;
      for_each_used_value(cx_.fn, id, [&](ValueId used) { uses |= used == v; });
      if (uses) users.push_back(id);
    }
    return users;
  }

  void add_scatter(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    const auto result = op.results[0], base = op.operands[0];
    Sink s{.kind = SinkKind::Scatter,
           .op = op_id,
           .domain = tile(pc_.num_elems(type(op.operands[1])))};
    const auto add_request = adding_request(result);
    s.adds_to_buffer = add_request && is_zero_fill(base);
    std::vector<int> before;
    if (s.adds_to_buffer) {
      s.buffer = add_request->buffer;
      satisfied_.insert({result.index(), s.buffer});
    } else {
      s.buffer = scatter_destination(op_id);
      s.zero_first = is_zero_fill(base);
      if (!s.zero_first) before = prepare_base(op_id, base, s.buffer);
      satisfied_.insert({result.index(), s.buffer});
      cx_.in_buffer[result.index()] = s.buffer;
    }
    const int id = static_cast<int>(plan_.sinks.size());
    plan_.sink_of_op[op_id.index()] = id;
    add(std::move(s), {{op.operands[1], Align::Flat}, {op.operands[2], Align::Flat}});
    for (const int b : before) raise_level(id, plan_.sinks[b].level + 1);
  }

  std::optional<StoreRequest> adding_request(ValueId v) const {
    const auto it = requests_.find(v.index());
    if (it == requests_.end() || it->second.size() != 1 || !it->second[0].adds_to_buffer)
      return std::nullopt;
    return it->second[0];
  }

  // Brings the base of a scatter into `buffer`; returns the sinks that must run before the scatter.
  std::vector<int> prepare_base(ir::OpId op_id, ValueId base, rt::BufferIndex buffer) {
    const auto& def = cx_.def(base);
    const auto of_base = plan_.sink_of_op.find(cx_.value(base).def.index());
    const bool is_in_place = def.kind == OpKind::scatter && of_base != plan_.sink_of_op.end() &&
                             plan_.sinks[of_base->second].buffer == buffer &&
                             users_after(base, op_id).empty() && !requests_.contains(base.index());
    std::vector<int> before;
    if (is_in_place) {
      before = readers_of(of_base->second);
      before.push_back(of_base->second);
      return before;
    }
    int store = -1;
    for (const auto& [id, unused] : pulled_) {
      const auto& s = plan_.sinks[id];
      if (s.kind == SinkKind::Store && s.buffer == buffer && s.value == base) store = id;
    }
    if (store < 0) store = add_store({base, buffer, false});
    before = readers_of(store);
    before.push_back(store);
    retired_.insert(store);
    return before;
  }

  std::vector<int> readers_of(int sink) const {
    std::vector<int> readers;
    for (int i = 0; i < static_cast<int>(plan_.sinks.size()); ++i) {
      for (const auto& d : plan_.sinks[i].deps) {
        if (d.sink == sink) readers.push_back(i);
      }
    }
    return readers;
  }

  void raise_level(int id, int level) {
    auto& s = plan_.sinks[id];
    if (s.level >= level) return;
    s.level = level;
    for (auto& d : s.deps) {
      if (!d.is_on_chip) continue;
      d.is_on_chip = false;
      d.sink = stored_form(d.sink);
      s.level = std::max(s.level, plan_.sinks[d.sink].level + 1);
    }
  }

  void add_scatter_add(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    const auto result = op.results[0];
    Sink s{.kind = SinkKind::ScatterAdd,
           .op = op_id,
           .zero_first = true,
           .domain = tile(pc_.num_elems(type(op.operands[0])))};
    const auto r = whole_request(result);
    s.buffer = r ? r->buffer
                 : pc_.add_workspace(name(result, "added"), type(result).dtype,
                                     pc_.num_elems(type(result)));
    satisfied_.insert({result.index(), s.buffer});
    cx_.in_buffer[result.index()] = s.buffer;
    plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
  }

  void add_histogram(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    const auto result = op.results[0];
    Sink s{.kind = SinkKind::Histogram,
           .op = op_id,
           .zero_first = true,
           .domain = tile(pc_.num_elems(type(op.operands[0])))};
    s.buffer = pc_.add_workspace(name(result, "histogram"), kU32, pc_.num_elems(type(result)));
    cx_.in_buffer[result.index()] = s.buffer;
    plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
  }

  void add_argsort(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    const auto result = op.results[0], keys = op.operands[0];
    const auto stored =
        pc_.add_workspace(name(keys, "keys"), type(keys).dtype, pc_.num_elems(type(keys)));
    const int store = add_store({keys, stored, false});
    Sink s{.kind = SinkKind::Argsort, .op = op_id};
    s.results = {stored, pc_.add_workspace("sort_scratch", kU32, pc_.num_elems(type(keys)))};
    s.buffer = pc_.add_workspace(name(result, "order"), kU32, pc_.num_elems(type(result)));
    cx_.in_buffer[result.index()] = s.buffer;
    const int id = add(std::move(s), {});
    raise_level(id, plan_.sinks[store].level + 1);
    plan_.sink_of_op[op_id.index()] = id;
  }

  void add_check(ir::OpId op_id, SinkKind kind) {
    const auto& op = cx_.op(op_id);
    Sink s{.kind = kind, .op = op_id, .domain = domain_of(type(op.operands[0]))};
    plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
  }

  void add_check_unique(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    Sink s{.kind = SinkKind::CheckUnique, .op = op_id};
    s.buffer = pc_.add_workspace("uses", kU32, op.attrs.size);
    plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::None));
  }

  void add_check_host(ir::OpId op_id) {
    plan_.sink_of_op[op_id.index()] = add(Sink{.kind = SinkKind::CheckHost, .op = op_id}, {});
  }

  void add_control(ir::OpId op_id) {
    const auto& op = cx_.op(op_id);
    Sink s{.kind = SinkKind::Control, .op = op_id};
    for (const auto r : op.results) {
      s.results.push_back(
          pc_.add_workspace(name(r, "carried"), type(r).dtype, pc_.num_elems(type(r))));
      cx_.in_buffer[r.index()] = s.results.back();
    }
    std::vector<std::pair<ValueId, Align>> pulled;
    for_each_used_value(cx_.fn, op_id, [&](ValueId v) { pulled.push_back({v, Align::None}); });
    plan_.sink_of_op[op_id.index()] = add(std::move(s), pulled);
  }

  int add_store(const StoreRequest& r) {
    Sink s{.kind = SinkKind::Store,
           .value = r.value,
           .buffer = r.buffer,
           .adds_to_buffer = r.adds_to_buffer,
           .domain = domain_of(type(r.value))};
    s.compaction = pc_.is_packed(r.buffer) ? -1 : find_compaction(cx_, plan_, region_, r.value);
    const int compaction = s.compaction;
    int id = static_cast<int>(plan_.sinks.size());
    add(std::move(s), {{r.value, Align::Flat}});
    if (compaction >= 0 && plan_.sinks[id].level != plan_.sinks[compaction].level) {
      // What is stored is ready later than the selection: store by position instead.
      plan_.sinks[id].compaction = -1;
      plan_.sinks[id].level = 0;
      plan_.sinks[id].domain = domain_of(type(r.value));
      collect(id, {{r.value, Align::Flat}});
      place(id);
    }
    if (!r.adds_to_buffer && !pc_.is_packed(r.buffer))
      plan_.stored.try_emplace(r.value.index(), id);
    return id;
  }

  void add_requested_stores(ValueId v) {
    const auto it = requests_.find(v.index());
    if (it == requests_.end()) return;
    const auto requests = std::move(it->second);
    requests_.erase(it);
    for (const auto& r : requests) {
      const auto lies = cx_.in_buffer.find(v.index());
      const bool is_there =
          lies != cx_.in_buffer.end() && lies->second == r.buffer && !r.adds_to_buffer;
      if (!is_there && !satisfied_.contains({v.index(), r.buffer})) add_store(r);
    }
  }

  void add_nonfinite() {
    for (std::size_t i = 0; i < cx_.fn.ops.size(); ++i) {
      if (cx_.fn.ops[i].kind != OpKind::gradient) continue;
      const auto g = cx_.fn.ops[i].results[0];
      add(Sink{.kind = SinkKind::NonFinite, .value = g, .domain = domain_of(type(g))}, {});
      return;
    }
    const ir::Type flat{kF32, 1, {pc_.exprs().n(), {}}};
    add(Sink{.kind = SinkKind::NonFinite, .domain = domain_of(flat)}, {});
  }

  // --- levels
  // ---------------------------------------------------------------------------------------------------------
  // A Store sink that holds the result of a row reduction, running sum or selection (made now if
  // there is none).
  int stored_form(int sink) {
    const auto kind = plan_.sinks[sink].kind;
    if (!is_store_of_barrier_possible(kind)) return sink;
    const auto v = cx_.op(plan_.sinks[sink].op).results[0];
    if (const auto it = plan_.stored.find(v.index());
        it != plan_.stored.end() && !retired_.contains(it->second)) {
      return it->second;
    }
    return add_store(
        {v, pc_.add_workspace(name(v, "kept"), type(v).dtype, pc_.num_elems(type(v))), false});
  }

  bool can_share_kernel(const Sink& s, const Dep& d) const {
    const auto& t = plan_.sinks[d.sink];
    switch (t.kind) {
      case SinkKind::RowReduce:
        if (d.align == Align::Row) return can_feed_rows(t) && can_run_in_rows(s, t.domain);
        return d.align == Align::Flat && s.kind == SinkKind::Store && s.compaction < 0 &&
               !pc_.is_packed(s.buffer) && pc_.num_elems(type(s.value)) == t.domain.rows;
      case SinkKind::RunningSum:
        return d.align == Align::Flat && kernel_domain(s) == t.domain && !stands_alone(s.kind);
      case SinkKind::Nonzero:
        return s.compaction == d.sink;
      case SinkKind::Store:
        return d.align == Align::Flat && t.compaction < 0 && !t.is_row_level &&
               !stands_alone(s.kind) &&
               (kernel_domain(s) == t.domain || can_join_rows(s, t.domain));
      default:
        return false;
    }
  }
  bool can_feed_rows(const Sink& t) const {
    const auto& op = cx_.op(t.op);
    return op.kind == OpKind::reduce && op.attrs.axis == 1;
  }
  bool can_run_in_rows(const Sink& s, const Domain& rows) const {
    if (s.kind == SinkKind::RowReduce) return s.domain == rows && can_feed_rows(s);
    return s.kind == SinkKind::Store && s.compaction < 0;
  }
  // A plain store over a vector may run in a kernel over its rows.
  bool can_join_rows(const Sink& s, const Domain& rows) const {
    return rows.kind == kir::GroupKind::Row && s.domain.kind == kir::GroupKind::Tile &&
           can_run_in_rows(s, rows) && is_flat_view(s.domain.extent, rows);
  }
  Domain kernel_domain(const Sink& s) const {
    return s.compaction >= 0 ? plan_.sinks[s.compaction].domain : s.domain;
  }

  // Level, on-chip dependences and domain of a sink whose deps are known.
  void place(int id) {
    std::vector<Dep> deps = plan_.sinks[id].deps;
    const bool alone = stands_alone(plan_.sinks[id].kind);
    int level = 0;
    std::optional<Domain> rows;
    for (auto& d : deps) {
      d.is_on_chip = !alone && !d.is_buffered && can_share_kernel(plan_.sinks[id], d);
      if (d.is_on_chip && plan_.sinks[d.sink].domain.kind == kir::GroupKind::Row) {
        if (rows && !(*rows == plan_.sinks[d.sink].domain)) d.is_on_chip = false;
        if (d.is_on_chip) rows = plan_.sinks[d.sink].domain;
      }
      level = std::max(level, plan_.sinks[d.sink].level + (d.is_on_chip ? 0 : 1));
    }
    settle(id, deps, level);
  }

  void settle(int id, std::vector<Dep>& deps, int level) {
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& d : deps) {
        if (d.is_on_chip && plan_.sinks[d.sink].level < level) {
          d.is_on_chip = false;
          changed = true;
        }
        if (d.is_on_chip || d.is_buffered) {
          if (d.is_buffered) level = std::max(level, plan_.sinks[d.sink].level + 1);
          continue;
        }
        const int before = d.sink;
        d.sink = stored_form(d.sink);
        changed |= d.sink != before;
        level = std::max(level, plan_.sinks[d.sink].level + 1);
      }
    }
    auto& s = plan_.sinks[id];
    s.level = level;
    s.deps = deps;
    s.phase = 0;
    s.is_row_level = false;
    for (const auto& d : deps) {
      if (!d.is_on_chip) continue;
      const auto& t = plan_.sinks[d.sink];
      s.phase = std::max(s.phase, t.phase + (t.kind == SinkKind::Store ? 0 : 1));
      if (t.domain.kind != kir::GroupKind::Row) continue;
      s.is_row_level |= t.kind == SinkKind::RowReduce && d.align == Align::Flat;
      s.domain = t.domain;
    }
  }

  // --- kernels
  // --------------------------------------------------------------------------------------------------------
  void group() {
    for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
      const auto& s = plan_.sinks[id];
      if (s.kind == SinkKind::NonFinite) continue;
      KernelPlan* kernel = stands_alone(s.kind) ? nullptr : find_kernel(s.level, kernel_domain(s));
      if (kernel == nullptr) {
        plan_.kernels.push_back({kernel_domain(s), s.level, {}});
        kernel = &plan_.kernels.back();
      }
      kernel->sinks.push_back(id);
    }
    join_rows();
    // A sink never needs one behind it at its own level, so the order of first sinks is a stable
    // tie-break.
    std::sort(plan_.kernels.begin(), plan_.kernels.end(),
              [](const KernelPlan& a, const KernelPlan& b) {
                return std::pair(a.level, a.sinks.front()) < std::pair(b.level, b.sinks.front());
              });
    for (int id = 0; id < static_cast<int>(plan_.sinks.size()); ++id) {
      if (plan_.sinks[id].kind == SinkKind::NonFinite) host_nonfinite(id);
    }
  }

  KernelPlan* find_kernel(int level, const Domain& domain) {
    for (auto& k : plan_.kernels) {
      if (k.level == level && k.domain == domain && !stands_alone(plan_.sinks[k.sinks[0]].kind))
        return &k;
    }
    return nullptr;
  }

  // Are the elements of a vector of `extent` elements the first ones of the rows, in row-major
  // order?
  bool is_flat_view(HostExprId extent, const Domain& rows) const {
    if (pc_.exprs().mul(rows.rows, rows.cols) == extent) return true;
    for (const auto& op : cx_.fn.ops) {
      if (op.kind != OpKind::chunk) continue;
      const auto& t = type(op.results[0]);
      if (t.dims[0] == rows.rows && t.dims[1] == rows.cols &&
          type(op.operands[0]).dims[0] == extent)
        return true;
    }
    return false;
  }

  // Plain stores over a vector join a kernel over its rows at the same level: one sweep instead of
  // two.
  void join_rows() {
    for (auto& rows : plan_.kernels) {
      if (rows.domain.kind != kir::GroupKind::Row) continue;
      for (auto& tiles : plan_.kernels) {
        if (tiles.domain.kind != kir::GroupKind::Tile || tiles.level != rows.level ||
            tiles.sinks.empty())
          continue;
        const bool only_stores = std::all_of(tiles.sinks.begin(), tiles.sinks.end(), [&](int id) {
          return plan_.sinks[id].kind == SinkKind::Store && plan_.sinks[id].compaction < 0;
        });
        if (!only_stores || !is_flat_view(tiles.domain.extent, rows.domain)) continue;
        for (const int id : tiles.sinks) plan_.sinks[id].domain = rows.domain;
        rows.sinks.insert(rows.sinks.end(), tiles.sinks.begin(), tiles.sinks.end());
        tiles.sinks.clear();
      }
    }
    std::erase_if(plan_.kernels, [](const KernelPlan& k) { return k.sinks.empty(); });
  }

  // The non-finite check rides on the first kernel that sweeps the gradient.
  void host_nonfinite(int id) {
    auto& s = plan_.sinks[id];
    const auto extent = s.domain.extent;
    for (auto& k : plan_.kernels) {
      const bool fits =
          k.domain == s.domain || (k.domain.kind == kir::GroupKind::Row &&
                                   is_flat_view(extent, k.domain) && can_feed_rows_kernel(k));
      if (!fits) continue;
      s.domain = k.domain;
      s.level = k.level;
      k.sinks.push_back(id);
      return;
    }
    plan_.kernels.insert(plan_.kernels.begin(), {s.domain, 0, {id}});
  }
  bool can_feed_rows_kernel(const KernelPlan& k) const {
    return std::none_of(k.sinks.begin(), k.sinks.end(), [&](int id) {
      return plan_.sinks[id].kind == SinkKind::RowReduce && !can_feed_rows(plan_.sinks[id]);
    });
  }

  std::string name(ValueId v, const char* otherwise) const {
    const auto& n = cx_.value(v).name;
    return n.empty() ? otherwise : n;
  }

  FunctionContext& cx_;
  ProgramContext& pc_;
  ir::RegionId region_;
  RegionPlan plan_;
  std::unordered_map<std::uint32_t, std::vector<StoreRequest>> requests_;
  std::set<std::pair<std::uint32_t, rt::BufferIndex>> satisfied_;
  std::set<std::uint32_t> live_;
  std::unordered_map<std::uint32_t, std::size_t> order_;
  std::set<int>
      retired_;  // stores whose buffer a scatter changed: later sinks compute the value again
  std::unordered_map<int, std::vector<std::pair<ValueId, Align>>> pulled_;
};

}  // namespace

bool is_barrier(OpKind kind) {
  switch (kind) {
    case OpKind::reduce:
    case OpKind::scan:
    case OpKind::nonzero:
    case OpKind::scatter:
    case OpKind::scatter_add:
    case OpKind::histogram:
    case OpKind::argsort:
    case OpKind::matmul:
    case OpKind::check:
    case OpKind::check_index:
    case OpKind::check_unique:
    case OpKind::check_host:
    case OpKind::if_else:
    case OpKind::for_loop:
    case OpKind::while_loop:
    case OpKind::top_k:
    case OpKind::kth_largest:
    case OpKind::orthonormalize:
    case OpKind::hadamard:
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::all_to_all:
    case OpKind::reduce_scatter:
    case OpKind::broadcast:
      return true;
    default:
      return false;
  }
}

RegionPlan plan_region(FunctionContext& cx, ir::RegionId region,
                       const std::vector<StoreRequest>& requests, bool flag_nonfinite) {
  auto all = requests;
  for (int round = 0; round < kMaxChosenStores; ++round) {
    const auto saved_buffers = cx.program.out.buffers.size();
    const auto saved_places = cx.in_buffer;
    auto plan = Planner(cx, region, all).run(flag_nonfinite);
    const auto chosen =
        round + 1 < kMaxChosenStores ? choose_store(cx, region, plan) : std::nullopt;
    if (!chosen) return plan;
    cx.program.out.buffers.resize(saved_buffers);
    cx.in_buffer = saved_places;
    const auto& value = cx.value(*chosen);
    const auto buffer =
        cx.program.add_workspace(value.name.empty() ? "shared" : value.name, value.type.dtype,
                                 cx.program.num_elems(value.type));
    all.push_back({*chosen, buffer, false});
  }
  CINCH_BUG("unreachable: the last round returns");
}

}  // namespace cinch::codegen
