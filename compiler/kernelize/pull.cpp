// Pulling values: element-wise operators, leaves, draws, combiners.
#include <bit>

#include "compiler/kernelize/kernel_emitter.h"
#include "compiler/kernelize/walk_pulls.h"
#include "runtime/core/check.h"
#include "runtime/core/params.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch::codegen {

using ir::OpKind;
using kir::ComputeType;
using KirValue = kir::ValueId;

namespace {

kir::DrawSite draw_site(const ir::Op& op) {
  return {op.attrs.draw.site, op.attrs.draw.shared};
}

}  // namespace

bool KernelEmitter::is_element_level(const Place& place) const {
  const auto element = [](const std::optional<Index>& i) {
    return i && i->kind != Index::Kind::Uniform;
  };
  return element(place.flat) || element(place.row) || element(place.col);
}

bool KernelEmitter::is_group_level(const Place& place) const {
  const auto group = [](const std::optional<Index>& i) { return i && i->is_group_level; };
  return group(place.flat) || group(place.row) || group(place.col);
}

KirValue KernelEmitter::at_level_of(const Place& place, const std::function<KirValue()>& make) {
  if (is_element_level(place)) return make();
  return once_for(is_group_level(place), make);
}

KirValue KernelEmitter::pull(ir::ValueId v, const Place& place) {
  if (const auto it = region_values_.find(v.index()); it != region_values_.end()) return it->second;
  const Place at = type(v).rank == 0 ? uniform_place(b_.const_i64(0), false) : place;
  auto& memo = is_element_level(at) ? element_memo_ : uniform_memo_;
  if (const auto it = memo.find({v.index(), at}); it != memo.end()) return it->second;
  const auto result = pull_now(v, at);
  (is_element_level(at) ? element_memo_ : uniform_memo_)[{v.index(), at}] = result;
  return result;
}

KirValue KernelEmitter::pull_now(ir::ValueId v, const Place& place) {
  if (const auto on_chip = pull_on_chip(v, place)) return *on_chip;
  if (const auto buffer = buffer_of(v)) {
    b_.reads(*buffer, pc_.version_of(cx_.fn, v));
    return load(*buffer, type(v), place);
  }
  return pull_op(cx_.def(v), v, place);
}

// The buffer of a value for the current sink, if it has one.
std::optional<rt::BufferIndex> KernelEmitter::buffer_of(ir::ValueId v) const {
  if (const auto stored = plan_.stored.find(v.index());
      stored != plan_.stored.end() && current_ >= 0) {
    // Also if this sink recomputes what another stores: the other sink's inputs are available.
    const auto& s = plan_.sinks[stored->second];
    const int level = plan_.sinks[current_].level;
    if (s.level < level && (s.changed_by < 0 || level < plan_.sinks[s.changed_by].level))
      return s.buffer;
  }
  if (const auto buffer = cx_.buffer_of(v)) return buffer;
  const auto& op = cx_.def(v);
  switch (op.kind) {
    case OpKind::gradient:
      return pc_.gradient();
    case OpKind::state:
      return pc_.state(op.attrs.index);
    case OpKind::field:
      return pc_.field(op.attrs.index);
    case OpKind::const_array:
      return pc_.table(op.attrs.index);
    case OpKind::count_value:
      return pc_.count(op.attrs.index);
    default:
      return std::nullopt;
  }
}

std::optional<KirValue> KernelEmitter::pull_on_chip(ir::ValueId v, const Place& place) {
  const auto it = plan_.sink_of_op.find(cx_.value(v).def.index());
  if (it == plan_.sink_of_op.end()) return std::nullopt;
  const int id = it->second;
  if (const auto reduced = reduced_.find(id); reduced != reduced_.end() &&
                                              plan_.sinks[id].kind == SinkKind::RowReduce &&
                                              !is_element_level(place)) {
    return reduced->second[cx_.value(v).result_index];
  }
  if (plan_.sinks[id].kind == SinkKind::RowTransform) return pull_row_on_chip(id, place);
  const auto position = positions_.find(id);
  if (position == positions_.end() || plan_.sinks[id].phase >= phase_) return std::nullopt;
  if (plan_.sinks[id].kind == SinkKind::Nonzero) {
    // Positions of the selection are the elements themselves.
    if (cx_.value(v).result_index != 0 || !is_selected(place) ||
        plan_.sinks[current_].compaction != id)
      return std::nullopt;
    return b_.element();
  }
  if (!is_domain_place(place)) return std::nullopt;
  place_running_sum(id);
  return position->second.rank;
}

