// Reductions of hand-written kernels against the plain reference of the language's order, bit for
// bit: whole vectors through partials, rows of any length, masks, combiners of several values.
#include <bit>
#include <limits>

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

CINCH_ARCH_SUITE(ReduceOnArch);

// Whole-vector reduction of `in` by `op`, where `in` is also compared with a bound as the mask.
struct VectorReduce {
  KernelProgram program;
  BufferIndex in, mask, partials, result;
};

VectorReduce vector_reduce(DType dtype, ScalarOp op, bool masked, bool of_magnitudes) {
  VectorReduce r;
  HostExprPool& pool = *r.program.info.exprs;
  r.in = add_test_buffer(r.program, "in", dtype, pool.n());
  r.mask = add_test_buffer(r.program, "mask", kBool, pool.n(), 1);
  r.partials = add_test_buffer(r.program, "partials", dtype, num_tiles(r.program));
  r.result = add_test_buffer(r.program, "result", dtype, pool.const_int(1));
  KernelBuilder b(r.program, "sweep", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId loaded = b.load_linear(r.in, base);
  const ValueId x = of_magnitudes ? b.scalar(ScalarOp::abs, {loaded}) : loaded;
  const ValueId pred = masked ? b.load_linear(r.mask, base) : ValueId();
  const auto sum = b.reduce({x}, b.combiner(op), pred);
  b.group();
  b.store_at(r.partials, b.group_index(), sum[0]);
  b.finish();
  KernelBuilder f(r.program, "finish", GroupKind::Single, rt::KernelRole::Finish);
  const auto total =
      f.finish_reduce(f.host_size(num_tiles(r.program)), {r.partials}, f.combiner(op));
  f.store_at(r.result, f.const_i64(0), total[0]);
  f.finish();
  return r;
}

template <typename T, typename Op>
void check_vector_reduce(const std::string& arch, DType dtype, ScalarOp op, T identity,
                         const Op& reference, const std::vector<T>& data,
                         bool of_magnitudes = false) {
  for (bool masked : {false, true}) {
    VectorReduce r = vector_reduce(dtype, op, masked, of_magnitudes);
    const auto module = compile_for_test(r.program, arch);
    for (std::int64_t n : kLengths) {
      const auto count = static_cast<std::size_t>(n);
      std::vector<T> values(data.begin(), data.begin() + n);
      const auto words = test_words(count, 5);
      std::vector<std::uint64_t> bits(count);
      for (std::size_t i = 0; i < count; ++i) bits[i] = words[i] % 5 == 0;
      const auto expected = ordered_reduce<T>(
          count,
          [&](std::size_t i) {
            if (masked && !bits[i]) return std::optional<T>();
            return std::optional<T>(of_magnitudes ? lang::abs(values[i]) : values[i]);
          },
          reference);
      for (const Split& split : splits()) {
        KernelRun run(r.program, *module, {.n = n});
        run.set(r.in, values);
        run.set(r.mask, pack_reference(bits, 1));
        run.run_all(split);
        const T got = run.get<T>(r.result, 1)[0];
        T want = expected.value_or(identity);
        if constexpr (std::is_floating_point_v<T>) want = lang::canonical(want);
        EXPECT_EQ(lang::bits_of(got), lang::bits_of(want))
            << arch << " n=" << n << " masked=" << masked << " got " << got << " want " << want;
        EXPECT_TRUE(run.guards_are_whole());
      }
    }
  }
}

TEST_P(ReduceOnArch, SumsFloatsInTheFixedOrder) {
  check_vector_reduce<float>(
      GetParam(), kF32, ScalarOp::add, -0.0f, [](float a, float b) { return a + b; },
      test_floats(100003, 1));
}

TEST_P(ReduceOnArch, TakesExtremesOfFloatsThatHoldNan) {
  const auto data = test_floats(100003, 2, true);
  const float inf = std::numeric_limits<float>::infinity();
  check_vector_reduce<float>(
      GetParam(), kF32, ScalarOp::max, -inf, [](float a, float b) { return lang::max(a, b); },
      data);
  check_vector_reduce<float>(
      GetParam(), kF32, ScalarOp::min, inf, [](float a, float b) { return lang::min(a, b); }, data);
}

TEST_P(ReduceOnArch, TakesExtremesOfMagnitudes) {
  std::vector<float> data = test_floats(100003, 7, true);
  for (std::size_t i = 0; i < data.size() / 2; ++i) data[i] = i % 2 == 0 ? -0.0f : 0.0f;
  const float inf = std::numeric_limits<float>::infinity();
  check_vector_reduce<float>(
      GetParam(), kF32, ScalarOp::max, -inf, [](float a, float b) { return lang::max(a, b); }, data,
      true);
  check_vector_reduce<float>(
      GetParam(), kF32, ScalarOp::min, inf, [](float a, float b) { return lang::min(a, b); }, data,
      true);
}

TEST_P(ReduceOnArch, ReducesDoublesAndIntegers) {
  std::vector<double> doubles;
  for (float x : test_floats(100003, 3)) doubles.push_back(static_cast<double>(x) * 1.1);
  check_vector_reduce<double>(
      GetParam(), kF64, ScalarOp::mul, 1.0, [](double a, double b) { return a * b; }, doubles);
  std::vector<std::int64_t> longs;
  std::vector<std::uint32_t> words;
  for (std::uint64_t w : test_words(100003, 4)) {
    longs.push_back(static_cast<std::int64_t>(w));
    words.push_back(static_cast<std::uint32_t>(w));
  }
  check_vector_reduce<std::int64_t>(
      GetParam(), kI64, ScalarOp::min, INT64_MAX,
      [](std::int64_t a, std::int64_t b) { return std::min(a, b); }, longs);
  check_vector_reduce<std::uint32_t>(
      GetParam(), kU32, ScalarOp::bit_xor, 0u,
      [](std::uint32_t a, std::uint32_t b) { return a ^ b; }, words);
  check_vector_reduce<std::uint32_t>(
      GetParam(), kU32, ScalarOp::max, 0u,
      [](std::uint32_t a, std::uint32_t b) { return std::max(a, b); }, words);
}

// ---- combiners of several values ----

struct Weighted {
  float value;
  std::uint32_t place;
};
// Neither commutative nor associative, so that any change of order shows.
Weighted join_weighted(Weighted a, Weighted b) {
  return {a.value * 0.75f - b.value, a.place * 31u + b.place};
}

std::uint32_t weighted_combiner(KernelBuilder& b) {
  return b.combiner({ComputeType::F32, ComputeType::U32},
                    [&](std::span<const ValueId> x, std::span<const ValueId> y) {
                      return std::vector<ValueId>{b.sub(b.mul(x[0], b.const_f32(0.75f)), y[0]),
                                                  b.add(b.mul(x[1], b.const_u32(31)), y[1])};
                    });
}

struct RowReduce {
  KernelProgram program;
  BufferIndex in, mask, value, place, has;
};

// Rows of `r` x `c`: matrix shapes stand in for row lengths, so that one binary serves them all.
RowReduce row_reduce() {
  RowReduce r;
  HostExprPool& pool = *r.program.info.exprs;
  const HostExprId elems = pool.mul(pool.rows(), pool.cols());
  r.in = add_test_buffer(r.program, "in", kF32, elems);
  r.mask = add_test_buffer(r.program, "mask", kU8, elems);
  r.value = add_test_buffer(r.program, "value", kF32, pool.rows());
  r.place = add_test_buffer(r.program, "place", kU32, pool.rows());
  r.has = add_test_buffer(r.program, "has", kBool, pool.rows());
  KernelBuilder b(r.program, "rows", GroupKind::Row);
  b.set_rows(pool.rows(), pool.cols());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(r.in, base);
  const ValueId pred = b.scalar(ScalarOp::ne, {b.load_linear(r.mask, base), b.const_i32(0)});
  const auto out = b.reduce({x, b.column()}, weighted_combiner(b), pred);
  b.group();
  b.store_at(r.value, b.group_index(), b.select(out[2], out[0], b.const_f32(-1)));
  b.store_at(r.place, b.group_index(), b.select(out[2], out[1], b.const_u32(7)));
  b.store_at(r.has, b.group_index(), out[2]);
  b.finish();
  return r;
}

TEST_P(ReduceOnArch, JoinsTuplesAlongRowsOfAnyLength) {
  RowReduce r = row_reduce();
  const auto module = compile_for_test(r.program, GetParam());
  for (std::int64_t cols : {0, 1, 3, 31, 100, 512, 1000, 1024, 1025, 3000, 5000, 1300000}) {
    const std::int64_t rows = cols > 100000 ? 1 : 19;
    const auto count = static_cast<std::size_t>(rows * cols);
    const auto data = test_floats(count, 6);
    std::vector<std::uint8_t> mask(count);
    const auto words = test_words(count, 7);
    for (std::size_t i = 0; i < count; ++i) {
      // Row 2 takes part nowhere, row 3 once.
      const auto row = i / static_cast<std::size_t>(cols);
      mask[i] = row == 2   ? 0
                : row == 3 ? i % static_cast<std::size_t>(cols) == 0
                           : words[i] % 3 == 0;
    }
    for (const Split& split : splits()) {
      KernelRun run(r.program, *module, {.n = rows * cols, .rows = rows, .cols = cols});
      run.set(r.in, data);
      run.set(r.mask, mask);
      run.run(0, split);
      const auto values = run.get<float>(r.value, static_cast<std::size_t>(rows));
      const auto places = run.get<std::uint32_t>(r.place, static_cast<std::size_t>(rows));
      const auto has = run.get<std::uint8_t>(r.has, static_cast<std::size_t>(rows));
      for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
        const std::size_t begin = row * static_cast<std::size_t>(cols);
        const auto want = ordered_reduce<Weighted>(
            static_cast<std::size_t>(cols),
            [&](std::size_t i) {
              return mask[begin + i]
                         ? std::optional<Weighted>({data[begin + i], static_cast<std::uint32_t>(i)})
                         : std::nullopt;
            },
            join_weighted);
        EXPECT_EQ(has[row], want.has_value());
        EXPECT_EQ(std::bit_cast<std::uint32_t>(values[row]),
                  std::bit_cast<std::uint32_t>(want ? lang::canonical(want->value) : -1.0f))
            << GetParam() << " cols=" << cols << " row=" << row;
        EXPECT_EQ(places[row], want ? want->place : 7u);
      }
      EXPECT_TRUE(run.guards_are_whole());
    }
  }
}

