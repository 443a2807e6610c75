// Planner: the sinks of each kind of operator, and of stores.

#include "codegen/kir/compute_type.h"
#include "compiler/kernelize/walk_pulls.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {

using ir::OpKind;
using ir::ValueId;

void Planner::add_sink_of(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  switch (op.kind) {
    case OpKind::reduce:
      return op.attrs.axis == ir::kAll ? add_swept(op_id, SinkKind::Reduce) : add_row_reduce(op_id);
    case OpKind::matmul: {
      // A product of rows on chip with a square matrix of a constant size?
      const auto& matrix = type(op.operands[1]);
      const auto size = pc_.const_int(matrix.dims[0]);
      const bool is_row_product = is_float(matrix.dtype) && size && *size >= 1 &&
                                  *size <= kir::kTileElems && pc_.is_const(matrix.dims[1], *size);
      return is_row_product ? add_row_transform(op_id) : add_row_reduce(op_id);
    }
    case OpKind::butterflies:
    case OpKind::mark_largest:
      return add_row_transform(op_id);
    case OpKind::list_marked: {
      const auto& marks = type(op.operands[0]);
      Sink s{.kind = SinkKind::RowPlaces, .op = op_id, .domain = row(marks.dims[0], marks.dims[1])};
      plan_.sink_of_op[op_id.index()] = add(std::move(s), {{op.operands[0], Align::Flat}});
      return;
    }
    case OpKind::scan:
      return add_scan(op_id);
    case OpKind::nonzero:
      return add_swept(op_id, SinkKind::Nonzero);
    case OpKind::scatter:
      return add_scatter(op_id);
    case OpKind::scatter_add:
    case OpKind::scatter_reduce:
      return add_scatter_add(op_id);
    case OpKind::histogram:
      return add_swept(op_id, SinkKind::Histogram);
    case OpKind::argsort:
      return add_behind_store(op.operands[0], name(op.operands[0], "keys"),
                              {.kind = SinkKind::Argsort, .op = op_id});
    case OpKind::check:
      return add_swept(op_id, SinkKind::Check);
    case OpKind::check_index:
      return add_swept(op_id, SinkKind::CheckIndex);
    case OpKind::check_host:
      plan_.sink_of_op[op_id.index()] = add({.kind = SinkKind::CheckHost, .op = op_id}, {});
      return;
    case OpKind::check_unique:
      plan_.sink_of_op[op_id.index()] =
          add({.kind = SinkKind::CheckUnique, .op = op_id}, operands(op, Align::None));
      return;
    case OpKind::if_else:
    case OpKind::for_loop:
    case OpKind::while_loop:
      return add_control(op_id);
    case OpKind::all_reduce:
    case OpKind::all_gather:
    case OpKind::all_to_all:
    case OpKind::reduce_scatter:
    case OpKind::broadcast:
    case OpKind::broadcast_from:
    case OpKind::send_receive:
    case OpKind::all_gather_counted:
    case OpKind::send_receive_counted:
      return add_collective(op_id);
    case OpKind::keep:
      return add_behind_store(op.operands[0], name(op.results[0], "kept"),
                              {.kind = SinkKind::Kept, .op = op_id});
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

void Planner::add_behind_store(ValueId v, std::string room, Sink sink) {
  const auto op_id = sink.op;
  sink.source = add_store({v, rt::kNoIndex, false}, std::move(room));
  sink.edges.push_back({sink.source});
  plan_.sink_of_op[op_id.index()] = add(std::move(sink), {});
}

// The host reads scalars before the ranks meet.
void Planner::add_collective(ir::OpId op_id) {
  const auto op = cx_.op(op_id);
  Sink sink{.kind = SinkKind::Collective, .op = op_id};
  for (std::size_t i = 1; i < op.operands.size(); ++i) {
    const int store = add_store({op.operands[i], rt::kNoIndex, false}, "scalar");
    sink.scalars.push_back(store);
    sink.edges.push_back({store});
  }
  add_behind_store(op.operands[0], name(op.operands[0], "sent"), std::move(sink));
}

// A sink over all elements of the op's first operand, in place.
void Planner::add_swept(ir::OpId op_id, SinkKind kind) {
  const auto& op = cx_.op(op_id);
  Sink s{.kind = kind, .op = op_id, .domain = domain_of(type(op.operands[0]))};
  if (kind == SinkKind::Nonzero) s.buffer = pc_.count(op.attrs.index);
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

void Planner::add_row_transform(ir::OpId op_id) {
  const auto op = cx_.op(op_id);
  const auto& t = type(op.operands[0]);
  std::vector<std::pair<ValueId, Align>> pulled = {{op.operands[0], Align::Flat}};
  if (op.kind == OpKind::matmul) {
    // The matrix is read from memory or from a table.
    const auto matrix = op.operands[1];
    const bool lies_in_memory = cx_.def(matrix).kind == OpKind::const_array ||
                                cx_.buffer_of(matrix) || plan_.lies_in_memory(cx_, matrix);
    if (!lies_in_memory) add_store({matrix, rt::kNoIndex, false}, name(matrix, "matrix"));
    pulled.emplace_back(matrix, Align::None);
  }
  if (op.kind == OpKind::mark_largest) pulled.emplace_back(op.operands[1], Align::None);
  Sink s{.kind = SinkKind::RowTransform, .op = op_id, .domain = row(t.dims[0], t.dims[1])};
  plan_.sink_of_op[op_id.index()] = add(std::move(s), pulled);
}

void Planner::add_scan(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  const auto& t = type(op.operands[0]);
  const auto& combiner = cx_.fn.combiners[op.attrs.combiner.index()];
  const bool is_running_sum =
      combiner.op == ScalarOp::add && is_int(t.dtype) && op.results.size() == 1 && t.rank == 1;
  if (is_running_sum) return add_swept(op_id, SinkKind::RunningSum);
  plan_.sink_of_op[op_id.index()] =
      add({.kind = SinkKind::Scan, .op = op_id}, operands(op, Align::None));
}

void Planner::add_scatter_add(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  Sink s{.kind = SinkKind::ScatterAdd,
         .op = op_id,
         .domain = tile(pc_.num_elems(type(op.operands[0])))};
  const bool is_in_any_order =
      op.kind == OpKind::scatter_reduce || kir::adds_in_any_order(type(op.results[0]).dtype);
  if (is_in_any_order) s.kind = SinkKind::ScatterSum;
  make_where_asked(s);
  plan_.sink_of_op[op_id.index()] = add(std::move(s), operands(op, Align::Flat));
}

void Planner::add_control(ir::OpId op_id) {
  const auto& op = cx_.op(op_id);
  Sink s{.kind = SinkKind::Control, .op = op_id};
  for (const auto r : op.results) {
    // Branches store directly into the requested buffer; a loop reads its carried values while it
    // runs, so it cannot. Nor can branches that check, if the buffer stands behind checks.
    const rt::BufferIndex asked = whole_request(r);
    const bool is_direct =
        op.kind == OpKind::if_else && !(behind_checks_.contains(asked) && holds_check(s));
    s.results.push_back(is_direct ? asked : rt::kNoIndex);
  }
  std::vector<std::pair<ValueId, Align>> pulled;
  for_each_used_value(cx_.fn, op_id, [&](ValueId v) { pulled.emplace_back(v, Align::None); });
  plan_.sink_of_op[op_id.index()] = add(std::move(s), pulled);
}

bool Planner::wants_rows(ValueId v) const {
  std::vector<ValueId> work = {v};
  std::set<std::uint32_t> seen;
  while (!work.empty()) {
    const auto value = work.back();
    work.pop_back();
    const auto& t = type(value);
    const bool is_made =
        cx_.buffer_of(value) || plan_.sink_of_op.contains(cx_.value(value).def.index());
    if (t.rank != 2 || is_made) continue;
    if (!seen.insert(value.index()).second) continue;
    const auto& op = cx_.def(value);
    switch (op.kind) {
      case OpKind::gather:
      case OpKind::transpose:
        return true;
      case OpKind::map:
      case OpKind::call_extern:
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

Domain Planner::store_domain(ValueId v, bool is_packed) const {
  const auto& t = type(v);
  if (is_packed) return tile(pc_.num_elems(t));
  const bool is_by_rows =
      t.rank == 2 && !pc_.const_int(t.dims[1]) && !pc_.is_const(t.dims[0], 1) && wants_rows(v);
  return is_by_rows ? row(t.dims[0], t.dims[1]) : domain_of(t);
}

int Planner::add_store(const StoreRequest& r, std::string room, bool is_read_later) {
  const bool packs = is_packed(r.buffer);
  // Positions and rows that are stored themselves exist only in the kernel that makes them.
  const bool is_own_result = plan_.sink_of_op.contains(cx_.value(r.value).def.index());
  int compaction = packs ? -1 : find_compaction(cx_, plan_, r.value);
  if (compaction >= 0 && !is_own_result && !pc_.steps.may_take()) compaction = -1;
  const int id = static_cast<int>(plan_.sinks.size());
  add({.kind = SinkKind::Store,
       .value = r.value,
       .buffer = r.buffer,
       .room = std::move(room),
       .adds_to_buffer = r.adds_to_buffer,
       .domain = store_domain(r.value, packs),
       .compaction = compaction},
      {{r.value, compaction >= 0 ? Align::Selected : Align::Flat}});
  if (compaction >= 0 && plan_.sinks[id].level != plan_.sinks[compaction].level) {
    // The stored value is ready later than the selection: stores by position instead.
    plan_.sinks[id].compaction = -1;
    plan_.sinks[id].edges.clear();
    plan_.sinks[id].domain = store_domain(r.value, packs);
    collect(id, {{r.value, Align::Flat}});
    place(id);
  }
  if (is_read_later && !r.adds_to_buffer && !packs) plan_.stored.try_emplace(r.value.index(), id);
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
