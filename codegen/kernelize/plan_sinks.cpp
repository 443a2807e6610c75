// Planner: the sinks of each kind of operator, and of stores.
#include <algorithm>

#include "codegen/kernelize/planner.h"
#include "codegen/kernelize/walk_pulls.h"
#include "codegen/kir/builder.h"
#include "codegen/kir/structure.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using ir::OpKind;
using ir::ValueId;

void Planner::add_barrier(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  switch (op.kind) {
    case OpKind::reduce:
      return op.attrs.axis == ir::kAll ? add_reduce(op_id) : add_row_reduce(op_id);
    case OpKind::matmul:
      return is_row_product(op) ? add_row_transform(op_id) : add_row_reduce(op_id);
    case OpKind::butterflies:
      return add_row_transform(op_id);
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
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::all_to_all:
    case OpKind::reduce_scatter:
    case OpKind::broadcast:
      return add_collective(op_id);
    case OpKind::keep:
      return add_kept(op_id);
    default:
      CINCH_LIMITATION("no kernel yet for " + std::string(ir::op_info(op.kind).name));
  }
}

std::vector<std::pair<ValueId, Align>> Planner::operands(const ir::Op& op, Align align) const {
  std::vector<std::pair<ValueId, Align>> out;
  out.reserve(op.operands.size());
  for (const auto v : op.operands) out.emplace_back(v, type(v).rank == 0 ? Align::None : align);
  return out;
}

rt::BufferIndex Planner::add_room(ValueId v, const char* otherwise) {
  return pc_.add_workspace(name(v, otherwise), type(v).dtype, pc_.num_elems(type(v)));
}

void Planner::add_behind_store(ValueId v, rt::BufferIndex buffer, Sink sink) {
  const auto op_id = sink.op;
  const int store = add_store({v, buffer, false});
  const int id = add(std::move(sink), {});
  raise_level(id, plan_.sinks[store].level + 1);
  plan_.sink_of_op[op_id.index()] = id;
}

void Planner::add_reduce(ir::OpId op_id) {
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

void Planner::add_row_reduce(ir::OpId op_id) {
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

bool Planner::is_row_product(const ir::Op& op) const {
  const auto& matrix = type(op.operands[1]);
  if (!is_float(matrix.dtype)) return false;
  const auto size = pc_.const_int(matrix.dims[0]);
  return size && *size >= 1 && *size <= kir::kTileElems && pc_.is_const(matrix.dims[1], *size);
}

rt::BufferIndex Planner::stored_matrix(ValueId v) {
  if (cx_.def(v).kind == OpKind::const_array) return rt::kNoIndex;
  const auto in_buffer = cx_.in_buffer.find(v.index());
  if (in_buffer != cx_.in_buffer.end()) return in_buffer->second;
  const auto stored = plan_.stored.find(v.index());
  if (stored != plan_.stored.end()) return plan_.sinks[stored->second].buffer;
  const auto buffer = add_room(v, "matrix");
  add_store({v, buffer, false});
  return buffer;
}

void Planner::add_row_transform(ir::OpId op_id) {
  const auto op = cx_.op(op_id);
  const auto& t = type(op.operands[0]);
  Sink s{.kind = SinkKind::RowTransform, .op = op_id, .domain = row(t.dims[0], t.dims[1])};
  std::vector<std::pair<ValueId, Align>> pulled = {{op.operands[0], Align::Flat}};
  if (op.kind == OpKind::matmul) {
    s.buffer = stored_matrix(op.operands[1]);
    pulled.emplace_back(op.operands[1], Align::None);
  }
  plan_.sink_of_op[op_id.index()] = add(std::move(s), pulled);
}

void Planner::add_scan(ir::OpId op_id) {
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
      s.results.push_back(add_room(r, "scanned"));
      cx_.in_buffer[r.index()] = s.results.back();
    }
  }
  const auto pulled = operands(op, is_running_sum ? Align::Flat : Align::None);
  plan_.sink_of_op[op_id.index()] = add(std::move(s), pulled);
}

void Planner::add_nonzero(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  Sink s{
      .kind = SinkKind::Nonzero, .op = op_id, .domain = tile(pc_.num_elems(type(op.operands[0])))};
  s.buffer = pc_.count(op.attrs.index);
  if (op.results.size() > 1) cx_.in_buffer[op.results[1].index()] = s.buffer;
  plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
}

void Planner::add_scatter_add(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  const auto result = op.results[0];
  Sink s{.kind = SinkKind::ScatterAdd,
         .op = op_id,
         .zero_first = true,
         .domain = tile(pc_.num_elems(type(op.operands[0])))};
  const auto r = whole_request(result);
  s.buffer = r ? r->buffer : add_room(result, "added");
  satisfied_.insert({result.index(), s.buffer});
  if (kir::adds_in_any_order(pc_.buffer(s.buffer))) s.kind = SinkKind::ScatterSum;
  cx_.in_buffer[result.index()] = s.buffer;
  plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
}