// A member that is the same for all elements of a row is computed once per row of a whole tile, and
// enters the members that vary.
struct Counted {
  float value;
  std::uint32_t count;
  float scaled;
};
Counted join_counted(Counted a, Counted b) {
  return {a.value * 0.75f - b.value * static_cast<float>(b.count), a.count * 3 + b.count,
          a.scaled / static_cast<float>(a.count) + b.value};
}

TEST_P(ReduceOnArch, JoinsTuplesWithAMemberThatIsTheSameInARow) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const HostExprId tiles = num_tiles(program);
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  const BufferIndex value = add_test_buffer(program, "value", kF32, tiles);
  const BufferIndex number = add_test_buffer(program, "count", kU32, tiles);
  const BufferIndex scaled = add_test_buffer(program, "scaled", kF32, tiles);
  KernelBuilder b(program, "tiles", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  const std::uint32_t combiner = b.combiner(
      {ComputeType::F32, ComputeType::U32, ComputeType::F32},
      [&](std::span<const ValueId> x, std::span<const ValueId> y) {
        const auto real = [&](ValueId id) { return b.convert(id, ComputeType::F32); };
        return std::vector<ValueId>{b.sub(b.mul(x[0], b.const_f32(0.75f)), b.mul(y[0], real(y[1]))),
                                    b.add(b.mul(x[1], b.const_u32(3)), y[1]),
                                    b.add(b.scalar(ScalarOp::div, {x[2], real(x[1])}), y[0])};
      });
  b.elements();
  const ValueId x = b.load_linear(in, base);
  const auto out = b.reduce({x, b.const_u32(2), x}, combiner);
  b.group();
  b.store_at(value, b.group_index(), out[0]);
  b.store_at(number, b.group_index(), out[1]);
  b.store_at(scaled, b.group_index(), out[2]);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (const std::size_t n : {1u, 200u, 1023u, 1024u, 1025u, 5000u}) {
    const auto data = test_floats(n, 8);
    KernelRun run(program, *module, {.n = static_cast<std::int64_t>(n)});
    run.set(in, data);
    run.run(0, {2, 2});
    const std::size_t count = (n + 1023) / 1024;
    const auto values = run.get<float>(value, count);
    const auto counts = run.get<std::uint32_t>(number, count);
    const auto scales = run.get<float>(scaled, count);
    for (std::size_t tile = 0; tile < count; ++tile) {
      const std::size_t begin = tile * 1024, len = std::min<std::size_t>(n - begin, 1024);
      const auto want = ordered_reduce<Counted>(
          len,
          [&](std::size_t i) {
            return std::optional<Counted>({data[begin + i], 2u, data[begin + i]});
          },
          join_counted);
      ASSERT_EQ(counts[tile], want->count) << GetParam() << " n=" << n << " tile " << tile;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[tile]),
                std::bit_cast<std::uint32_t>(lang::canonical(want->value)));
      ASSERT_EQ(std::bit_cast<std::uint32_t>(scales[tile]),
                std::bit_cast<std::uint32_t>(lang::canonical(want->scaled)));
    }
    ASSERT_TRUE(run.guards_are_whole());
  }
}

