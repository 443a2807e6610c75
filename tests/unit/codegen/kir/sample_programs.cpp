#include "tests/unit/codegen/kir/sample_programs.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {

KernelProgram start(const char* name) {
  KernelProgram program;
  program.info.name = name;
  program.info.params.push_back({.name = "tau", .dtype = kF32});
  return program;
}

HostExprId n(KernelProgram& program) {
  return program.info.exprs->n();
}
HostExprId tiles(KernelProgram& program) {
  HostExprPool& pool = *program.info.exprs;
  return pool.ceil_div(pool.n(), pool.const_int(kTileElems));
}

BufferIndex buffer(KernelProgram& program, const char* name, DType dtype, HostExprId elems,
                   rt::BufferRole role, std::uint8_t bits = 0) {
  rt::BufferInfo info;
  info.name = name;
  info.dtype = dtype;
  info.storage_bits = bits ? bits : whole_element_bits(dtype);
  info.num_elems = elems;
  info.role = role;
  return add_buffer(program, std::move(info));
}

BufferIndex gradient(KernelProgram& program) {
  return buffer(program, "g", kF32, n(program), rt::BufferRole::Gradient);
}

void launch_in_order(KernelProgram& program, const std::vector<BufferIndex>& zeroed = {}) {
  rt::Entry& entry = program.entries[static_cast<std::size_t>(rt::EntryKind::Encode)];
  entry.present = true;
  for (BufferIndex b : zeroed) entry.steps.push_back({.kind = rt::StepKind::Zero, .index = b});
  for (std::uint32_t k = 0; k < program.kernels.size(); ++k) {
    entry.steps.push_back({.kind = rt::StepKind::Launch, .index = k});
  }
  for (std::uint32_t b = 0; b < program.buffers.size(); ++b) entry.buffers.push_back(b);
}

// Joins (value, index) pairs: the larger value, on a tie the lower index.
std::uint32_t argmax_combiner(KernelBuilder& b) {
  return b.combiner({ComputeType::F32, ComputeType::U32}, [&](std::span<const ValueId> x,
                                                              std::span<const ValueId> y) {
    const ValueId takes = b.lt(x[0], y[0]);
    return std::vector<ValueId>{b.select(takes, y[0], x[0]), b.select(takes, y[1], x[1])};
  });
}

void reduce_finish(KernelProgram& program, HostExprId num_partials, BufferIndex sums,
                   BufferIndex best, BufferIndex best_index, BufferIndex has, BufferIndex result) {
  KernelBuilder b(program, "finish_sums", GroupKind::Single, rt::KernelRole::Finish);
  const ValueId count = b.host_size(num_partials);
  const auto sum = b.finish_reduce(count, {sums}, b.combiner(ScalarOp::add));
  const auto top = b.finish_reduce(count, {best, best_index, has}, argmax_combiner(b));
  const ValueId mean = b.scalar(ScalarOp::divide_or_zero,
                                {sum[0], b.convert(b.host_size(n(program)), ComputeType::F32)});
  b.store_at(result, b.const_i64(0), mean);
  b.store_at(result, b.const_i64(1), top[0], top[2]);
  b.finish();
}

}  // namespace

