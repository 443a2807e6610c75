// Loads and stores of every storage against plain code: packed fields of any width, rows that begin
// inside a byte, limits, narrow floats, gathers, scatters, histograms, ordered adds, row sorts.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

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

CINCH_ARCH_SUITE(MemoryOnArch);

std::uint64_t low_bits(std::uint64_t x, int bits) {
  return bits == 64 ? x : x & ((1ull << bits) - 1);
}
std::uint64_t sign_extended(std::uint64_t x, int bits) {
  const int unused = 64 - bits;
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(x << unused) >> unused);
}

// One kernel per dtype: wide integers to packed ("pack"), packed to wide ("unpack").
struct Packing {
  KernelProgram program;
  struct Buffers {
    DType dtype;
    BufferIndex wide, packed, back;
  };
  std::vector<Buffers> buffers;
};

Packing packing(const std::vector<DType>& dtypes, bool rows) {
  Packing p;
  HostExprPool& pool = *p.program.info.exprs;
  const HostExprId elems = rows ? pool.mul(pool.rows(), pool.cols()) : pool.n();
  for (DType dtype : dtypes) {
    const DType wide = is_bool(dtype) ? kU8 : is_signed_int(dtype) ? kI64 : kU64;
    const DType narrow = is_bool(dtype) ? kBool : dtype;
    const BufferIndex in = add_test_buffer(p.program, "in", wide, elems);
    const BufferIndex packed = add_test_buffer(p.program, "packed", narrow, elems, narrow.bits);
    const BufferIndex out = add_test_buffer(p.program, "out", wide, elems);
    p.buffers.push_back({dtype, in, packed, out});
    for (bool is_unpack : {false, true}) {
      KernelBuilder b(p.program, (is_unpack ? "unpack_" : "pack_") + dtype_name(dtype),
                      rows ? GroupKind::Row : GroupKind::Tile);
      if (rows) {
        b.set_rows(pool.rows(), pool.cols());
      } else {
        b.set_extent(pool.n());
      }
      b.kernel().info.group_multiple = rows ? 8 : 1;
      const ValueId base = b.group_base();
      b.elements();
      if (is_unpack) {
        b.store_linear(out, b.convert(b.load_linear(packed, base), narrow, wide), base);
      } else {
        b.store_linear(packed, b.convert(b.load_linear(in, base), wide, narrow), base);
      }
      b.finish();
    }
  }
  return p;
}

void check_packing(const std::string& arch, const std::vector<DType>& dtypes, bool rows,
                   const std::vector<std::pair<std::int64_t, std::int64_t>>& shapes) {
  Packing p = packing(dtypes, rows);
  const auto module = compile_for_test(p.program, arch);
  for (auto [r, c] : shapes) {
    const auto count = static_cast<std::size_t>(r * c);
    std::vector<std::vector<std::uint64_t>> values;
    std::vector<std::vector<std::uint8_t>> packed;
    for (std::size_t d = 0; d < dtypes.size(); ++d) {
      values.push_back(test_words(count, d));
      for (std::uint64_t& v : values[d]) {
        v = low_bits(v, dtypes[d].bits);
        if (is_signed_int(dtypes[d])) v = sign_extended(v, dtypes[d].bits);
      }
      packed.push_back(pack_reference(values[d], dtypes[d].bits));
    }
    for (const Split& split : splits()) {
      KernelRun run(p.program, *module, {.n = r * c, .rows = r, .cols = c});
      for (std::size_t d = 0; d < dtypes.size(); ++d) {
        const Packing::Buffers& buffers = p.buffers[d];
        const std::vector<std::uint8_t> bytes(values[d].begin(), values[d].end());
        if (is_bool(dtypes[d])) {
          run.set(buffers.wide, bytes);
        } else {
          run.set(buffers.wide, values[d]);
        }
        run.run(2 * d, split);
        EXPECT_EQ(run.get_bytes(buffers.packed), packed[d])
            << arch << " pack " << dtype_name(dtypes[d]) << " " << r << " x " << c;
        run.run(2 * d + 1, split);
        if (is_bool(dtypes[d])) {
          EXPECT_EQ(run.get<std::uint8_t>(buffers.back, count), bytes) << r << " x " << c;
        } else {
          EXPECT_EQ(run.get<std::uint64_t>(buffers.back, count), values[d])
              << arch << " unpack " << dtype_name(dtypes[d]) << " " << r << " x " << c;
        }
      }
      ASSERT_TRUE(run.guards_are_whole()) << arch << " " << r << " x " << c;
    }
  }
}

