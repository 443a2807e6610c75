// Sinks that are kernels of their own; see kernel_emitter.h.
#include "compiler/kernelize/kernel_emitter.h"

#include <algorithm>

#include "compiler/ir/rewriter.h"
#include "compiler/ir/types.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"

namespace cinch::codegen {

using KirValue = kir::ValueId;

class ScanEmitter {
 public:
  ScanEmitter(FunctionContext& cx, const RegionPlan& plan, int sink)
      : cx_(cx),
        pc_(cx.program),
        plan_(plan),
        sink_(sink),
        op_(cx.op(plan.sinks[sink].op)),
        pool_(pc_.exprs()) {
    const auto& t = cx_.value(op_.operands[0]).type;
    const auto one = pool_.const_int(1);
    const bool is_whole = op_.attrs.axis == ir::kAll || t.rank < 2;
    rows_ = is_whole ? one : t.dims[op_.attrs.axis == 1 ? 0 : 1];
    len_ = is_whole ? pc_.num_elems(t) : t.dims[op_.attrs.axis == 1 ? 1 : 0];
    tiles_ = pool_.ceil_div(len_, pool_.const_int(kir::kTileElems));
    is_one_tile_ = pool_.is_const(len_) && pool_.const_value(len_).as_int() >= 1 &&
                   pool_.const_value(len_).as_int() <= kir::kTileElems;
  }

  std::vector<rt::Step> emit() {
    std::vector<rt::Step> steps;
    if (is_one_tile_) {
      launch(steps, [&](KernelEmitter& k) { emit_row(k); }, "");
      return steps;
    }
    launch(steps, [&](KernelEmitter& k) { emit_ends(k); }, ": tile ends");
    steps.push_back({.kind = rt::StepKind::Launch, .index = emit_finish()});
    launch(steps, [&](KernelEmitter& k) { emit_joined(k); }, ": joined");
    return steps;
  }

 private:
  template <typename Make>
  void launch(std::vector<rt::Step>& steps, const Make& make, const char* what) {
    const KernelPlan kp{{kir::GroupKind::Row,
                         {},
                         pool_.mul(rows_, tiles_),
                         is_one_tile_ ? len_ : pool_.const_int(kir::kTileElems)},
                        0,
                        {}};
    KernelEmitter k(cx_, plan_, kp);
    k.current_ = sink_;
    make(k);
    k.b_.kernel().info.fused.push_back(k.fused_name(plan_.sinks[sink_]) + what);
    steps.push_back({.kind = rt::StepKind::Launch, .index = k.b_.finish()});
  }

  struct Tile {
    KirValue row, tile, begin, rest;  // group level
  };
  Tile tile_of(KernelEmitter& k) {
    auto& b = k.b_;
    b.group();
    if (is_one_tile_) {
      return {.row = b.group_index(),
              .tile = b.const_i64(0),
              .begin = b.const_i64(0),
              .rest = k.host_value(len_)};
    }
    const auto tiles = k.host_value(tiles_);
    Tile t{.row = b.scalar(ScalarOp::div, {b.group_index(), tiles}),
           .tile = b.scalar(ScalarOp::mod, {b.group_index(), tiles})};
    t.begin = b.mul(t.tile, b.const_i64(kir::kTileElems));
    t.rest = b.sub(k.host_value(len_), t.begin);
    return t;
  }

  Place place_of(KernelEmitter&, const Tile& t) const {
    const Index along{Index::Kind::Linear, t.begin, t.rest, {}, true};
    const Index across{Index::Kind::Uniform, t.row, {}, {}, true};
    if (cx_.value(op_.operands[0]).type.rank < 2) return {along, {}, {}};
    return op_.attrs.axis == 0 ? Place{std::nullopt, along, across}
                               : Place{std::nullopt, across, along};
  }

  // The element section that puts the tile's values on chip and scans them. Returns the first local
  // array.
  std::uint32_t scan_tile(KernelEmitter& k, const Tile& t, std::uint32_t combiner) {
    auto& b = k.b_;
    auto locals = mapped<std::uint32_t>(op_.results, [&](const auto r) {
      return b.add_local(kir::compute_type(cx_.value(r).type.dtype));
    });
    b.elements();
    k.element_memo_.clear();
    for (std::size_t i = 0; i < locals.size(); ++i)
      b.local_store(locals[i], k.pull(op_.operands[i], place_of(k, t)));
    b.group();
    b.local_scan(locals[0], combiner);
    return locals[0];
  }