TEST_P(ReduceOnArch, SumsRowsAndUsesTheSumInALaterSection) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const HostExprId elems = pool.mul(pool.rows(), pool.cols());
  const BufferIndex in = add_test_buffer(program, "in", kF32, elems);
  const BufferIndex out = add_test_buffer(program, "out", kF32, elems);
  KernelBuilder b(program, "center", GroupKind::Row);
  b.set_rows(pool.rows(), pool.cols());
  const ValueId base = b.group_base();
  b.elements();
  const auto sum = b.reduce({b.load_linear(in, base)}, b.combiner(ScalarOp::add));
  b.group();
  const ValueId mean =
      b.scalar(ScalarOp::div, {sum[0], b.convert(b.group_len(), ComputeType::F32)});
  b.elements();
  b.store_linear(out, b.sub(b.load_linear(in, base), mean), base);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t cols : {1, 5, 33, 1024, 1500, 9000}) {
    const std::size_t width = static_cast<std::size_t>(cols);
    const auto data = test_floats(7 * width, 8);
    KernelRun run(program, *module, {.n = 7 * cols, .rows = 7, .cols = cols});
    run.set(in, data);
    run.run(0, {2, 2});
    const auto got = run.get<float>(out, 7 * width);
    for (std::size_t row = 0; row < 7; ++row) {
      const float total = *ordered_reduce<float>(
          width, [&](std::size_t i) { return std::optional<float>(data[row * width + i]); },
          [](float a, float b) { return a + b; });
      for (std::size_t i = 0; i < width; ++i) {
        const float want = data[row * width + i] - total / static_cast<float>(cols);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(got[row * width + i]),
                  std::bit_cast<std::uint32_t>(want));
      }
    }
    EXPECT_TRUE(run.guards_are_whole());
  }
}