// Elements of the current row, after its transformation.
std::optional<KirValue> KernelEmitter::pull_row_on_chip(int id, const Place& place) {
  const auto local = rows_on_chip_.find(id);
  if (local == rows_on_chip_.end() || plan_.sinks[id].phase >= phase_) return std::nullopt;
  const bool is_in_row = place.row && place.row->kind == Index::Kind::Uniform &&
                         place.row->value == b_.group_index() && place.col &&
                         place.col->kind == Index::Kind::Linear && !place.col->value.is_valid();
  if (!is_domain_place(place) && !is_in_row) return std::nullopt;
  const auto value = b_.local_load(local->second);
  const auto limit = (place.flat ? place.flat : place.col).value_or(Index{}).limit;
  if (!limit.is_valid()) return value;
  const auto is_there = b_.lt(b_.convert(b_.column(), ComputeType::I64), limit);
  return b_.select(is_there, value, b_.zero(b_.type(value)));
}

KirValue KernelEmitter::load(rt::BufferIndex buffer, const ir::Type& t, const Place& place) {
  return at_level_of(place, [&] {
    if (t.rank == 0) return b_.load_at(buffer, b_.const_i64(0));
    const Index i = flat_of(place, t);
    if (i.kind == Index::Kind::Linear) return b_.load_linear(buffer, i.value, i.limit);
    return b_.load_at(buffer, i.value, i.pred);
  });
}

KirValue KernelEmitter::pull_op(const ir::Op& op, ir::ValueId v, const Place& place) {
  switch (op.kind) {
    case OpKind::const_scalar:
      return pull_const(op, v);
    case OpKind::param:
      return b_.param(op.attrs.index);
    case OpKind::host_size:
      return pull_host_size(op, v);
    case OpKind::iota:
      return at_level_of(place, [&] { return index_u32(flat_of(place, type(v))); });
    case OpKind::map:
    case OpKind::call_extern:
      return pull_map(op, place);
    case OpKind::fill:
    case OpKind::gather:
    case OpKind::slice:
    case OpKind::transpose:
    case OpKind::unchunk:
    case OpKind::reshape:
      return pull_operand(op, 0, place);
    case OpKind::convert:
    case OpKind::bitcast: {
      const auto x = pull_operand(op, 0, place);
      const DType from = type(op.operands[0]).dtype, to = type(v).dtype;
      return at_level_of(place, [&] {
        return op.kind == OpKind::convert ? b_.convert(x, from, to) : b_.bitcast(x, from, to);
      });
    }
    case OpKind::random:
    case OpKind::random_bits:
    case OpKind::normal:
    case OpKind::random_index:
    case OpKind::stochastic_round:
      return pull_draw(op, v, place);
    case OpKind::gather_along:
      return pull_gather_along(op, v, place);
    case OpKind::concat:
      return pull_concat(op, v, place);
    case OpKind::chunk:
      return pull_chunk(op, v, place);
    case OpKind::pack:
      return pull_pack(op, v, place);
    case OpKind::unpack:
      return pull_unpack(op, v, place);
    default:
      CINCH_BUG("not a pulled operator: " + std::string(ir::op_info(op.kind).name));
  }
}

KirValue KernelEmitter::pull_const(const ir::Op& op, ir::ValueId v) {
  const auto t = kir::compute_type(type(v).dtype);
  const auto bits = op.attrs.bits;
  if (t == ComputeType::F32) return b_.const_f32(static_cast<float>(std::bit_cast<double>(bits)));
  if (t == ComputeType::U32) return b_.const_u32(static_cast<std::uint32_t>(bits));
  if (t == ComputeType::I32) return b_.const_i32(static_cast<std::int32_t>(bits));
  return b_.constant(t, bits);
}

