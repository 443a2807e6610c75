// What runs along groups and over all of them: running sums, compaction with look-back, float scans
// in tiles and over stored partials.
#include <bit>
#include <cmath>

#include "runtime/core/lang.h"
#include "runtime/core/numbers/ordered_reduce.h"
#include "runtime/core/sizes/host_expr.h"
#include "tests/unit/codegen/emit/kernel_runner.h"

namespace cinch::codegen {
namespace {

using kir::BufferIndex;
using kir::ComputeType;
using kir::GroupKind;
using kir::KernelBuilder;
using kir::KernelProgram;
using kir::ValueId;

CINCH_ARCH_SUITE(OrderedOnArch);

constexpr std::uint32_t kLimit = 700;

struct Compaction {
  KernelProgram program;
  BufferIndex in, index, value, copy, byte, count, state, before, state2;
};

// Indices and values of what exceeds 0.5, their number; and a running u64 sum of squares' integers
// before each tile, through a second look-back.
Compaction compaction() {
  Compaction c;
  HostExprPool& pool = *c.program.info.exprs;
  c.in = add_test_buffer(c.program, "in", kF32, pool.n());
  c.index = add_test_buffer(c.program, "index", kU32, pool.n());
  c.value = add_test_buffer(c.program, "value", kF16, pool.n());
  c.copy = add_test_buffer(c.program, "copy", kF64, pool.n());
  c.byte = add_test_buffer(c.program, "byte", kU8, pool.n());
  c.count = add_test_buffer(c.program, "count", kU32, pool.const_int(1));
  c.before = add_test_buffer(c.program, "before", kU64, num_tiles(c.program));
  c.state = kir::add_look_back_state(c.program, "state", num_tiles(c.program));
  c.state2 = kir::add_look_back_state(c.program, "state2", num_tiles(c.program));
  KernelBuilder b(c.program, "compact", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  const auto mask = [&](ValueId x) { return b.lt(b.const_f32(0.5f), x); };
  const auto one = [&](ValueId x) { return b.convert(mask(x), kBool, kU32); };
  b.elements();
  const ValueId x0 = b.load_linear(c.in, base);
  const auto sum = b.running_sum(one(x0), true);
  b.group();
  const ValueId start = b.look_back(sum.total, c.state);
  b.elements();
  const ValueId x = b.load_linear(c.in, base);
  // The same truth value counts and stores, alone or with a limit; elsewhere it is another one.
  const ValueId m = mask(x);
  const auto place = b.running_sum(b.select(m, b.const_u32(1), b.const_u32(0)), true);
  const ValueId at = b.add(start, place.value);
  b.store_at(c.index, at, b.element(), m);
  b.store_at(c.copy, at, b.convert(x, kF32, kF64), m);
  b.store_at(c.byte, at, b.convert(x, kF32, kU8), mask(x));
  b.store_at(c.value, at, x, b.logical_and(m, b.lt(at, b.const_u32(kLimit))));
  const ValueId big = b.convert(b.scalar(ScalarOp::abs, {x}), kF32, kU64);
  const auto total = b.running_sum(b.mul(big, b.constant(ComputeType::U64, 1ull << 60)), false);
  b.group();
  const ValueId last =
      b.eq(b.group_index(), b.sub(b.host_size(num_tiles(c.program)), b.const_i64(1)));
  b.store_at(c.count, b.const_i64(0), b.add(start, sum.total), last);
  b.store_at(c.before, b.group_index(), b.look_back(total.total, c.state2));
  b.finish();
  return c;
}

TEST_P(OrderedOnArch, CompactsInOneSweepWhateverTheTasks) {
  Compaction c = compaction();
  const auto module = compile_for_test(c.program, GetParam());
  for (std::int64_t n : kLengths) {
    const auto count = static_cast<std::size_t>(n);
    for (int density = 0; density < 3; ++density) {
      auto values = test_floats(count, 20 + static_cast<std::uint64_t>(density));
      for (float& x : values) {
        if (density == 0) x = x > 4 ? x : 0;
        if (density == 2) x = std::fabs(x) + 1;
      }
      std::vector<std::uint32_t> want_index;
      std::vector<std::uint16_t> want_value;
      std::vector<double> want_copy;
      std::vector<std::uint8_t> want_byte;
      std::vector<std::uint64_t> want_before;
      std::uint64_t total = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (i % 1024 == 0) want_before.push_back(total);
        total += static_cast<std::uint64_t>(std::fabs(values[i])) << 60;
        if (!(values[i] > 0.5f)) continue;
        want_index.push_back(static_cast<std::uint32_t>(i));
        if (want_value.size() < kLimit) want_value.push_back(lang::to_f16(values[i]));
        want_copy.push_back(values[i]);
        want_byte.push_back(static_cast<std::uint8_t>(std::min(values[i], 255.0f)));
      }
      for (const Split& split : {Split{}, Split{1, 1}, Split{5, 1}, Split{1, 4}, Split{40, 2}}) {
        KernelRun run(c.program, *module, {.n = n});
        run.set(c.in, values);
        run.zero(c.state);
        run.zero(c.state2);
        run.zero(c.count);
        run.run(0, split);
        ASSERT_EQ(run.get<std::uint32_t>(c.count, 1)[0], want_index.size()) << n;
        EXPECT_EQ(run.get<std::uint32_t>(c.index, want_index.size()), want_index);
        EXPECT_EQ(run.get<std::uint16_t>(c.value, want_value.size()), want_value);
        EXPECT_EQ(run.get<double>(c.copy, want_copy.size()), want_copy);
        EXPECT_EQ(run.get<std::uint8_t>(c.byte, want_byte.size()), want_byte);
        EXPECT_EQ(run.get<std::uint64_t>(c.before, want_before.size()), want_before);
        ASSERT_TRUE(run.guards_are_whole());
      }
    }
  }
}

TEST_P(OrderedOnArch, RunningSumsOfRowsWrap) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const HostExprId elems = pool.mul(pool.rows(), pool.cols());
  const BufferIndex in = add_test_buffer(program, "in", kI64, elems);
  const BufferIndex inclusive = add_test_buffer(program, "inclusive", kI64, elems);
  const BufferIndex exclusive = add_test_buffer(program, "exclusive", kI32, elems);
  KernelBuilder b(program, "sums", GroupKind::Row);
  b.set_rows(pool.rows(), pool.cols());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(in, base);
  b.store_linear(inclusive, b.running_sum(x, false).value, base);
  const ValueId low = b.convert(b.scalar(ScalarOp::shr, {x, b.const_i64(40)}), kI64, kI32);
  b.store_linear(exclusive, b.running_sum(low, true).value, base);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t cols : {1, 15, 16, 17, 1024, 2500}) {
    const auto width = static_cast<std::size_t>(cols);
    std::vector<std::int64_t> values;
    for (auto w : test_words(9 * width, 21)) values.push_back(static_cast<std::int64_t>(w));
    KernelRun run(program, *module, {.n = 9 * cols, .rows = 9, .cols = cols});
    run.set(in, values);
    run.run(0, {2, 1});
    std::vector<std::int64_t> want(values.size());
    std::vector<std::int32_t> want_low(values.size());
    std::uint64_t sum = 0;
    std::uint32_t low_sum = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i % width == 0) sum = 0, low_sum = 0;
      sum += static_cast<std::uint64_t>(values[i]);
      want[i] = static_cast<std::int64_t>(sum);
      want_low[i] = static_cast<std::int32_t>(low_sum);
      low_sum += static_cast<std::uint32_t>(values[i] >> 40);
    }
    EXPECT_EQ(run.get<std::int64_t>(inclusive, values.size()), want) << cols;
    EXPECT_EQ(run.get<std::int32_t>(exclusive, values.size()), want_low) << cols;
  }
}