KernelProgram sample_reduce() {
  KernelProgram program = start("sample_reduce");
  const BufferIndex g = gradient(program);
  const BufferIndex bits = buffer(program, "sign", kBool, n(program), rt::BufferRole::Field, 1);
  const BufferIndex sums = add_workspace(program, "sums", kF32, tiles(program));
  const BufferIndex best = add_workspace(program, "best", kF32, tiles(program));
  const BufferIndex best_index = add_workspace(program, "best_index", kU32, tiles(program));
  const BufferIndex has = add_workspace(program, "has", kBool, tiles(program));
  const BufferIndex result =
      add_workspace(program, "result", kF32, program.info.exprs->const_int(2));
  KernelBuilder b(program, "sweep_sums", GroupKind::Tile);
  b.set_extent(n(program));
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.named(b.load_linear(g, base), "x");
  const ValueId is_positive = b.lt(b.const_f32(0), x);
  b.store_linear(bits, is_positive, base);
  b.flag_nonfinite(x);
  const auto sum = b.reduce({x}, b.combiner(ScalarOp::add));
  const auto top = b.reduce({x, b.element()}, argmax_combiner(b), is_positive);
  b.group();
  b.store_at(sums, b.group_index(), b.mul(sum[0], b.param(0)));
  b.store_at(best, b.group_index(), top[0], top[2]);
  b.store_at(best_index, b.group_index(), top[1], top[2]);
  b.store_at(has, b.group_index(), top[2]);
  b.kernel().info.fused = {"map", "reduce", "pack"};
  b.finish();
  reduce_finish(program, tiles(program), sums, best, best_index, has, result);
  launch_in_order(program);
  return program;
}

KernelProgram sample_compact() {
  KernelProgram program = start("sample_compact");
  const BufferIndex g = gradient(program);
  const BufferIndex index = buffer(program, "index", kU32, n(program), rt::BufferRole::Field);
  const BufferIndex value = buffer(program, "value", kF32, n(program), rt::BufferRole::Field);
  const BufferIndex count =
      buffer(program, "m", kU32, program.info.exprs->const_int(1), rt::BufferRole::Count);
  const BufferIndex state = add_look_back_state(program, "state", tiles(program));
  KernelBuilder b(program, "compact", GroupKind::Tile);
  b.set_extent(n(program));
  const ValueId base = b.group_base();
  const ValueId last =
      b.in_kernel([&] { return b.sub(b.host_size(tiles(program)), b.const_i64(1)); });
  const auto mask = [&] {
    const ValueId x = b.load_linear(g, base);
    return std::pair(x, b.scalar(ScalarOp::ge, {b.scalar(ScalarOp::abs, {x}), b.param(0)}));
  };
  b.elements();
  const auto first = b.running_sum(b.convert(mask().second, kBool, kU32), false);
  b.group();
  const ValueId before = b.look_back(first.total, state);
  b.store_at(count, b.const_i64(0), b.add(before, first.total), b.eq(b.group_index(), last));
  b.elements();
  const auto [x, keep] = mask();
  const auto place = b.running_sum(b.convert(keep, kBool, kU32), true);
  const ValueId at = b.add(before, place.value);
  b.store_at(index, at, b.element(), keep);
  b.store_at(value, at, x, keep);
  b.finish();
  launch_in_order(program, {state, count});
  return program;
}

KernelProgram sample_rows(std::int64_t bucket, int bits) {
  KernelProgram program = start("sample_rows");
  HostExprPool& pool = *program.info.exprs;
  const HostExprId len = pool.const_int(bucket);
  const HostExprId rows = pool.ceil_div(pool.n(), len);
  const DType code_type = *make_int(bits);
  const BufferIndex g = gradient(program);
  const BufferIndex norms = buffer(program, "norm", kF32, rows, rt::BufferRole::Field);
  const BufferIndex codes = buffer(program, "code", code_type, pool.mul(rows, len),
                                   rt::BufferRole::Field, static_cast<std::uint8_t>(bits));
  KernelBuilder b(program, "quantise_rows", GroupKind::Row);
  b.set_rows(rows, len);
  if (bucket * bits % 8) b.kernel().info.group_multiple = 8;
  const ValueId base = b.group_base();
  b.group();
  const ValueId limit = b.named(b.sub(b.host_size(pool.n()), base), "limit");
  b.elements();
  const ValueId x = b.load_linear(g, base, limit);
  const auto sum = b.reduce({b.mul(x, x)}, b.combiner(ScalarOp::add));
  b.group();
  const ValueId norm = b.named(b.scalar(ScalarOp::sqrt, {sum[0]}), "norm");
  b.store_at(norms, b.group_index(), norm);
  b.elements();
  const ValueId y = b.load_linear(g, base, limit);
  const ValueId scaled = b.scalar(ScalarOp::divide_or_zero, {b.mul(y, b.const_f32(7)), norm});
  const ValueId rounded = b.stochastic_round({.site = 3}, scaled, b.element());
  b.store_linear(codes, b.convert(rounded, kF32, code_type), base);
  b.finish();
  launch_in_order(program);
  return program;
}