void Planner::add_histogram(ir::OpId op_id) {
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

void Planner::add_argsort(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  const auto result = op.results[0], keys = op.operands[0];
  const auto stored = add_room(keys, "keys");
  const auto scratch = pc_.add_workspace("sort_scratch", kU32, pc_.num_elems(type(keys)));
  const auto order = add_room(result, "order");
  cx_.in_buffer[result.index()] = order;
  add_behind_store(
      keys, stored,
      {.kind = SinkKind::Argsort, .op = op_id, .buffer = order, .results = {stored, scratch}});
}

void Planner::add_check(ir::OpId op_id, SinkKind kind) {
  const auto& op = cx_.op(op_id);
  Sink s{.kind = kind, .op = op_id, .domain = domain_of(type(op.operands[0]))};
  plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
}

void Planner::add_check_unique(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  Sink s{.kind = SinkKind::CheckUnique, .op = op_id};
  s.buffer = pc_.add_workspace("uses", kU32, op.attrs.size);
  plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::None));
}

void Planner::add_check_host(ir::OpId op_id) {
  plan_.sink_of_op[op_id.index()] = add(Sink{.kind = SinkKind::CheckHost, .op = op_id}, {});
}

void Planner::add_control(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  Sink s{.kind = SinkKind::Control, .op = op_id};
  for (const auto r : op.results) {
    // Branches store where the result is wanted; what a loop carries is read while it runs.
    const auto request = op.kind == OpKind::if_else ? whole_request(r) : std::nullopt;
    s.results.push_back(request ? request->buffer : add_room(r, "carried"));
    satisfied_.insert({r.index(), s.results.back()});
    cx_.in_buffer[r.index()] = s.results.back();
  }
  std::vector<std::pair<ValueId, Align>> pulled;
  for_each_used_value(cx_.fn, op_id, [&](ValueId v) { pulled.emplace_back(v, Align::None); });
  plan_.sink_of_op[op_id.index()] = add(std::move(s), pulled);
}

void Planner::add_collective(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  const auto sent = add_room(op.operands[0], "sent");
  const auto received = add_room(op.results[0], "received");
  cx_.in_buffer[op.results[0].index()] = received;
  add_behind_store(
      op.operands[0], sent,
      {.kind = SinkKind::Collective, .op = op_id, .buffer = received, .results = {sent, received}});
}

void Planner::add_kept(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  const auto kept = add_room(op.results[0], "kept");
  cx_.in_buffer[op.results[0].index()] = kept;
  add_behind_store(op.operands[0], kept, {.kind = SinkKind::Kept, .op = op_id, .results = {kept}});
}

bool Planner::wants_rows(ValueId v) const {
  std::vector<ValueId> work = {v};
  std::set<std::uint32_t> seen;
  while (!work.empty()) {
    const auto value = work.back();
    work.pop_back();
    const auto& t = type(value);
    if (t.rank != 2 || cx_.in_buffer.contains(value.index())) continue;
    if (!seen.insert(value.index()).second) continue;
    const auto& op = cx_.def(value);
    switch (op.kind) {
      case OpKind::gather:
      case OpKind::transpose:
        return true;
      case OpKind::map:
      case OpKind::convert:
      case OpKind::fill:
        for (const auto operand : op.operands) {
          const auto& from = type(operand);
          if (from.rank != 2) continue;
          if (!(from.dims[0] == t.dims[0] && from.dims[1] == t.dims[1])) return true;
          work.push_back(operand);
        }
        break;
      default:
        break;
    }
  }
  return false;
}

Domain Planner::store_domain(const StoreRequest& r) const {
  const auto& t = type(r.value);
  if (t.rank == 2 && !pc_.is_packed(r.buffer) && !pc_.const_int(t.dims[1]) &&
      !pc_.is_const(t.dims[0], 1) && wants_rows(r.value)) {
    return row(t.dims[0], t.dims[1]);
  }
  return pc_.is_packed(r.buffer) ? tile(pc_.num_elems(type(r.value))) : domain_of(type(r.value));
}

int Planner::add_store(const StoreRequest& r, bool is_read_later) {
  Sink s{.kind = SinkKind::Store,
         .value = r.value,
         .buffer = r.buffer,
         .adds_to_buffer = r.adds_to_buffer,
         .domain = store_domain(r)};
  s.compaction = pc_.is_packed(r.buffer) ? -1 : find_compaction(cx_, plan_, region_, r.value);
  const int compaction = s.compaction;
  int id = static_cast<int>(plan_.sinks.size());
  add(std::move(s), {{r.value, compaction >= 0 ? Align::Selected : Align::Flat}});
  if (compaction >= 0 && plan_.sinks[id].level != plan_.sinks[compaction].level) {
    // What is stored is ready later than the selection: store by position instead.
    plan_.sinks[id].compaction = -1;
    plan_.sinks[id].level = 0;
    plan_.sinks[id].domain = store_domain(r);
    collect(id, {{r.value, Align::Flat}});
    place(id);
  }
  if (is_read_later && !r.adds_to_buffer && !pc_.is_packed(r.buffer))
    plan_.stored.try_emplace(r.value.index(), id);
  return id;
}

void Planner::add_nonfinite() {
  for (const ir::Op& op : cx_.fn.ops) {
    if (op.kind != OpKind::gradient) continue;
    const auto g = op.results[0];
    add(Sink{.kind = SinkKind::NonFinite, .value = g, .domain = domain_of(type(g))}, {});
    return;
  }
  const ir::Type flat{kF32, 1, {pc_.exprs().n(), {}}};
  add(Sink{.kind = SinkKind::NonFinite, .domain = domain_of(flat)}, {});
}

}  // namespace cinch::codegen