KirValue KernelEmitter::pull_host_size(const ir::Op& op, ir::ValueId v) {
  const auto value = host_value(op.attrs.size);
  return b_.in_kernel(
      [&] { return b_.convert(value, kir::dtype_of(b_.type(value)), type(v).dtype); });
}

// The integer type in whose bits an element-wise operator works: that of its result, or of its
// operand if the result counts the operand's bits.
std::optional<DType> KernelEmitter::integer_type(const ir::Op& op) const {
  const bool counts_bits = scalar_op_info(op.attrs.scalar_op).result == ScalarResult::U32;
  const DType dtype = type(counts_bits ? op.operands[0] : op.results[0]).dtype;
  return is_int(dtype) ? std::optional(dtype) : std::nullopt;
}

KirValue KernelEmitter::pull_map(const ir::Op& op, const Place& place) {
  std::vector<KirValue> operands;
  operands.reserve(op.operands.size());
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    operands.push_back(pull_operand(op, i, place));
  return at_level_of(place, [&] {
    return op.kind == OpKind::call_extern
               ? b_.call_extern(op.attrs.index, operands)
               : b_.scalar(op.attrs.scalar_op, operands, integer_type(op));
  });
}

KirValue KernelEmitter::pull_draw(const ir::Op& op, ir::ValueId v, const Place& place) {
  const bool rounds = op.kind == OpKind::stochastic_round;
  const std::size_t iteration_at = rounds ? 1 : 0;
  KirValue iteration, x;
  if (op.operands.size() > iteration_at) {
    const auto value = pull_scalar(op.operands[iteration_at]);
    iteration = b_.in_kernel([&] { return b_.convert(value, ComputeType::I64); });
  }
  if (rounds) x = pull_operand(op, 0, place);
  const auto size = op.kind == OpKind::random_index ? host_value(op.attrs.size) : KirValue();
  return at_level_of(place, [&] {
    const auto index = type(v).rank == 0 ? b_.const_u32(0) : index_u32(flat_of(place, type(v)));
    switch (op.kind) {
      case OpKind::random:
        return b_.random(draw_site(op), index, iteration);
      case OpKind::random_bits:
        return b_.random_bits(draw_site(op), index, iteration);
      case OpKind::normal:
        return b_.normal(draw_site(op), index, iteration);
      case OpKind::random_index:
        return b_.random_index(draw_site(op), index, size, iteration);
      default:
        return b_.stochastic_round(draw_site(op), x, index, iteration);
    }
  });
}

// --- host values ---------------------------------------------------------------------------------

KirValue KernelEmitter::host_value(HostExprId expr) {
  if (const auto it = host_memo_.find(expr.index()); it != host_memo_.end()) return it->second;
  const auto value = b_.in_kernel([&] { return host_value_now(expr); });
  return host_memo_[expr.index()] = value;
}

// The host fills a slot with a size without counts; a size with counts is computed from the count
// buffers.
KirValue KernelEmitter::host_value_now(HostExprId expr) {
  auto& pool = pc_.exprs();
  if (!pool.has_count(expr)) return b_.host_size(expr);
  const HostExprNode node = pool.node(expr);
  if (node.op == HostOp::Count) {
    const auto buffer = pc_.count(static_cast<std::uint32_t>(node.payload));
    b_.reads(buffer, pc_.count_version(cx_.fn, node.payload));
    const auto count = b_.load_at(buffer, b_.const_i64(0));
    return b_.convert(count, ComputeType::I64);
  }
  std::vector<KirValue> args;
  for (const auto arg : node.args) {
    if (arg.is_valid()) args.push_back(host_value(arg));
  }
  if (node.op == HostOp::Cast) {
    return b_.convert(args[0], kir::dtype_of(b_.type(args[0])), dtype_of(node.type));
  }
  if (node.op == HostOp::AlignUp) {
    return b_.scalar(ScalarOp::mul, {b_.scalar(ScalarOp::ceil_div, args), args[1]});
  }
  const auto op = element_wise_op(node.op);
  CINCH_CHECK(op.has_value(), "a host operator without an element-wise form");
  return b_.scalar(*op, args);
}

// --- combiners -----------------------------------------------------------------------------------