std::vector<DType> packed_dtypes() {
  std::vector<DType> dtypes = {kBool};
  for (int bits : {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 15}) dtypes.push_back(*make_uint(bits));
  for (int bits : {2, 3, 4, 7, 12}) dtypes.push_back(*make_int(bits));
  return dtypes;
}
std::vector<DType> wide_dtypes() {
  return {*make_uint(17),
          *make_uint(31),
          *make_uint(33),
          *make_uint(40),
          *make_uint(63),
          *make_int(20),
          *make_int(33),
          *make_int(61),
          kU8,
          kI8,
          kU16,
          kI16,
          kU32,
          kI32,
          kU64};
}

TEST_P(MemoryOnArch, PacksVectorsOfEveryWidth) {
  std::vector<std::pair<std::int64_t, std::int64_t>> shapes;
  for (std::int64_t n : kLengths) shapes.emplace_back(n, 1);
  check_packing(GetParam(), packed_dtypes(), false, shapes);
  check_packing(GetParam(), wide_dtypes(), false, shapes);
}

TEST_P(MemoryOnArch, PacksRowsThatBeginInsideAByte) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> shapes = {
      {1, 1}, {3, 5}, {17, 3}, {25, 33}, {16, 1023}, {9, 1025}, {11, 3001}};
  check_packing(GetParam(), packed_dtypes(), true, shapes);
  check_packing(GetParam(), wide_dtypes(), true, shapes);
}

// ---- narrow floats ----

struct Narrowed {
  std::uint32_t stored;
  float value;
};
// The bits that a narrow float has in memory, and its value; f64 keeps the value.
Narrowed narrowed(DType dtype, float x) {
  switch (dtype.kind) {
    case DTypeKind::F16:
      return {lang::to_f16(x), lang::from_f16(lang::to_f16(x))};
    case DTypeKind::BF16:
      return {lang::to_bf16(x), lang::from_bf16(lang::to_bf16(x))};
    case DTypeKind::F8E4M3:
      return {lang::to_f8e4m3(x), lang::from_f8e4m3(lang::to_f8e4m3(x))};
    case DTypeKind::F8E5M2:
      return {lang::to_f8e5m2(x), lang::from_f8e5m2(lang::to_f8e5m2(x))};
    default:
      return {0, x};
  }
}

TEST_P(MemoryOnArch, ConvertsNarrowFloatsAtLoadAndStore) {
  const std::vector<DType> dtypes = {kF16, kBF16, kF8E4M3, kF8E5M2, kF64};
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  std::vector<std::pair<BufferIndex, BufferIndex>> buffers;
  for (DType dtype : dtypes) {
    const BufferIndex narrow = add_test_buffer(program, "narrow", dtype, pool.n());
    const BufferIndex back = add_test_buffer(program, "back", kF32, pool.n());
    buffers.emplace_back(narrow, back);
    KernelBuilder b(program, "store_" + dtype_name(dtype), GroupKind::Tile);
    b.set_extent(pool.n());
    const ValueId base = b.group_base();
    b.elements();
    const ValueId x = b.load_linear(in, base);
    b.store_linear(narrow, b.convert(x, kF32, dtype), base);
    b.elements();
    b.store_linear(back, b.convert(b.load_linear(narrow, base), dtype, kF32), base);
    b.finish();
  }
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : kLengths) {
    const auto count = static_cast<std::size_t>(n);
    auto values = test_floats(count, 12, true);
    for (std::size_t i = 0; i < count; i += 3) {
      values[i] = std::bit_cast<float>(static_cast<std::uint32_t>(test_words(1, i)[0]));
    }
    KernelRun run(program, *module, {.n = n});
    run.set(in, values);
    run.run_all({2, 2});
    for (std::size_t d = 0; d < dtypes.size(); ++d) {
      const auto back = run.get<float>(buffers[d].second, count);
      const auto bytes = run.get_bytes(buffers[d].first);
      for (std::size_t i = 0; i < count; ++i) {
        const float x = values[i];
        const auto [stored, want] = narrowed(dtypes[d], x);
        ASSERT_EQ(std::bit_cast<std::uint32_t>(back[i]),
                  std::bit_cast<std::uint32_t>(lang::canonical(want)))
            << dtype_name(dtypes[d]) << " of " << x;
        if (dtypes[d].bits == 16) {
          ASSERT_EQ(bytes[2 * i] | bytes[2 * i + 1] << 8, static_cast<int>(stored));
        } else if (dtypes[d].bits == 8) {
          ASSERT_EQ(bytes[i], stored);
        }
      }
    }
    EXPECT_TRUE(run.guards_are_whole());
  }
}