// (a, b) then (c, d) is (a * c, b * c + d): the scan of a linear recurrence.
std::uint32_t recurrence(KernelBuilder& b) {
  return b.combiner({ComputeType::F32, ComputeType::F32}, [&](std::span<const ValueId> x,
                                                              std::span<const ValueId> y) {
    return std::vector<ValueId>{b.mul(x[0], y[0]), b.add(b.mul(x[1], y[0]), y[1])};
  });
}
struct Linear {
  float scale, shift;
};
Linear join_linear(Linear a, Linear b) {
  return {a.scale * b.scale, a.shift * b.scale + b.shift};
}

struct TiledScan {
  BufferIndex scale = 0, shift = 0, end_scale = 0, end_shift = 0, previous = 0;
};
// Scans each tile in place, stores its end among the partials, and scans those.
TiledScan add_tiled_scan(KernelProgram& program) {
  TiledScan at;
  HostExprPool& pool = *program.info.exprs;
  at.scale = add_test_buffer(program, "scale", kF32, pool.n());
  at.shift = add_test_buffer(program, "shift", kF32, pool.n());
  at.end_scale = add_test_buffer(program, "end_scale", kF32, num_tiles(program));
  at.end_shift = add_test_buffer(program, "end_shift", kF32, num_tiles(program));
  at.previous = add_test_buffer(program, "previous", kF32, pool.n());
  {
    KernelBuilder b(program, "tiles", GroupKind::Tile);
    b.set_extent(pool.n());
    const ValueId base = b.group_base();
    const std::uint32_t l0 = b.add_local(ComputeType::F32), l1 = b.add_local(ComputeType::F32);
    b.elements();
    b.local_store(l0, b.load_linear(at.scale, base));
    b.local_store(l1, b.load_linear(at.shift, base));
    b.group();
    b.local_scan(l0, recurrence(b));
    b.store_at(at.end_scale, b.group_index(), b.local_last(l0));
    b.store_at(at.end_shift, b.group_index(), b.local_last(l1));
    b.elements();
    b.store_linear(at.scale, b.local_load(l0), base);
    b.store_linear(at.shift, b.local_load(l1), base);
    b.store_linear(at.previous, b.local_previous(l1, b.const_f32(-3)), base);
    b.finish();
  }
  {
    KernelBuilder b(program, "ends", GroupKind::Single, rt::KernelRole::Finish);
    b.finish_scan(b.const_i64(1), b.host_size(num_tiles(program)), {at.end_scale, at.end_shift},
                  recurrence(b));
    b.finish();
  }
  return at;
}

