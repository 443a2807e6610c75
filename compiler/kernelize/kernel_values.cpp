// Begins kernels; host values and combiners.
#include "compiler/kernelize/kernel_emitter.h"

#include "runtime/core/check.h"
#include "runtime/core/mapped.h"
#include "runtime/core/params.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch::codegen {

using ir::OpKind;
using kir::ComputeType;
using KirValue = kir::ValueId;

namespace {

std::string symbol_of(FunctionContext& cx, const KernelPlan& kp) {
  static constexpr const char* kKinds[] = {"encode", "decode", "finish", "sync"};
  const char* what = kp.domain.kind == kir::GroupKind::Row    ? "rows"
                     : kp.domain.kind == kir::GroupKind::Tile ? "sweep"
                                                              : "scalars";
  return cx.program.unique_symbol(std::string(kKinds[static_cast<int>(cx.fn.kind)]) + "_" + what);
}

bool is_small(ProgramContext& pc, const KernelPlan& kp) {
  if (kp.domain.kind == kir::GroupKind::Single) return true;
  const auto elems = kp.domain.kind == kir::GroupKind::Tile
                         ? kp.domain.extent
                         : pc.exprs().mul(kp.domain.rows, kp.domain.cols);
  return pc.is_at_most_constant(elems);
}

}  // namespace

KernelValues::KernelValues(FunctionContext& cx, const RegionPlan& plan, const KernelPlan& kernel)
    : cx_(cx),
      pc_(cx.program),
      plan_(plan),
      kp_(kernel),
      b_(pc_.out, symbol_of(cx, kernel), kernel.domain.kind,
         is_small(pc_, kernel) ? rt::KernelRole::Finish : rt::KernelRole::Sweep) {
  auto& pool = pc_.exprs();
  if (kp_.domain.kind == kir::GroupKind::Tile) {
    b_.set_extent(bound(kp_.domain.extent));
    if (pool.has_count(kp_.domain.extent)) b_.set_extent_value(host_value(kp_.domain.extent));
  } else if (kp_.domain.kind == kir::GroupKind::Row) {
    if (pool.has_count(kp_.domain.cols))
      CINCH_LIMITATION("rows of a length known only after looking");
    b_.set_rows(bound(kp_.domain.rows), kp_.domain.cols);
    b_.kernel().info.group_multiple = 8;
    if (pool.has_count(kp_.domain.rows)) b_.set_extent_value(host_value(kp_.domain.rows));
  }
}

// --- host values ---------------------------------------------------------------------------------

KirValue KernelValues::host_value(HostExprId expr) {
  if (const auto it = host_memo_.find(expr.index()); it != host_memo_.end()) return it->second;
  const auto value = b_.in_kernel([&] { return host_value_now(expr); });
  return host_memo_[expr.index()] = value;
}

// The host fills a slot with a size without counts; a size with counts is computed from the count
// buffers.
KirValue KernelValues::host_value_now(HostExprId expr) {
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

void KernelValues::pull_region_scalars(ir::RegionId region) {
  std::set<std::uint32_t> inner;
  for (const auto op_id : cx_.fn.regions[region.index()].ops) {
    const auto& op = cx_.op(op_id);
    for (const auto v : op.operands) {
      if (!inner.contains(v.index()) && op.kind != OpKind::arg) pull_scalar(v);
    }
    for (const auto r : op.results) inner.insert(r.index());
  }
}

std::vector<KirValue> KernelValues::eval_region(ir::RegionId region,
                                                const std::vector<KirValue>& args) {
  const auto saved = region_values_;
  const auto& r = cx_.fn.regions[region.index()];
  for (std::size_t i = 0; i < args.size(); ++i) region_values_[r.args[i].index()] = args[i];
  std::vector<KirValue> results;
  for (const auto op_id : r.ops) {
    const auto& op = cx_.op(op_id);
    if (op.kind == OpKind::arg) continue;
    auto operands = mapped<KirValue>(op.operands, [&](const auto v) { return pull(v, {}); });
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

std::uint32_t KernelValues::make_combiner(const ir::Op& op) {
  const auto& c = cx_.fn.combiners[op.attrs.combiner.index()];
  if (c.op) return b_.combiner(*c.op);
  pull_region_scalars(c.region);
  auto types = mapped<ComputeType>(op.results,
                                   [&](const auto r) { return kir::compute_type(type(r).dtype); });
  return b_.combiner(types, [&](std::span<const KirValue> a, std::span<const KirValue> c2) {
    std::vector<KirValue> args(a.begin(), a.end());
    args.insert(args.end(), c2.begin(), c2.end());
    return eval_region(c.region, args);
  });
}

std::vector<KirValue> KernelValues::join(const ir::Op& op, const std::vector<KirValue>& a,
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
std::vector<KirValue> KernelValues::with_init(const ir::Op& op, std::vector<KirValue> results) {
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