// ---- limits ----

struct RowBuffers {
  BufferIndex in = 0, codes = 0, signs = 0, out = 0, sums = 0, code_sums = 0;
};
// A kernel over a vector of n elements cut into rows of c.
RowBuffers add_rows_kernel(KernelProgram& program) {
  RowBuffers at;
  HostExprPool& pool = *program.info.exprs;
  at.in = add_test_buffer(program, "in", kF32, pool.n());
  at.codes = add_test_buffer(program, "codes", *make_uint(3), pool.n(), 3);
  at.signs = add_test_buffer(program, "signs", kBool, pool.n(), 1);
  at.out = add_test_buffer(program, "out", kF32, pool.n());
  at.sums = add_test_buffer(program, "sums", kF32, pool.ceil_div(pool.n(), pool.cols()));
  at.code_sums = add_test_buffer(program, "code_sums", kI32, pool.ceil_div(pool.n(), pool.cols()));
  KernelBuilder b(program, "rows", GroupKind::Row);
  b.set_rows(pool.ceil_div(pool.n(), pool.cols()), pool.cols());
  b.kernel().info.group_multiple = 8;
  const ValueId base = b.group_base();
  b.group();
  const ValueId left = b.sub(b.host_size(pool.n()), base);
  b.elements();
  const ValueId x = b.load_linear(at.in, base, left);
  b.store_linear(at.out, b.add(x, b.const_f32(1)), base, left);
  b.store_linear(at.signs, b.lt(x, b.const_f32(0)), base, left);
  const ValueId code = b.convert(b.scalar(ScalarOp::abs, {x}), kF32, *make_uint(3));
  b.store_linear(at.codes, code, base, left);
  const auto sum = b.reduce({x}, b.combiner(ScalarOp::max));
  b.elements();
  const auto code_sum = b.reduce({b.load_linear(at.codes, base, left)}, b.combiner(ScalarOp::add));
  b.group();
  b.store_at(at.sums, b.group_index(), sum[0]);
  b.store_at(at.code_sums, b.group_index(), code_sum[0]);
  b.finish();
  return at;
}

// What lies beyond n reads as 0 and is not written.
TEST_P(MemoryOnArch, StopsAtLimits) {
  KernelProgram program;
  const auto [in, codes, signs, out, sums, code_sums] = add_rows_kernel(program);
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t cols : {1, 7, 64, 1000, 2500}) {
    for (std::int64_t n : {0, 1, 31, 1000, 1025, 5000, 20001}) {
      const auto count = static_cast<std::size_t>(n);
      const auto width = static_cast<std::size_t>(cols);
      const auto values = test_floats(count, 13);
      for (const Split& split : splits()) {
        KernelRun run(program, *module, {.n = n, .rows = 1, .cols = cols});
        run.set(in, values);
        run.run(0, split);
        std::vector<std::uint64_t> want_codes(count), want_signs(count);
        std::vector<float> want_out(count);
        const std::size_t rows = (count + width - 1) / width;
        std::vector<float> want_max(rows, -INFINITY);
        std::vector<std::int32_t> want_sums(rows, 0);
        for (std::size_t i = 0; i < count; ++i) {
          want_codes[i] = static_cast<std::uint64_t>(std::min(std::fabs(values[i]), 7.0f));
          want_signs[i] = values[i] < 0;
          want_out[i] = values[i] + 1;
          want_max[i / width] = lang::max(want_max[i / width], values[i]);
          want_sums[i / width] += static_cast<std::int32_t>(want_codes[i]);
        }
        // Zeros beyond the end take part.
        if (count % width != 0) want_max.back() = lang::max(want_max.back(), 0.0f);
        EXPECT_EQ(run.get_bytes(codes), pack_reference(want_codes, 3)) << cols << " " << n;
        EXPECT_EQ(run.get_bytes(signs), pack_reference(want_signs, 1)) << cols << " " << n;
        EXPECT_EQ(run.get<float>(out, count), want_out);
        EXPECT_EQ(run.get<float>(sums, rows), want_max);
        EXPECT_EQ(run.get<std::int32_t>(code_sums, rows), want_sums);
        ASSERT_TRUE(run.guards_are_whole());
      }
    }
  }
}

