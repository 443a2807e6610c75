// Draws of kernels against the language's scalar functions; status words; counted accesses; formula
// of the bytes that kernels touch.
#include <bit>
#include <cmath>

#include "codegen/kir/cost.h"
#include "runtime/core/lang.h"
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

CINCH_ARCH_SUITE(DrawsOnArch);

struct Draws {
  KernelProgram program;
  BufferIndex in, words, uniforms, normals, places, rounded, rounded64, group_words;
};

// Rows draw by element plus an offset (staged) or by a shuffled index (lane by lane).
Draws draws(bool runs) {
  Draws d;
  HostExprPool& pool = *d.program.info.exprs;
  const HostExprId elems = pool.mul(pool.rows(), pool.cols());
  d.in = add_test_buffer(d.program, "in", kF32, elems);
  d.words = add_test_buffer(d.program, "words", kU32, elems);
  d.uniforms = add_test_buffer(d.program, "uniforms", kF32, elems);
  d.normals = add_test_buffer(d.program, "normals", kF32, elems);
  d.places = add_test_buffer(d.program, "places", kU32, elems);
  d.rounded = add_test_buffer(d.program, "rounded", kF32, elems);
  d.rounded64 = add_test_buffer(d.program, "rounded64", kF64, elems);
  d.group_words = add_test_buffer(d.program, "group_words", kU32, pool.rows());
  KernelBuilder b(d.program, "draw", GroupKind::Row);
  b.set_rows(pool.rows(), pool.cols());
  const ValueId base = b.group_base();
  const ValueId iteration = b.host_size(pool.n());
  b.elements();
  const ValueId index = runs ? b.add(b.element(), b.const_u32(5))
                             : b.scalar(ScalarOp::mul, {b.element(), b.const_u32(0x9e3779b1u)});
  const ValueId x = b.load_linear(d.in, base);
  b.store_linear(d.words, b.random_bits({1, false}, index), base);
  b.store_linear(d.uniforms, b.random({2, true}, index, iteration), base);
  b.store_linear(d.normals, b.normal({3, false}, index), base);
  b.store_linear(d.places, b.random_index({4, true}, b.element(), b.host_size(elems)), base);
  b.store_linear(d.rounded, b.stochastic_round({5, false}, x, index), base);
  b.store_linear(d.rounded64, b.stochastic_round({6, false}, b.convert(x, ComputeType::F64), index),
                 base);
  b.group();
  b.store_at(d.group_words, b.group_index(),
             b.random_bits({7, false}, b.convert(b.group_index(), ComputeType::U32)));
  b.finish();
  return d;
}

TEST_P(DrawsOnArch, DrawWhatTheLanguageSays) {
  for (bool runs : {true, false}) {
    Draws d = draws(runs);
    const auto module = compile_for_test(d.program, GetParam());
    for (std::int64_t cols : {1, 3, 16, 37, 1023, 1024, 2500}) {
      const std::int64_t rows = 9;
      const auto count = static_cast<std::size_t>(rows * cols);
      auto values = test_floats(count, 41);
      // Ties of the first 16 bits: halves and their multiples of 2^-16.
      for (std::size_t i = 0; i < count; i += 2) {
        values[i] = static_cast<float>(test_words(1, i)[0] % 65536) * 0x1p-16f;
      }
      KernelRun run(d.program, *module, {.n = 77, .rows = rows, .cols = cols});
      run.set(d.in, values);
      run.run(0, {2, 2});
      const auto words = run.get<std::uint32_t>(d.words, count);
      const auto uniforms = run.get<float>(d.uniforms, count);
      const auto normals = run.get<float>(d.normals, count);
      const auto places = run.get<std::uint32_t>(d.places, count);
      const auto rounded = run.get<float>(d.rounded, count);
      const auto rounded64 = run.get<double>(d.rounded64, count);
      const auto stream = [&](std::uint32_t site, bool shared) {
        return lang::draw_stream(run.draw, site, shared);
      };
      const auto permutation = lang::index_permutation(stream(4, true), count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto element = static_cast<std::uint32_t>(i);
        const std::uint32_t index = runs ? element + 5 : element * 0x9e3779b1u;
        ASSERT_EQ(words[i], lang::random_bits(stream(1, false), index)) << cols << " " << i;
        ASSERT_EQ(uniforms[i], lang::random(stream(2 + 77, true), index));
        ASSERT_EQ(std::bit_cast<std::uint32_t>(normals[i]),
                  std::bit_cast<std::uint32_t>(lang::normal(stream(3, false), index)))
            << GetParam() << " " << cols << " " << i;
        ASSERT_EQ(places[i], lang::random_index(permutation, element));
        ASSERT_EQ(std::bit_cast<std::uint32_t>(rounded[i]),
                  std::bit_cast<std::uint32_t>(
                      lang::stochastic_round(values[i], stream(5, false), index)));
        ASSERT_EQ(rounded64[i],
                  lang::stochastic_round(static_cast<double>(values[i]), stream(6, false), index));
      }
      const auto group_words = run.get<std::uint32_t>(d.group_words, 9);
      for (std::uint32_t g = 0; g < 9; ++g) {
        ASSERT_EQ(group_words[g], lang::random_bits(stream(7, false), g));
      }
      ASSERT_TRUE(run.guards_are_whole());
    }
  }
}