void KernelEmitter::pull_region_scalars(ir::RegionId region) {
  std::set<std::uint32_t> inner;
  for (const auto op_id : cx_.fn.regions[region.index()].ops) {
    const auto& op = cx_.op(op_id);
    for (const auto v : op.operands) {
      if (!inner.contains(v.index()) && op.kind != OpKind::arg) pull_scalar(v);
    }
    for (const auto r : op.results) inner.insert(r.index());
  }
}

std::vector<KirValue> KernelEmitter::eval_region(ir::RegionId region,
                                                 const std::vector<KirValue>& args) {
  const auto saved = region_values_;
  const auto& r = cx_.fn.regions[region.index()];
  for (std::size_t i = 0; i < args.size(); ++i) region_values_[r.args[i].index()] = args[i];
  std::vector<KirValue> results;
  for (const auto op_id : r.ops) {
    const auto& op = cx_.op(op_id);
    if (op.kind == OpKind::arg) continue;
    std::vector<KirValue> operands;
    operands.reserve(op.operands.size());
    for (const auto v : op.operands) operands.push_back(pull(v, {}));
    if (op.kind == OpKind::yield) {
      results = operands;
      continue;
    }
    const DType to = type(op.results[0]).dtype;
    KirValue value;
    switch (op.kind) {
      case OpKind::const_scalar:
        value = pull_const(op, op.results[0]);
        break;
      case OpKind::param:
        value = b_.param(op.attrs.index);
        break;
      case OpKind::host_size:
        value = pull_host_size(op, op.results[0]);
        break;
      case OpKind::map:
        value = b_.scalar(op.attrs.scalar_op, operands, integer_type(op));
        break;
      case OpKind::call_extern:
        value = b_.call_extern(op.attrs.index, operands);
        break;
      case OpKind::convert:
        value = b_.convert(operands[0], type(op.operands[0]).dtype, to);
        break;
      case OpKind::bitcast:
        value = b_.bitcast(operands[0], type(op.operands[0]).dtype, to);
        break;
      default:
        CINCH_LIMITATION("in a combining lambda: " + std::string(ir::op_info(op.kind).name));
    }
    region_values_[op.results[0].index()] = value;
  }
  region_values_ = saved;
  return results;
}

std::uint32_t KernelEmitter::make_combiner(const ir::Op& op) {
  const auto& c = cx_.fn.combiners[op.attrs.combiner.index()];
  if (c.op) return b_.combiner(*c.op);
  pull_region_scalars(c.region);
  std::vector<ComputeType> types;
  types.reserve(op.results.size());
  for (const auto r : op.results) types.push_back(kir::compute_type(type(r).dtype));
  return b_.combiner(types, [&](std::span<const KirValue> a, std::span<const KirValue> c2) {
    std::vector<KirValue> args(a.begin(), a.end());
    args.insert(args.end(), c2.begin(), c2.end());
    return eval_region(c.region, args);
  });
}

std::vector<KirValue> KernelEmitter::join(const ir::Op& op, const std::vector<KirValue>& a,
                                          const std::vector<KirValue>& c) {
  const auto& combiner = cx_.fn.combiners[op.attrs.combiner.index()];
  if (combiner.op) {
    const DType dtype = type(op.results[0]).dtype;
    return {
        b_.scalar(*combiner.op, {a[0], c[0]}, is_int(dtype) ? std::optional(dtype) : std::nullopt)};
  }
  std::vector<KirValue> args = a;
  args.insert(args.end(), c.begin(), c.end());
  return eval_region(combiner.region, args);
}

// Joins the initial values of a reduction on the left. If the combiner is a region, `results` ends
// with `has`.
std::vector<KirValue> KernelEmitter::with_init(const ir::Op& op, std::vector<KirValue> results) {
  const std::size_t num = op.results.size();
  std::vector<KirValue> init;
  init.reserve(num);
  for (std::size_t i = 0; i < num; ++i) init.push_back(pull_scalar(op.operands[num + i]));
  const bool has_flag = results.size() > num;
  const auto has = has_flag ? results.back() : KirValue();
  if (has_flag) results.pop_back();
  auto joined = join(op, init, results);
  if (has_flag) {
    for (std::size_t i = 0; i < num; ++i) joined[i] = b_.select(has, joined[i], init[i]);
  }
  return joined;
}

}  // namespace cinch::codegen