// ---- places by index ----

// All places in some order; every seventh is beyond the end instead.
std::vector<std::uint32_t> places_and_strays(std::size_t count,
                                             const std::vector<std::uint64_t>& words) {
  std::vector<std::uint32_t> places(count);
  std::iota(places.begin(), places.end(), 0u);
  for (std::size_t i = count; i > 1; --i) std::swap(places[i - 1], places[words[i] % i]);
  for (std::size_t i = 0; i < count; i += 7) places[i] |= 0x80000000u;
  return places;
}

// Tables of up to two vectors, and a larger one.
TEST_P(MemoryOnArch, PicksFromConstantTables) {
  constexpr std::uint32_t kSizes[] = {1, 7, 16, 17, 31, 32, 33};
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kU32, pool.n());
  KernelBuilder b(program, "pick", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId place = b.load_linear(in, base);
  std::vector<std::pair<BufferIndex, BufferIndex>> tables;
  for (const std::uint32_t size : kSizes) {
    const BufferIndex table = add_test_buffer(program, "table", kF32, pool.const_int(size));
    program.buffers[table].role = rt::BufferRole::Constant;
    program.buffers[table].role_index = static_cast<std::uint32_t>(program.constants.size());
    program.constants.emplace_back(size * sizeof(float));
    const BufferIndex out = add_test_buffer(program, "out", kF32, pool.n());
    tables.emplace_back(table, out);
    const ValueId inside = b.lt(place, b.const_u32(size));
    b.store_linear(out, b.load_at(table, place, inside), base);
  }
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  std::vector<std::uint32_t> places;
  for (const std::uint64_t word : test_words(1111, 5)) {
    places.push_back(static_cast<std::uint32_t>(word >> 40 & (word & 1 ? 31 : ~0u)));
  }
  KernelRun run(program, *module, {.n = 1111});
  run.set(in, places);
  for (std::size_t k = 0; k < tables.size(); ++k) {
    std::vector<float> values(kSizes[k]);
    std::iota(values.begin(), values.end(), 0.5f);
    run.set(tables[k].first, values);
  }
  run.run(0);
  for (std::size_t k = 0; k < tables.size(); ++k) {
    const auto got = run.get<float>(tables[k].second, places.size());
    for (std::size_t i = 0; i < places.size(); ++i) {
      const float want = places[i] < kSizes[k] ? static_cast<float>(places[i]) + 0.5f : 0.0f;
      ASSERT_EQ(got[i], want) << places[i] << " of " << kSizes[k];
    }
  }
}

// Places that grow by one, from a start that is anywhere, also where they wrap in a vector.
TEST_P(MemoryOnArch, StoresRunsOfPlaces) {
  constexpr std::uint32_t kStarts[] = {0, 1, 5, 1000, 0u - 1, 0u - 5, 0u - 40, 0u - 1030};
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kU8, pool.n());
  KernelBuilder b(program, "runs", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(in, base);
  std::vector<BufferIndex> out;
  for (const std::uint32_t start : kStarts) {
    out.push_back(add_test_buffer(program, "out", kU8, pool.n()));
    const ValueId place = b.add(b.element(), b.const_u32(start));
    const ValueId inside = b.lt(b.convert(place, ComputeType::I64), b.host_size(pool.n()));
    b.store_at(out.back(), place, x, inside);
  }
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : kLengths) {
    const auto count = static_cast<std::size_t>(n);
    std::vector<std::uint8_t> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<std::uint8_t>(i * 7);
    KernelRun run(program, *module, {.n = n});
    run.set(in, values);
    for (const BufferIndex buffer : out) run.zero(buffer);
    run.run(0);
    for (std::size_t k = 0; k < out.size(); ++k) {
      std::vector<std::uint8_t> want(count);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t place = static_cast<std::uint32_t>(i) + kStarts[k];
        if (place < n) want[place] = values[i];
      }
      ASSERT_EQ(run.get<std::uint8_t>(out[k], count), want) << n << " from " << kStarts[k];
    }
    ASSERT_TRUE(run.guards_are_whole());
  }
}