TEST_P(OrderedOnArch, ScansFloatsByTiles) {
  KernelProgram program;
  const TiledScan at = add_tiled_scan(program);
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : {1, 31, 1023, 1024, 1025, 5000, 100003, 1100000}) {
    const auto count = static_cast<std::size_t>(n);
    auto scales = test_floats(count, 22), shifts = test_floats(count, 23);
    for (float& x : scales) x = 1 + x * 0.001f;
    KernelRun run(program, *module, {.n = n});
    run.set(at.scale, scales);
    run.set(at.shift, shifts);
    run.run_all({3, 2});
    const auto got_scale = run.get<float>(at.scale, count),
               got_shift = run.get<float>(at.shift, count);
    const auto got_previous = run.get<float>(at.previous, count);
    const std::size_t num_tiles = (count + 1023) / 1024;
    std::vector<Linear> ends;
    for (std::size_t t = 0; t < num_tiles; ++t) {
      std::vector<Linear> tile;
      for (std::size_t i = t * 1024; i < std::min(count, (t + 1) * 1024); ++i) {
        tile.push_back({scales[i], shifts[i]});
      }
      ordered_scan(tile, join_linear);
      for (std::size_t i = 0; i < tile.size(); ++i) {
        ASSERT_EQ(got_scale[t * 1024 + i], tile[i].scale) << n << " " << i;
        ASSERT_EQ(got_shift[t * 1024 + i], tile[i].shift) << n << " " << i;
        ASSERT_EQ(got_previous[t * 1024 + i], i == 0 ? -3 : tile[i - 1].shift);
      }
      ends.push_back(tile.back());
    }
    ordered_scan(ends, join_linear);
    const auto got_ends = run.get<float>(at.end_shift, num_tiles);
    for (std::size_t t = 0; t < num_tiles; ++t)
      ASSERT_EQ(got_ends[t], ends[t].shift) << n << " " << t;
    ASSERT_TRUE(run.guards_are_whole());
  }
}

TEST_P(OrderedOnArch, ScansStoredRowsByAnOperation) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex x = add_test_buffer(program, "x", kF32, pool.mul(pool.rows(), pool.cols()));
  KernelBuilder b(program, "scan", GroupKind::Single, rt::KernelRole::Finish);
  b.finish_scan(b.host_size(pool.rows()), b.host_size(pool.cols()), {x}, b.combiner(ScalarOp::add));
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t cols : {1, 7, 1024, 1030, 2500, 1100000}) {
    const std::int64_t rows = cols > 100000 ? 1 : 3;
    const auto width = static_cast<std::size_t>(cols);
    const auto values = test_floats(static_cast<std::size_t>(rows) * width, 24);
    KernelRun run(program, *module, {.n = rows * cols, .rows = rows, .cols = cols});
    run.set(x, values);
    run.run(0);
    const auto got = run.get<float>(x, values.size());
    for (std::int64_t row = 0; row < rows; ++row) {
      const auto begin = values.begin() + row * cols;
      std::vector<float> want(begin, begin + cols);
      ordered_scan(want, [](float a, float c) { return a + c; });
      for (std::size_t i = 0; i < width; ++i) {
        ASSERT_EQ(got[static_cast<std::size_t>(row) * width + i], want[i]) << cols << " " << i;
      }
    }
    ASSERT_TRUE(run.guards_are_whole());
  }
}

}  // namespace
}  // namespace cinch::codegen