// Partials of a combiner: parts without elements are left out of the final reduction.
TEST_P(ReduceOnArch, FinishesPartialTuplesThatMayBeEmpty) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex value = add_test_buffer(program, "value", kF32, pool.n());
  const BufferIndex place = add_test_buffer(program, "place", kU32, pool.n());
  const BufferIndex has = add_test_buffer(program, "has", kBool, pool.n());
  const BufferIndex out_value = add_test_buffer(program, "out_value", kF32, pool.const_int(1));
  const BufferIndex out_place = add_test_buffer(program, "out_place", kU32, pool.const_int(1));
  const BufferIndex out_has = add_test_buffer(program, "out_has", kBool, pool.const_int(1));
  KernelBuilder b(program, "finish", GroupKind::Single, rt::KernelRole::Finish);
  const auto out =
      b.finish_reduce(b.host_size(pool.n()), {value, place, has}, weighted_combiner(b));
  b.store_at(out_value, b.const_i64(0), out[0]);
  b.store_at(out_place, b.const_i64(0), out[1]);
  b.store_at(out_has, b.const_i64(0), out[2]);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : kLengths) {
    const auto count = static_cast<std::size_t>(n);
    const auto values = test_floats(count, 9);
    std::vector<std::uint32_t> places(count);
    std::vector<std::uint8_t> flags(count);
    const auto words = test_words(count, 10);
    for (std::size_t i = 0; i < count; ++i) {
      places[i] = static_cast<std::uint32_t>(words[i]);
      flags[i] = n != 31 && words[i] >> 63;
    }
    KernelRun run(program, *module, {.n = n});
    run.set(value, values);
    run.set(place, places);
    run.set(has, flags);
    run.run(0);
    const auto want = ordered_reduce<Weighted>(
        count,
        [&](std::size_t i) {
          return flags[i] ? std::optional<Weighted>({values[i], places[i]}) : std::nullopt;
        },
        join_weighted);
    EXPECT_EQ(run.get<std::uint8_t>(out_has, 1)[0], want.has_value()) << n;
    // 0 where nothing takes part.
    EXPECT_EQ(std::bit_cast<std::uint32_t>(run.get<float>(out_value, 1)[0]),
              std::bit_cast<std::uint32_t>(want ? lang::canonical(want->value) : 0.0f))
        << n;
    EXPECT_EQ(run.get<std::uint32_t>(out_place, 1)[0], want ? want->place : 0u);
  }
}

}  // namespace
}  // namespace cinch::codegen