TEST_P(MemoryOnArch, GathersAndScattersUnderPredicates) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex index = add_test_buffer(program, "index", kU32, pool.n());
  const BufferIndex table = add_test_buffer(program, "table", kF16, pool.n());
  const BufferIndex codes = add_test_buffer(program, "codes", *make_int(5), pool.n(), 5);
  const BufferIndex bits = add_test_buffer(program, "bits", kBool, pool.n(), 1);
  const BufferIndex moved = add_test_buffer(program, "moved", kF32, pool.n());
  const BufferIndex moved_codes = add_test_buffer(program, "moved_codes", kI16, pool.n());
  KernelBuilder b(program, "move", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId at = b.load_linear(index, base);
  const ValueId wide_at = b.convert(at, ComputeType::I64);
  // Places beyond the end are never touched: the predicate is false there.
  const ValueId inside = b.lt(wide_at, b.host_size(pool.n()));
  const ValueId x = b.load_at(table, at, inside);
  const ValueId code = b.load_at(codes, wide_at, inside);
  const ValueId bit = b.load_at(bits, at, inside);
  const ValueId keep = b.logical_and(inside, bit);
  b.store_at(moved, at, x, keep);
  b.store_at(moved_codes, wide_at, code, inside);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : kLengths) {
    const auto count = static_cast<std::size_t>(n);
    const auto words = test_words(count + 1, 14);
    const std::vector<std::uint32_t> places = places_and_strays(count, words);
    std::vector<std::uint16_t> halves(count);
    std::vector<std::uint64_t> code_values(count), bit_values(count);
    for (std::size_t i = 0; i < count; ++i) {
      halves[i] = lang::to_f16(static_cast<float>(words[i] % 1000));
      code_values[i] = words[i] >> 20 & 31;
      bit_values[i] = words[i] >> 40 & 1;
    }
    for (const Split& split : splits()) {
      KernelRun run(program, *module, {.n = n});
      run.set(index, places);
      run.set(table, halves);
      run.set(codes, pack_reference(code_values, 5));
      run.set(bits, pack_reference(bit_values, 1));
      run.zero(moved);
      run.zero(moved_codes);
      run.run(0, split);
      std::vector<float> want(count);
      std::vector<std::int16_t> want_codes(count);
      for (std::uint32_t place : places) {
        if (place >= n) continue;
        if (bit_values[place]) want[place] = lang::from_f16(halves[place]);
        want_codes[place] = static_cast<std::int16_t>(sign_extended(code_values[place], 5));
      }
      EXPECT_EQ(run.get<float>(moved, count), want);
      EXPECT_EQ(run.get<std::int16_t>(moved_codes, count), want_codes);
      ASSERT_TRUE(run.guards_are_whole());
    }
  }
}

// A bit for each element: neighbours ask for the same word, which may lie behind the last one.
TEST_P(MemoryOnArch, LoadsWhatNeighboursShare) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const HostExprId num_words = pool.ceil_div(pool.n(), pool.const_int(64));
  const BufferIndex words = add_test_buffer(program, "words", kU32, num_words);
  const BufferIndex out = add_test_buffer(program, "out", kU32, pool.n());
  KernelBuilder b(program, "bits", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId place = b.element();
  const ValueId word = b.scalar(ScalarOp::shr, {place, b.const_u32(5)});
  const ValueId inside = b.lt(b.convert(word, ComputeType::I64), b.host_size(num_words));
  const ValueId loaded = b.load_at(words, word, inside);
  const ValueId bit = b.scalar(ScalarOp::bit_and, {place, b.const_u32(31)});
  b.store_linear(out, b.scalar(ScalarOp::shr, {loaded, bit}), base);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : kLengths) {
    const auto count = static_cast<std::size_t>(n);
    std::vector<std::uint32_t> values;
    for (const std::uint64_t w : test_words((count + 63) / 64, 15)) {
      values.push_back(static_cast<std::uint32_t>(w));
    }
    KernelRun run(program, *module, {.n = n});
    run.set(words, values);
    run.run(0);
    std::vector<std::uint32_t> want(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (i / 32 < values.size()) want[i] = values[i / 32] >> i % 32;
    }
    EXPECT_EQ(run.get<std::uint32_t>(out, count), want);
  }
}