namespace {

void scan_tiles(KernelProgram& program, BufferIndex g, BufferIndex ends, BufferIndex out) {
  KernelBuilder b(program, "scan_tiles", GroupKind::Tile);
  b.set_extent(n(program));
  const ValueId base = b.group_base();
  const std::uint32_t local = b.add_local(ComputeType::F32);
  const std::uint32_t add = b.combiner(ScalarOp::add);
  b.elements();
  b.local_store(local, b.load_linear(g, base));
  b.group();
  b.local_scan(local, add);
  b.store_at(ends, b.group_index(), b.local_last(local));
  b.elements();
  // Exclusive inside the tile: what stands before, 0 at the front.
  b.store_linear(out, b.add(b.local_load(local), b.local_previous(local, b.const_f32(0))), base);
  b.finish();
}

void join_tiles(KernelProgram& program, BufferIndex ends, BufferIndex out) {
  KernelBuilder b(program, "join_tiles", GroupKind::Tile);
  b.set_extent(n(program));
  const ValueId base = b.group_base();
  b.group();
  const ValueId is_later = b.lt(b.const_i64(0), b.group_index());
  const ValueId before = b.load_at(ends, b.sub(b.group_index(), b.const_i64(1)), is_later);
  b.elements();
  const ValueId x = b.load_linear(out, base);
  b.store_linear(out, b.select(is_later, b.add(before, x), x), base);
  b.finish();
}

}  // namespace

KernelProgram sample_row_transforms() {
  constexpr std::int64_t kLength = 8;
  KernelProgram program = start("sample_row_transforms");
  HostExprPool& pool = *program.info.exprs;
  const HostExprId len = pool.const_int(kLength);
  const HostExprId rows = pool.ceil_div(pool.n(), len);
  const BufferIndex g = gradient(program);
  const BufferIndex matrix = add_workspace(program, "matrix", kF32, pool.mul(len, len));
  const BufferIndex out = add_workspace(program, "out", kF32, pool.mul(rows, len));
  KernelBuilder b(program, "transform_rows", GroupKind::Row);
  b.set_rows(rows, len);
  const ValueId base = b.group_base();
  const std::uint32_t from = b.add_local(ComputeType::F32);
  const std::uint32_t to = b.add_local(ComputeType::F32);
  b.group();
  const ValueId limit = b.named(b.sub(b.host_size(pool.n()), base), "limit");
  b.elements();
  b.local_store(from, b.load_linear(g, base, limit));
  b.group();
  b.local_butterflies(from);
  b.local_product(from, matrix);
  b.elements();
  const std::uint32_t keys = b.add_local(ComputeType::U32);
  b.store_linear(out, b.local_load(to), base);
  b.local_store(keys, b.column());
  b.group();
  b.local_largest(keys, b.const_u32(3));
  b.finish();
  launch_in_order(program, {matrix});
  return program;
}

KernelProgram sample_scan() {
  KernelProgram program = start("sample_scan");
  const BufferIndex g = gradient(program);
  const BufferIndex ends = add_workspace(program, "ends", kF32, tiles(program));
  const BufferIndex out = add_workspace(program, "out", kF32, n(program));
  scan_tiles(program, g, ends, out);
  {
    KernelBuilder b(program, "scan_ends", GroupKind::Single, rt::KernelRole::Finish);
    b.finish_scan(b.const_i64(1), b.host_size(tiles(program)), {ends}, b.combiner(ScalarOp::add));
    b.finish();
  }
  join_tiles(program, ends, out);
  launch_in_order(program);
  return program;
}