  void emit_ends(KernelEmitter& k) {
    const auto combiner = k.make_combiner(op_);
    const auto first = scan_tile(k, tile_of(k), combiner);
    for (std::uint32_t i = 0; i < op_.results.size(); ++i) {
      const auto end = k.b_.local_last(first + i);
      store_end(k, ends_, "tile_ends", end);
      if (op_.attrs.exclusive) store_end(k, own_ends_, "own_tile_ends", end);
    }
  }

  void store_end(KernelEmitter& k, std::vector<rt::BufferIndex>& to, const char* name,
                 KirValue end) {
    to.push_back(pc_.add_workspace(name, kir::dtype_of(k.b_.type(end)),
                                   pool_.mul(k.bound(rows_), k.bound(tiles_))));
    k.b_.writes(to.back(), version_of_ends(to.back()));
    k.b_.store_at(to.back(), k.b_.group_index(), end);
  }

  kir::Version version_of_ends(rt::BufferIndex ends) {
    const auto [at, is_new] = versions_.try_emplace(ends, kir::kNothing);
    if (is_new) at->second = pc_.new_version();
    return at->second;
  }

  std::uint32_t emit_finish() {
    const KernelPlan single{Domain{}, 0, {}};
    KernelEmitter f(cx_, plan_, single);
    f.current_ = sink_;
    const auto combiner = f.make_combiner(op_);
    for (const auto ends : ends_) {
      f.b_.reads(ends, version_of_ends(ends));
      versions_[ends] = pc_.new_version();
      f.b_.writes(ends, versions_[ends]);
    }
    f.b_.finish_scan(f.host_value(rows_), f.host_value(tiles_), ends_, combiner);
    f.b_.kernel().info.fused.push_back("finish " + f.fused_name(plan_.sinks[sink_]));
    return f.b_.finish();
  }

  // A row of one tile has no ends to join.
  void emit_row(KernelEmitter& k) {
    auto& b = k.b_;
    const auto combiner = k.make_combiner(op_);
    const Tile t = tile_of(k);
    const auto first = scan_tile(k, t, combiner);
    const std::size_t num = op_.results.size();
    std::vector<KirValue> init, own;
    for (std::size_t i = 0; i < num; ++i) init.push_back(k.pull_scalar(op_.operands[num + i]));
    b.elements();
    k.element_memo_.clear();
    for (std::uint32_t i = 0; i < num; ++i) {
      own.push_back(op_.attrs.exclusive ? b.local_previous(first + i, init[i])
                                        : b.local_load(first + i));
    }
    auto values = k.join(op_, init, own);
    if (op_.attrs.exclusive) values = choose(k, b.eq(b.column(), b.const_u32(0)), init, values);
    store_results(k, t, values);
  }

  void emit_joined(KernelEmitter& k) {
    auto& b = k.b_;
    const auto combiner = k.make_combiner(op_);
    const Tile t = tile_of(k);
    const auto first = scan_tile(k, t, combiner);
    const std::size_t num = op_.results.size();
    const auto is_first_tile = b.eq(t.tile, b.const_i64(0));
    const auto has_previous = b.logical_not(is_first_tile);
    std::vector<KirValue> before, init;
    for (std::size_t i = 0; i < num; ++i) {
      init.push_back(k.pull_scalar(op_.operands[num + i]));
      b.reads(ends_[i], version_of_ends(ends_[i]));
      before.push_back(b.load_at(ends_[i], b.sub(b.group_index(), b.const_i64(1)), has_previous));
    }
    std::vector<KirValue> last;
    if (op_.attrs.exclusive) last = last_of_previous_tile(k, t);
    b.elements();
    k.element_memo_.clear();
    const auto values = op_.attrs.exclusive
                            ? exclusive_values(k, first, t, before, last, init)
                            : inclusive_values(k, first, has_previous, before, init);
    store_results(k, t, values);
  }

  void store_results(KernelEmitter& k, const Tile& t, const std::vector<KirValue>& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto result = plan_.sinks[sink_].results[i];
      k.b_.writes(result, pc_.version_of(cx_.fn, op_.results[i]));
      store(k, result, t, values[i]);
    }
  }