TEST_P(MemoryOnArch, AddsInOrderCountsInBinsAndFindsTheGreatest) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  constexpr std::uint32_t kCells = 37, kBins = 300;
  const BufferIndex index = add_test_buffer(program, "index", kU32, pool.n());
  const BufferIndex value = add_test_buffer(program, "value", kF32, pool.n());
  const BufferIndex cells = add_test_buffer(program, "cells", kF32, pool.const_int(kCells));
  const BufferIndex bins = add_test_buffer(program, "bins", kU32, pool.const_int(kBins));
  const BufferIndex most = add_test_buffer(program, "most", kU32, pool.const_int(kCells));
  KernelBuilder b(program, "add", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId at = b.load_linear(index, base);
  b.add_at(cells, b.scalar(ScalarOp::mod, {at, b.const_u32(kCells)}), b.load_linear(value, base));
  b.finish();
  KernelBuilder h(program, "count", GroupKind::Tile);
  h.set_extent(pool.n());
  const ValueId h_base = h.group_base();
  h.elements();
  const ValueId bin = h.load_linear(index, h_base);
  const ValueId is_negative = h.lt(h.load_linear(value, h_base), h.const_f32(0));
  h.hist_add(bins, bin, kBins, is_negative);
  h.max_at(most, h.scalar(ScalarOp::mod, {bin, h.const_u32(kCells)}), bin, is_negative);
  h.finish();
  const auto module = compile_for_test(program, GetParam());
  for (std::int64_t n : kLengths) {
    const auto count = static_cast<std::size_t>(n);
    const auto values = test_floats(count, 15);
    std::vector<std::uint32_t> places(count);
    const auto words = test_words(count, 16);
    for (std::size_t i = 0; i < count; ++i) places[i] = words[i] % 400;
    for (const Split& split : splits()) {
      KernelRun run(program, *module, {.n = n});
      run.set(index, places);
      run.set(value, values);
      run.zero(cells);
      run.zero(bins);
      run.zero(most);
      run.run_all(split);
      std::vector<float> want(kCells);
      std::vector<std::uint32_t> want_bins(kBins), want_most(kCells);
      for (std::size_t i = 0; i < count; ++i) {
        want[places[i] % kCells] += values[i];
        if (values[i] < 0 && places[i] < kBins) ++want_bins[places[i]];
        std::uint32_t& cell = want_most[places[i] % kCells];
        if (values[i] < 0) cell = std::max(cell, places[i]);
      }
      EXPECT_EQ(run.get<std::uint32_t>(most, kCells), want_most);
      EXPECT_EQ(run.get<float>(cells, kCells), want);
      EXPECT_EQ(run.get<std::uint32_t>(bins, kBins), want_bins);
      ASSERT_TRUE(run.guards_are_whole());
    }
  }
}

TEST_P(MemoryOnArch, SortsRowsStably) {
  for (bool descending : {false, true}) {
    KernelProgram program;
    HostExprPool& pool = *program.info.exprs;
    const HostExprId elems = pool.mul(pool.rows(), pool.cols());
    const BufferIndex keys = add_test_buffer(program, "keys", kF32, elems);
    const BufferIndex order = add_test_buffer(program, "order", kU32, elems);
    const BufferIndex scratch =
        add_test_buffer(program, "scratch", kU32, pool.mul(elems, pool.const_int(4)));
    KernelBuilder b(program, "sort", GroupKind::Row);
    b.set_rows(pool.rows(), pool.cols());
    const ValueId base = b.group_base();
    b.group();
    b.argsort_row(base, b.host_size(pool.cols()), {keys, order, scratch}, descending);
    b.finish();
    const auto module = compile_for_test(program, GetParam());
    for (std::int64_t cols : {1, 2, 8, 33, 64, 127, 128, 129, 1000, 5000}) {
      const auto width = static_cast<std::size_t>(cols);
      auto values = test_floats(5 * width, 17, true);
      for (std::size_t i = 0; i < values.size(); i += 2) values[i] = std::round(values[i]);
      KernelRun run(program, *module, {.n = 5 * cols, .rows = 5, .cols = cols});
      run.set(keys, values);
      run.run(0, {2, 2});
      const auto got = run.get<std::uint32_t>(order, values.size());
      for (std::size_t row = 0; row < 5; ++row) {
        std::vector<std::uint32_t> want(width);
        std::iota(want.begin(), want.end(), 0u);
        const float* x = values.data() + row * width;
        std::stable_sort(want.begin(), want.end(), [&](std::uint32_t a, std::uint32_t b) {
          if (std::isnan(x[a]) || std::isnan(x[b])) return !std::isnan(x[a]) && std::isnan(x[b]);
          return descending ? x[a] > x[b] : x[a] < x[b];
        });
        EXPECT_TRUE(std::equal(want.begin(), want.end(), got.begin() + row * width))
            << cols << " " << descending;
      }
      EXPECT_TRUE(run.guards_are_whole());
    }
  }
}

}  // namespace
}  // namespace cinch::codegen