// ---- rounding to integers ----

struct IntRounding {
  DType dtype;
  bool is_bounded;  // to what the integer and fixed point hold, before it is rounded
  BufferIndex out;
};

// The numbers that an integer of the type and fixed point both hold.
std::pair<float, float> fixed_bounds(DType dtype) {
  const float top =
      std::min(32766.0f, std::ldexp(1.0f, dtype.bits - (is_signed_int(dtype) ? 1 : 0)) - 1);
  return {is_signed_int(dtype) ? std::max(-top - 1, -32766.0f) : 0.0f, top};
}

// The value behind language.md's conversion, as 64 bits.
std::int64_t converted(float rounded, DType to) {
  const double top = std::ldexp(1.0, to.bits - (is_signed_int(to) ? 1 : 0)) - 1;
  const double low = is_signed_int(to) ? -top - 1 : 0;
  if (std::isnan(rounded)) return 0;
  return static_cast<std::int64_t>(std::min(std::max(static_cast<double>(rounded), low), top));
}

// Values that meet the draw from both sides: equal to it, a hair above, whole numbers, the ends of
// the integers and of fixed point, and what is no number. Fixed point serves vectors that hold none
// of these: every other 64 values are such, up to the integers' ends.
std::vector<float> values_to_round(std::size_t count, const lang::DrawStream& stream) {
  auto values = test_floats(count, 43);
  const float special[] = {
      0,        -0.0f,         1,        -1,       NAN,    INFINITY, -INFINITY,
      16383.5f, -16384,        16384.5f, 32767.5f, -32769, 65535.5f, 2147483648.0f,
      -3e9f,    4294967296.0f, 1e-40f,   -1e-40f,  7.5f,   -8.5f,    127.999f};
  const float within[] = {0,        1,         -1,       1.25f,     -1.75f,   2.5f,     -2.5f,
                          127.3f,   -128.6f,   255.7f,   4095.6f,   -4096.4f, 8191.7f,  -8192.2f,
                          16382.9f, -16383.9f, 16384.6f, -16385.3f, 32766.7f, -32766.7f};
  for (std::size_t i = 0; i < count; ++i) {
    if (i / 64 % 2 == 1) {
      // Two digits of its own each, which no draw of 16 bits is likely to equal.
      if (i % 2 == 0) values[i] = within[i / 2 % std::size(within)];
      values[i] = std::clamp(values[i], -32766.9f, 32766.9f);
      continue;
    }
    const auto half = static_cast<float>(
        lang::random_half(stream, lang::kHalfPlane, static_cast<std::uint32_t>(i)));
    const float whole = static_cast<float>(i % 7), sign = i % 3 == 0 ? -1.0f : 1.0f;
    if (i % 4 == 0) values[i] = special[i / 4 % std::size(special)];
    if (i % 4 == 1) values[i] = sign * (whole + half * 0x1p-16f);
    if (i % 4 == 2) values[i] = sign * (half + 0.25f + static_cast<float>(i % 2) / 2) * 0x1p-16f;
  }
  return values;
}