  std::vector<KirValue> choose(KernelEmitter& k, KirValue c, const std::vector<KirValue>& a,
                               const std::vector<KirValue>& e) {
    std::vector<KirValue> out;
    out.reserve(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) out.push_back(k.b_.select(c, a[i], e[i]));
    return out;
  }

  std::vector<KirValue> inclusive_values(KernelEmitter& k, std::uint32_t first,
                                         KirValue has_previous, const std::vector<KirValue>& before,
                                         const std::vector<KirValue>& init) {
    std::vector<KirValue> own;
    own.reserve(init.size());
    for (std::uint32_t i = 0; i < init.size(); ++i) own.push_back(k.b_.local_load(first + i));
    return k.join(op_, init, choose(k, has_previous, k.join(op_, before, own), own));
  }

  // The inclusive scan's last element of tile t - 1: its own end, joined with the scanned end of
  // tile t - 2. The scanned end of tile t - 1 joins the same elements in another order.
  std::vector<KirValue> last_of_previous_tile(KernelEmitter& k, const Tile& t) {
    auto& b = k.b_;
    const auto has_previous = b.logical_not(b.eq(t.tile, b.const_i64(0)));
    const auto has_two = b.scalar(ScalarOp::ge, {t.tile, b.const_i64(2)});
    std::vector<KirValue> front, own;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      b.reads(ends_[i], version_of_ends(ends_[i]));
      b.reads(own_ends_[i], version_of_ends(own_ends_[i]));
      front.push_back(b.load_at(ends_[i], b.sub(b.group_index(), b.const_i64(2)), has_two));
      own.push_back(b.load_at(own_ends_[i], b.sub(b.group_index(), b.const_i64(1)), has_previous));
    }
    return choose(k, has_two, k.join(op_, front, own), own);
  }

  // Element j takes the inclusive value of j - 1. The tile's first element takes the previous
  // tile's last value, the row's first takes `init` alone.
  std::vector<KirValue> exclusive_values(KernelEmitter& k, std::uint32_t first, const Tile& t,
                                         const std::vector<KirValue>& before,
                                         const std::vector<KirValue>& last,
                                         const std::vector<KirValue>& init) {
    auto& b = k.b_;
    std::vector<KirValue> own;
    own.reserve(init.size());
    for (std::uint32_t i = 0; i < init.size(); ++i)
      own.push_back(b.local_previous(first + i, last[i]));
    const auto is_first_column = b.eq(b.column(), b.const_u32(0));
    const auto is_first_tile = b.eq(t.tile, b.const_i64(0));
    const auto joined = choose(k, b.scalar(ScalarOp::bit_or, {is_first_column, is_first_tile}), own,
                               k.join(op_, before, own));
    return choose(k, b.logical_and(is_first_column, is_first_tile), init,
                  k.join(op_, init, joined));
  }

  void store(KernelEmitter& k, rt::BufferIndex buffer, const Tile& t, KirValue value) {
    auto& b = k.b_;
    const auto& type = cx_.value(op_.operands[0]).type;
    const Index flat = k.flat_of(place_of(k, t), type);
    if (flat.kind == Index::Kind::Linear)
      return b.store_linear(buffer, value, flat.value, flat.limit);
    b.store_at(buffer, flat.value, value, flat.pred);
  }

  FunctionContext& cx_;
  ProgramContext& pc_;
  const RegionPlan& plan_;
  int sink_;
  const ir::Op& op_;
  HostExprPool& pool_;
  HostExprId rows_, len_, tiles_;
  bool is_one_tile_ = false;  // is every row one tile?
  // For each tile: its end after finish_scan and, for an exclusive scan, its own end.
  std::vector<rt::BufferIndex> ends_, own_ends_;
  std::map<rt::BufferIndex, kir::Version> versions_;  // versions of their contents
};

std::vector<rt::Step> emit_scan(FunctionContext& cx, const RegionPlan& plan, int sink) {
  return ScanEmitter(cx, plan, sink).emit();
}