namespace {

void draws_kernel(KernelProgram& program, BufferIndex out) {
  KernelBuilder b(program, "draws", GroupKind::Tile);
  b.set_extent(n(program));
  const ValueId base = b.group_base();
  const ValueId round = b.in_kernel([&] { return b.load_at(1, b.const_i64(0)); });
  b.elements();
  const ValueId i = b.element();
  const ValueId size = b.host_size(n(program));
  const ValueId words = b.random_bits({.site = 1, .shared = true}, i, round);
  const ValueId places = b.random_index({.site = 2, .shared = true}, i, size);
  ValueId x = b.add(b.random({.site = 3}, i, round), b.normal({.site = 4}, i));
  x = b.add(x, b.bitcast(b.scalar(ScalarOp::shr, {words, b.const_u32(9)}), kU32, kF32));
  x = b.add(x, b.convert(b.add(places, b.column()), ComputeType::F32));
  x = b.call_extern(0, {x, b.convert(places, kU32, kI8)});
  b.fail_if(b.scalar(ScalarOp::isnan, {x}), "a draw is NaN");
  b.store_linear(out, x, base, b.group_len());
  b.finish();
}

void counts_kernels(KernelProgram& program, BufferIndex g, BufferIndex bins, BufferIndex sums) {
  for (const bool is_sequential : {false, true}) {
    KernelBuilder b(program, is_sequential ? "scatter_add" : "histogram", GroupKind::Tile);
    b.set_extent(n(program));
    const ValueId base = b.group_base();
    b.elements();
    const ValueId x = b.load_linear(g, base);
    const ValueId bin = b.convert(b.scalar(ScalarOp::abs, {x}), kF32, kU32);
    if (is_sequential) {
      b.add_at(sums, bin, x, b.lt(bin, b.const_u32(16)));
    } else {
      b.hist_add(bins, bin, 16);
      b.max_at(bins, bin, bin, b.lt(bin, b.const_u32(16)));
    }
    b.finish();
  }
}

void sort_kernel(KernelProgram& program, BufferIndex g, BufferIndex order, BufferIndex scratch) {
  HostExprPool& pool = *program.info.exprs;
  KernelBuilder b(program, "sort_rows", GroupKind::Row);
  b.set_rows(pool.rows(), pool.cols());
  b.group();
  b.argsort_row(b.group_base(), b.group_len(), {g, order, scratch}, true);
  b.finish();
}

}  // namespace

KernelProgram sample_odds() {
  KernelProgram program = start("sample_odds");
  program.info.externs.push_back(
      {"scaled", {kF32, kI8}, kF32, 3, "CINCH_LANG_FN f32 call(f32 x, i8 y) { return x * y; }\n"});
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex g = gradient(program);
  add_workspace(program, "round", kI64, pool.const_int(1));
  const BufferIndex out = add_workspace(program, "out", kF32, n(program));
  const BufferIndex bins = add_workspace(program, "bins", kU32, pool.const_int(16));
  const BufferIndex sums = add_workspace(program, "sums", kF32, pool.const_int(16));
  const BufferIndex order = add_workspace(program, "order", kU32, n(program));
  const BufferIndex scratch =
      add_workspace(program, "scratch", kU32, pool.mul(n(program), pool.const_int(4)));
  draws_kernel(program, out);
  counts_kernels(program, g, bins, sums);
  sort_kernel(program, g, order, scratch);
  launch_in_order(program, {bins, sums});
  return program;
}

KernelProgram sample_copy(DType dtype, std::uint8_t storage_bits) {
  KernelProgram program = start("sample_copy");
  const BufferIndex from =
      buffer(program, "from", dtype, n(program), rt::BufferRole::Workspace, storage_bits);
  const BufferIndex to =
      buffer(program, "to", dtype, n(program), rt::BufferRole::Workspace, storage_bits);
  KernelBuilder b(program, "copy", GroupKind::Tile);
  b.set_extent(n(program));
  const ValueId base = b.group_base();
  b.elements();
  b.store_linear(to, b.load_linear(from, base), base);
  b.finish();
  launch_in_order(program);
  return program;
}