TEST_P(DrawsOnArch, RoundToIntegersAsRoundingThenConvertingDoes) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  std::vector<IntRounding> kinds;
  for (const DTypeKind kind : {DTypeKind::UInt, DTypeKind::Int}) {
    for (const std::uint8_t bits : {2, 4, 8, 13, 14, 15, 16, 31, 32}) {
      const DType dtype{kind, bits};
      for (const bool is_bounded : {false, true}) {
        kinds.push_back({dtype, is_bounded, add_test_buffer(program, "out", kI64, pool.n())});
      }
    }
  }
  KernelBuilder b(program, "round", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(in, base);
  const ValueId rounded_freely = b.stochastic_round({5, false}, x, b.element());
  for (const IntRounding& kind : kinds) {
    const auto [low, top] = fixed_bounds(kind.dtype);
    const ValueId bounded = b.scalar(ScalarOp::clamp, {x, b.const_f32(low), b.const_f32(top)});
    const ValueId rounded =
        kind.is_bounded ? b.stochastic_round({5, false}, bounded, b.element()) : rounded_freely;
    b.store_linear(kind.out, b.convert(b.convert(rounded, kF32, kind.dtype), ComputeType::I64),
                   base);
  }
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : {7, 1024, 3000}) {
    KernelRun run(program, *module, {.n = n});
    const auto stream = lang::draw_stream(run.draw, 5, false);
    const auto values = values_to_round(static_cast<std::size_t>(n), stream);
    run.set(in, values);
    run.run(0, {1, 2});
    for (const IntRounding& kind : kinds) {
      const auto got = run.get<std::int64_t>(kind.out, values.size());
      for (std::uint32_t i = 0; i < values.size(); ++i) {
        const auto [low, top] = fixed_bounds(kind.dtype);
        const float x = kind.is_bounded ? lang::clamp(values[i], low, top) : values[i];
        const float by_language = lang::stochastic_round(x, stream, i);
        ASSERT_EQ(got[i], converted(by_language, kind.dtype))
            << dtype_name(kind.dtype) << " of " << values[i] << " at " << i;
      }
    }
    ASSERT_TRUE(run.guards_are_whole());
  }
}

// A check of what is rounded must not see what only the quick look at a tile computes for lanes
// that tie or lie beyond fixed point.
TEST_P(DrawsOnArch, ChecksOfRoundedIntegersSeeTheRightOnes) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  const BufferIndex out = add_test_buffer(program, "out", kI32, pool.n());
  KernelBuilder b(program, "round", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(in, base);
  const ValueId rounded = b.stochastic_round({5, false}, x, b.element());
  const ValueId whole = b.convert(rounded, kF32, kI32);
  b.fail_if(b.lt(whole, b.const_i32(35000)), "too small");
  b.fail_if(b.lt(b.const_i32(35001), whole), "too large");
  b.store_linear(out, whole, base);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  KernelRun run(program, *module, {.n = 4096});
  run.set(in, std::vector<float>(4096, 35000.5f));
  run.run(0, {1, 2});
  EXPECT_EQ(run.status[rt::kStatusFailed], 0u);
  for (const std::int32_t got : run.get<std::int32_t>(out, 4096)) {
    EXPECT_TRUE(got == 35000 || got == 35001) << got;
  }
}

// ---- status ----

TEST_P(DrawsOnArch, ReportsFlagsAndTheLowestFailure) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  program.info.params.push_back({.name = "bound", .dtype = kF32});
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  KernelBuilder b(program, "check", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(in, base);
  b.flag_nonfinite(x);
  b.fail_if(b.lt(b.const_f32(1e6f), x), "first");
  b.fail_if(b.lt(x, b.const_f32(-1)), "second");
  b.group();
  b.fail_if(b.lt(b.const_i64(2), b.group_index()), "third");
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  const auto status = [&](std::int64_t n, float value, std::size_t at) {
    KernelRun run(program, *module, {.n = n});
    std::vector<float> values(static_cast<std::size_t>(n), 0.5f);
    if (at < values.size()) values[at] = value;
    run.set(in, values);
    run.run(0, {1, 2});
    return std::pair(run.status[rt::kStatusFlags], run.status[rt::kStatusFailed]);
  };
  using Words = std::pair<std::uint32_t, std::uint32_t>;
  EXPECT_EQ(status(2000, 0, 0), Words(0, 0));
  EXPECT_EQ(status(2000, std::nanf(""), 1999), Words(rt::kFlagNonFinite, 0));
  // The lanes beyond the end hold zeros, which the checks must not see; infinity fails the first.
  EXPECT_EQ(status(1001, INFINITY, 1000), Words(rt::kFlagNonFinite, 1));
  EXPECT_EQ(status(33, -2, 32), Words(0, 2));
  EXPECT_EQ(status(5000, -2, 32), Words(0, 2));
  EXPECT_EQ(status(5000, 0, 0), Words(0, 3));
}