class UniqueEmitter {
 public:
  static std::vector<rt::Step> emit(FunctionContext& cx, const RegionPlan& plan, int sink) {
    const auto& s = plan.sinks[sink];
    const auto& op = cx.op(s.op);
    const auto& t = cx.value(op.operands[0]).type;
    std::vector<rt::Step> steps = {{.kind = rt::StepKind::Zero, .index = s.buffer}};
    const KernelPlan uses{{kir::GroupKind::Tile, cx.program.num_elems(t), {}, {}}, 0, {}};
    KernelEmitter k(cx, plan, uses);
    k.current_ = sink;
    k.b_.group();
    k.b_.elements();
    const Index at = k.index_at(op.operands[0], k.domain_place(), op.attrs.size);
    k.b_.reads(s.buffer, kir::kZeros);
    const auto counted = cx.program.new_version();
    k.b_.writes(s.buffer, counted);
    k.b_.add_at(s.buffer, at.value, k.b_.const_u32(1), at.pred);
    k.b_.kernel().info.fused.emplace_back("count uses");
    steps.push_back({.kind = rt::StepKind::Launch, .index = k.b_.finish()});
    const KernelPlan cells{{kir::GroupKind::Tile, op.attrs.size, {}, {}}, 0, {}};
    KernelEmitter c(cx, plan, cells);
    c.b_.group();
    c.b_.elements();
    c.b_.reads(s.buffer, counted);
    const auto count = c.b_.load_linear(s.buffer, c.b_.group_base());
    c.b_.fail_if(c.b_.scalar(ScalarOp::gt, {count, c.b_.const_u32(1)}), op.attrs.text);
    c.b_.kernel().info.fused.emplace_back("check unique");
    steps.push_back({.kind = rt::StepKind::Launch, .index = c.b_.finish()});
    return steps;
  }
};

std::vector<rt::Step> emit_check_unique(FunctionContext& cx, const RegionPlan& plan, int sink) {
  return UniqueEmitter::emit(cx, plan, sink);
}

// How many elements of each row of an order are read, 0 if perhaps all: finds gathers that read the
// columns 0, 1, … k - 1 of each row.
std::uint32_t read_front(const FunctionContext& cx, ir::ValueId order) {
  std::int64_t most = 0;
  for (const ir::Op& op : cx.fn.ops) {
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      if (op.operands[i] != order) continue;
      if (op.kind != ir::OpKind::gather_along || op.attrs.axis != 1 || i != 0) return 0;
      const ir::Op& columns = ir::defining_op(cx.fn, op.operands[1]);
      if (columns.kind != ir::OpKind::fill) return 0;
      const ir::Op& row = ir::defining_op(cx.fn, columns.operands[0]);
      if (row.kind != ir::OpKind::reshape) return 0;
      const ir::Op& numbers = ir::defining_op(cx.fn, row.operands[0]);
      const auto count =
          ir::constant_size(cx.program.exprs(), cx.value(numbers.results[0]).type.dims[0]);
      if (numbers.kind != ir::OpKind::iota || !count) return 0;
      most = std::max(most, *count);
    }
  }
  return most <= kir::kTileElems ? static_cast<std::uint32_t>(most) : 0;
}

class SortEmitter {
 public:
  static std::vector<rt::Step> emit(FunctionContext& cx, const RegionPlan& plan, int sink) {
    const auto& s = plan.sinks[sink];
    const auto& op = cx.op(s.op);
    const auto& t = cx.value(op.operands[0]).type;
    auto& pool = cx.program.exprs();
    const auto rows = t.rank < 2 ? pool.const_int(1) : t.dims[0];
    const auto len = t.rank < 2 ? t.dims[0] : t.dims[1];
    const KernelPlan kp{{kir::GroupKind::Row, {}, rows, pool.upper_bound(len)}, 0, {}};
    KernelEmitter k(cx, plan, kp);
    k.current_ = sink;
    auto& b = k.b_;
    b.group();
    b.reads(s.results[0], cx.program.version_of(cx.fn, op.operands[0]));
    b.writes(s.buffer, cx.program.version_of(cx.fn, op.results[0]));
    b.writes(s.results[1], cx.program.new_version());
    b.argsort_row(b.group_base(), k.host_value(len), {s.results[0], s.buffer, s.results[1]},
                  op.attrs.descending, read_front(cx, op.results[0]));
    b.kernel().info.fused.emplace_back("argsort");
    return {{.kind = rt::StepKind::Launch, .index = b.finish()}};
  }
};

std::vector<rt::Step> emit_argsort(FunctionContext& cx, const RegionPlan& plan, int sink) {
  const auto& op = cx.op(plan.sinks[sink].op);
  if (op.attrs.axis == 0) CINCH_LIMITATION("argsort along axis 0: transpose first");
  return SortEmitter::emit(cx, plan, sink);
}

}  // namespace cinch::codegen
