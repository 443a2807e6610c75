// Each kind of sink as kernel instructions.
#include "codegen/kir/verifier.h"
#include "compiler/kernelize/kernel_emitter.h"
#include "runtime/core/check.h"

namespace cinch::codegen {

using ir::OpKind;
using kir::ComputeType;
using KirValue = kir::ValueId;

void KernelEmitter::declare_store(const Sink& s) {
  const auto made = pc_.version_of(cx_.fn, held_value(cx_, s));
  if (s.adds_to_buffer) b_.reads(s.buffer, kir::given_version(pc_.buffer(s.buffer)));
  if (s.zero_first) b_.reads(s.buffer, kir::kZeros);
  b_.writes(s.buffer, s.adds_to_buffer ? pc_.new_version() : made);
}

void KernelEmitter::emit_store(const Sink& s) {
  const Place place = domain_place(type(s.value));
  const KirValue limit = place.flat ? place.flat->limit : KirValue();
  auto value = pull(s.value, place);
  declare_store(s);
  if (s.adds_to_buffer) value = b_.add(b_.load_linear(s.buffer, b_.group_base(), limit), value);
  b_.store_linear(s.buffer, value, b_.group_base(), limit);
}

void KernelEmitter::emit_row_store(const Sink& s) {
  auto value = pull(s.value, uniform_place(b_.group_index(), true));
  declare_store(s);
  if (s.adds_to_buffer) value = b_.add(b_.load_at(s.buffer, b_.group_index()), value);
  b_.store_at(s.buffer, b_.group_index(), value);
}

void KernelEmitter::emit_compact_store(const Sink& s) {
  place_nonzero(s.compaction);
  const auto& p = positions_.at(s.compaction);
  const auto rank = p.rank, pred = p.pred;
  declare_store(s);
  const Place selected{Index{Index::Kind::Varying, rank, {}, pred, false}, {}, {}};
  b_.store_at(s.buffer, rank, pull(s.value, selected), pred);
}

// --- reductions ----------------------------------------------------------------------------------

void KernelEmitter::emit_reduce(int id, const Place& place) {
  const auto& op = cx_.op(plan_.sinks[id].op);
  const std::size_t num = op.results.size();
  std::vector<KirValue> values;
  values.reserve(num);
  for (std::size_t i = 0; i < num; ++i) values.push_back(pull(op.operands[i], place));
  const auto mask =
      op.operands.size() > 2 * num
          ? pull(op.operands[2 * num],
                 broadcast_place(place, type(op.operands[2 * num]), type(op.operands[0])))
          : KirValue();
  reduced_[id] = b_.reduce(values, make_combiner(op), mask);
}

void KernelEmitter::store_partials(int id) {
  const auto tiles =
      pc_.exprs().ceil_div(bound(kp_.domain.extent), pc_.exprs().const_int(kir::kTileElems));
  for (const auto value : reduced_[id]) {
    const auto buffer = pc_.add_workspace("partial", kir::dtype_of(b_.type(value)), tiles);
    partials_[id].push_back({buffer, pc_.new_version()});
    b_.writes(buffer, partials_[id].back().version);
    b_.store_at(buffer, b_.group_index(), value);
  }
}

void KernelEmitter::emit_row_reduce(int id) {
  const auto& op = cx_.op(plan_.sinks[id].op);
  if (op.kind == OpKind::matmul) {
    const auto cols = host_value(type(op.operands[1]).dims[1]);
    const auto part = [&](ScalarOp scalar_op) {
      return Index{Index::Kind::Uniform,
                   b_.in_group([&] { return b_.scalar(scalar_op, {b_.group_index(), cols}); }),
                   {},
                   {},
                   true};
    };
    const auto a = pull(op.operands[0], {std::nullopt, part(ScalarOp::div), Index{}});
    const auto c = pull(op.operands[1], {std::nullopt, Index{}, part(ScalarOp::mod)});
    reduced_[id] = b_.reduce({b_.mul(a, c)}, b_.combiner(ScalarOp::add));
    return;
  }
  Place place = domain_place();
  if (op.attrs.axis == 0) std::swap(place.row, place.col), place.flat.reset();
  emit_reduce(id, place);
}

void KernelEmitter::keep_row_results(int id) {
  const auto& op = cx_.op(plan_.sinks[id].op);
  if (op.kind == OpKind::matmul) {
    reduced_[id] = {b_.add(b_.zero(b_.type(reduced_[id][0])), reduced_[id][0])};
  } else {
    reduced_[id] = with_init(op, reduced_[id]);
  }
}

// --- rows on chip --------------------------------------------------------------------------------

void KernelEmitter::emit_row_transform(int id) {
  const auto& op = cx_.op(plan_.sinks[id].op);
  const auto value = pull(op.operands[0], domain_place());
  const auto local = b_.add_local(b_.type(value));
  if (op.kind == OpKind::matmul) b_.add_local(b_.type(value));
  b_.local_store(local, value);
  rows_on_chip_[id] = local;
}

void KernelEmitter::finish_row_transform(int id) {
  auto& local = rows_on_chip_.at(id);
  const auto& op = cx_.op(plan_.sinks[id].op);
  if (op.kind == OpKind::butterflies) return b_.local_butterflies(local);
  if (op.kind == OpKind::mark_largest) return b_.local_largest(local, pull_scalar(op.operands[1]));
  const auto matrix = *buffer_of(op.operands[1]);
  b_.reads(matrix, pc_.version_of(cx_.fn, op.operands[1]));
  b_.local_product(local++, matrix);
}

void KernelEmitter::emit_row_places(const Sink& s) {
  const auto& op = cx_.op(s.op);
  const auto mark = pull(op.operands[0], domain_place());
  const auto is_marked = b_.scalar(ScalarOp::ne, {mark, b_.const_u32(0)});
  const auto k = host_value(op.attrs.size);
  const auto first =
      b_.in_group([&] { return b_.convert(b_.mul(b_.group_index(), k), ComputeType::U32); });
  const auto place = b_.add(first, b_.running_sum(is_marked, true).value);
  b_.writes(s.buffer, pc_.version_of(cx_.fn, op.results[0]));
  b_.store_at(s.buffer, place, b_.column(), is_marked);
}

// --- positions -----------------------------------------------------------------------------------

void KernelEmitter::change_zeros(rt::BufferIndex buffer, kir::Version made) {
  before_.push_back({.kind = rt::StepKind::Zero, .index = buffer});
  b_.reads(buffer, kir::kZeros);
  b_.writes(buffer, made);
}

// Then no group is before another: running sums begin with zero, and no section has to add up what
// groups have.
bool KernelEmitter::has_single_group() const {
  const HostExprPool& exprs = pc_.exprs();
  const HostExprId extent = kp_.domain.extent;
  return exprs.is_const(extent) && exprs.const_value(extent).as_int() <= kir::kTileElems;
}

std::optional<rt::BufferIndex> KernelEmitter::look_back_state() {
  if (has_single_group()) return std::nullopt;
  const auto state = kir::add_look_back_state(pc_.out, "positions", b_.kernel().info.num_groups);
  change_zeros(state, pc_.new_version());
  return state;
}

// What the groups before this one add up to.
kir::ValueId KernelEmitter::sum_before(const Position& p) {
  return p.state ? b_.look_back(p.total, *p.state) : b_.zero(b_.type(p.total));
}

void KernelEmitter::emit_running_sum(int id) {
  const auto& op = cx_.op(plan_.sinks[id].op);
  const auto value = pull(op.operands[0], domain_place());
  const auto t = b_.type(value);
  const auto bits = b_.bitcast(value, kir::dtype_of(t), kir::dtype_of(unsigned_of(t)));
  auto& p = positions_[id];
  p.total = b_.running_sum(bits, true).total;
  p.state = look_back_state();
}

void KernelEmitter::emit_nonzero(int id) {
  const auto& op = cx_.op(plan_.sinks[id].op);
  const auto mask = pull(op.operands[0], domain_place());
  auto& p = positions_[id];
  p.total =
      b_.reduce({b_.select(mask, b_.const_u32(1), b_.const_u32(0))}, b_.combiner(ScalarOp::add))[0];
  p.state = look_back_state();
  change_zeros(plan_.sinks[id].buffer,
               pc_.count_version(cx_.fn, cx_.op(plan_.sinks[id].op).attrs.index));
}

// Right after the look-back (group level) the last group stores the count. In an element section
// this computes an element's destination.
void KernelEmitter::place_nonzero(int id) {
  auto& p = positions_.at(id);
  const auto& op = cx_.op(plan_.sinks[id].op);
  const auto limit = op.attrs.has_limit ? host_value(op.attrs.size) : KirValue();
  if (b_.current() == kir::SectionKind::Group) {
    const auto groups =
        host_value(pc_.exprs().ceil_div(kp_.domain.extent, pc_.exprs().const_int(kir::kTileElems)));
    const auto is_last = b_.eq(b_.add(b_.group_index(), b_.const_i64(1)), groups);
    auto count = b_.add(p.prefix, p.total);
    if (limit.is_valid())
      count = b_.convert(b_.min(b_.convert(count, ComputeType::I64), limit), kI64, kU32);
    b_.store_at(plan_.sinks[id].buffer, b_.const_i64(0), count, is_last);
    return;
  }
  if (p.rank_phase == phase_) return;
  const int saved = current_;
  current_ = id;
  const auto mask = pull(op.operands[0], domain_place());
  const auto rank = b_.running_sum(mask, true).value;
  p.rank = b_.add(p.prefix, rank);
  p.pred = mask;
  if (limit.is_valid()) {
    const auto u32 = b_.in_kernel([&] { return b_.convert(limit, kI64, kU32); });
    p.pred = b_.logical_and(mask, b_.lt(p.rank, u32));
  }
  p.rank_phase = phase_;
  current_ = saved;
}

// --- stores at indices ---------------------------------------------------------------------------

// How many of the result's elements the sink's buffer holds. The held value may be longer: `chunk`
// appends zeros to what a slice before it has left.
HostExprId KernelEmitter::held_elems(const Sink& s) {
  const auto result = cx_.op(s.op).results[0];
  HostExprId least = pc_.num_elems(type(result));
  for (auto v = held_value(cx_, s); v != result; v = cx_.def(v).operands[0]) {
    const HostExprId num_elems = pc_.num_elems(type(v));
    if (num_elems != least) least = pc_.exprs().min(num_elems, least);
  }
  return least;
}

// The destination of the current value: on a matrix, an index names a row of values.
Index KernelEmitter::scatter_index(const Sink& s) {
  const auto& op = cx_.op(s.op);
  const auto& to = type(op.results[0]);
  const auto& values = type(op.operands[2]);
  if (to.rank == 1) {
    return index_at(op.operands[1], domain_place(), held_elems(s));
  }
  Place place;
  if (values.rank == 1) {
    place = {std::nullopt, index_at(op.operands[1], domain_place(), to.dims[0]),
             flat_of(domain_place(), values)};
  } else {
    const auto [row, col] = row_col_of(domain_place(), values, {});
    place = {std::nullopt, index_at(op.operands[1], {row, {}, {}}, to.dims[0]), col};
  }
  Index at = flat_of(place, to);
  if (at.kind == Index::Kind::Linear) at.value = index_u32(at);
  return at;
}

// An element of the scatter's result as what the sink's buffer holds, which one operator after
// another makes of the result.
KirValue KernelEmitter::as_held(const Sink& s, KirValue element, ir::ValueId held) {
  if (held == cx_.op(s.op).results[0]) return element;
  const ir::Op& made = cx_.def(held);
  element = as_held(s, element, made.operands[0]);
  if (made.kind != OpKind::convert) return element;
  return b_.convert(element, type(made.operands[0]).dtype, type(held).dtype);
}

void KernelEmitter::emit_scatter(const Sink& s) {
  const auto& op = cx_.op(s.op);
  const Index at = scatter_index(s);
  auto value = as_held(s, pull(op.operands[2], domain_place()), held_value(cx_, s));
  const bool has_base = !s.zero_first && !s.adds_to_buffer;
  if (has_base) b_.reads(s.buffer, pc_.version_of(cx_.fn, op.operands[0]));
  declare_store(s);
  if (s.adds_to_buffer) value = b_.add(b_.load_at(s.buffer, at.value, at.pred), value);
  b_.store_at(s.buffer, at.value, value, at.pred);
  if (s.zero_first) before_.push_back({.kind = rt::StepKind::Zero, .index = s.buffer});
}

void KernelEmitter::emit_scatter_add(const Sink& s) {
  const auto& op = cx_.op(s.op);
  const Index at = index_at(op.operands[0], domain_place(), held_elems(s));
  const auto value = pull(op.operands[1], domain_place());
  if (op.kind == OpKind::scatter_reduce) {
    b_.max_at(s.buffer, at.value, value, at.pred);
  } else {
    b_.add_at(s.buffer, at.value, value, at.pred);
  }
  change_zeros(s.buffer, pc_.version_of(cx_.fn, held_value(cx_, s)));
}

void KernelEmitter::emit_histogram(const Sink& s) {
  const auto& op = cx_.op(s.op);
  const auto bins = pc_.const_int(type(op.results[0]).dims[0]);
  if (!bins) CINCH_LIMITATION("a histogram whose number of bins is not a constant");
  const auto value = pull(op.operands[0], domain_place());
  const auto bin = b_.convert(value, type(op.operands[0]).dtype, kU32);
  const auto mask = op.operands.size() > 1 ? pull(op.operands[1], domain_place()) : KirValue();
  b_.hist_add(s.buffer, bin, static_cast<std::uint64_t>(*bins), mask);
  change_zeros(s.buffer, pc_.version_of(cx_.fn, op.results[0]));
}

// A bool that must hold, or an index that must lie below a size.
void KernelEmitter::emit_check(const Sink& s, KirValue value) {
  const auto& op = cx_.op(s.op);
  if (s.kind == SinkKind::Check) return b_.fail_if(b_.logical_not(value), op.attrs.text);
  const auto wide = b_.convert(value, type(op.operands[0]).dtype, kI64);
  const auto is_low = b_.lt(wide, b_.const_i64(0));
  const auto is_high = b_.scalar(ScalarOp::ge, {wide, host_value(op.attrs.size)});
  b_.fail_if(b_.scalar(ScalarOp::bit_or, {is_low, is_high}), op.attrs.text);
}

void KernelEmitter::emit_nonfinite(const Sink&) {
  const auto base = b_.group_base();
  const auto limit = row_limit(pc_.exprs().n());
  for (const auto& [key, value] : element_memo_) {
    // The gradient is usually loaded already.
    const auto& op = cx_.def(ir::ValueId(std::size_t{key.first}));
    if (op.kind == OpKind::gradient && key.second.flat &&
        key.second.flat->kind == Index::Kind::Linear && key.second.flat->value == base &&
        key.second.flat->limit == limit) {
      return b_.flag_nonfinite(value);
    }
  }
  b_.reads(pc_.gradient(), kir::given_version(pc_.buffer(pc_.gradient())));
  const auto g = b_.load_linear(pc_.gradient(), base, limit);
  b_.flag_nonfinite(g);
}

}  // namespace cinch::codegen