KernelProgram sample_twins() {
  KernelProgram program = start("sample_twins");
  const BufferIndex given = gradient(program);
  const BufferIndex first = add_workspace(program, "first", kF32, n(program));
  const BufferIndex second = add_workspace(program, "second", kF32, n(program));
  const auto copy = [&](const char* name, BufferIndex from, BufferIndex to, HostExprId extent) {
    KernelBuilder b(program, name, GroupKind::Tile);
    b.set_extent(extent);
    const ValueId base = b.group_base();
    b.elements();
    b.store_linear(to, b.load_linear(from, base), base);
    b.finish();
  };
  HostExprPool& pool = *program.info.exprs;
  copy("copy_all", given, first, n(program));
  copy("copy_half", first, second, pool.ceil_div(n(program), pool.const_int(2)));
  launch_in_order(program);
  return program;
}

KernelProgram sample_partials() {
  KernelProgram program = start("sample_partials");
  const BufferIndex values = add_workspace(program, "values", kF32, n(program));
  const BufferIndex places = add_workspace(program, "places", kU32, n(program));
  const BufferIndex has = add_workspace(program, "has", kBool, n(program));
  const BufferIndex result =
      add_workspace(program, "result", kF32, program.info.exprs->const_int(2));
  const BufferIndex place = add_workspace(program, "place", kU32, program.info.exprs->const_int(1));
  {
    KernelBuilder b(program, "reduce_values", GroupKind::Single, rt::KernelRole::Finish);
    const ValueId count = b.host_size(n(program));
    const auto sum = b.finish_reduce(count, {values}, b.combiner(ScalarOp::add));
    const auto top = b.finish_reduce(count, {values, places, has}, argmax_combiner(b));
    b.store_at(result, b.const_i64(0), sum[0]);
    b.store_at(result, b.const_i64(1), top[0], top[2]);
    b.store_at(place, b.const_i64(0), top[1], top[2]);
    b.finish();
  }
  {
    KernelBuilder b(program, "scan_values", GroupKind::Single, rt::KernelRole::Finish);
    b.finish_scan(b.const_i64(1), b.host_size(n(program)), {values}, b.combiner(ScalarOp::add));
    b.finish();
  }
  launch_in_order(program);
  return program;
}

KernelProgram sample_folds() {
  KernelProgram program = start("sample_folds");
  const BufferIndex g = gradient(program);
  const BufferIndex sums = add_workspace(program, "sums", kF32, n(program));
  const BufferIndex best = add_workspace(program, "best", kF32, n(program));
  const BufferIndex places = add_workspace(program, "places", kU32, n(program));
  const BufferIndex has = add_workspace(program, "has", kBool, n(program));
  const BufferIndex result =
      add_workspace(program, "result", kF32, program.info.exprs->const_int(2));
  KernelBuilder b(program, "put_partials", GroupKind::Tile);
  b.set_extent(n(program));
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(g, base);
  b.store_linear(sums, x, base);
  b.store_linear(best, x, base);
  b.store_linear(places, b.element(), base);
  b.store_linear(has, b.lt(b.const_f32(0), x), base);
  b.finish();
  reduce_finish(program, n(program), sums, best, places, has, result);
  launch_in_order(program);
  return program;
}

std::vector<KernelProgram> all_samples() {
  std::vector<KernelProgram> out;
  out.push_back(sample_reduce());
  out.push_back(sample_compact());
  out.push_back(sample_rows(512, 4));
  out.push_back(sample_rows(5, 3));
  out.push_back(sample_rows(100000, 6));
  out.push_back(sample_scan());
  out.push_back(sample_row_transforms());
  out.push_back(sample_odds());
  out.push_back(sample_partials());
  out.push_back(sample_folds());
  out.push_back(sample_twins());
  out.push_back(sample_copy(kF16, 16));
  out.push_back(sample_copy(*make_uint(11), 11));
  return out;
}

}  // namespace cinch::kir