// ---- actual extents ----

TEST_P(DrawsOnArch, LeavesGroupsBeyondTheActualExtentAlone) {
  for (bool rows : {false, true}) {
    KernelProgram program;
    HostExprPool& pool = *program.info.exprs;
    const BufferIndex count = add_test_buffer(program, "count", kU32, pool.const_int(1));
    const BufferIndex out = add_test_buffer(program, "out", kU8, pool.n());
    KernelBuilder b(program, "fill", rows ? GroupKind::Row : GroupKind::Tile);
    if (rows) {
      b.set_rows(pool.ceil_div(pool.n(), pool.const_int(10)), pool.const_int(10));
    } else {
      b.set_extent(pool.n());
    }
    b.set_extent_value(
        b.in_kernel([&] { return b.convert(b.load_at(count, b.const_i64(0)), ComputeType::I64); }));
    const ValueId base = b.group_base();
    b.elements();
    b.store_linear(out, b.const_i32(7), base);
    b.finish();
    const auto module = compile_for_test(program, GetParam());
    for (std::uint32_t actual : {0u, 1u, 33u, 300u, 1024u, 1025u, 2999u, 3000u}) {
      if (rows && actual > 300) continue;
      for (const Split& split : splits()) {
        KernelRun run(program, *module, {.n = 3000});
        run.set(count, std::vector<std::uint32_t>{actual});
        run.zero(out);
        run.run(0, split);
        std::vector<std::uint8_t> want(3000);
        std::fill_n(want.begin(), rows ? actual * 10 : actual, std::uint8_t{7});
        EXPECT_EQ(run.get<std::uint8_t>(out, 3000), want) << actual;
      }
    }
  }
}

// ---- counted bytes ----

TEST_P(DrawsOnArch, CountsTheBytesThatTheFormulasPromise) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  const BufferIndex signs = add_test_buffer(program, "signs", kBool, pool.n(), 1);
  const BufferIndex codes = add_test_buffer(program, "codes", *make_uint(3), pool.n(), 3);
  const BufferIndex sums =
      add_test_buffer(program, "sums", kF64, pool.ceil_div(pool.n(), pool.const_int(1024)));
  KernelBuilder b(program, "sweep", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(in, base);
  b.store_linear(signs, b.lt(x, b.const_f32(0)), base);
  const auto sum = b.reduce({b.convert(x, ComputeType::F64)}, b.combiner(ScalarOp::add));
  b.group();
  b.store_at(sums, b.group_index(), sum[0]);
  b.elements();
  // Read again within the tile: counts once.
  b.store_linear(codes, b.convert(b.load_linear(in, base), kF32, *make_uint(3)), base);
  b.finish();
  kir::annotate_costs(program);
  const auto module = compile_for_test(program, GetParam(), true);
  for (std::int64_t n : kLengths) {
    KernelRun run(program, *module, {.n = n});
    run.set(in, test_floats(static_cast<std::size_t>(n), 51));
    run.run(0, {2, 2});
    const rt::KernelInfo& info = program.kernels[0].info;
    const auto bytes = [&](HostExprId formula) {
      return static_cast<std::uint64_t>(program.info.exprs->eval_int(formula, {.n = n}).value());
    };
    EXPECT_EQ((run.counters[0] + 7) / 8, bytes(info.bytes_read)) << n;
    EXPECT_EQ((run.counters[1] + 7) / 8, bytes(info.bytes_written)) << n;
  }
}

}  // namespace
}  // namespace cinch::codegen
