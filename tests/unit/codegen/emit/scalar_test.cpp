// Element-wise instructions: every scalar operation over every compute type, as lanes and as group
// scalars, against the language's own functions called on scalars; conversions and bit casts.
#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "codegen/kir/verifier.h"
#include "runtime/core/lang.h"
#include "runtime/core/numbers/scalar_eval.h"
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

CINCH_ARCH_SUITE(ScalarOnArch);

// The operation on scalars of type T, as far as it exists there; the result's bits as stored.
template <typename T>
std::uint64_t stored(T x) {
  if constexpr (std::is_same_v<T, bool>) {
    return x;
  } else if constexpr (std::is_floating_point_v<T>) {
    return lang::bits_of(lang::canonical(x));
  } else {
    return static_cast<std::make_unsigned_t<T>>(x);
  }
}

template <typename T>
std::uint64_t float_only(ScalarOp op, T a, T b, T c) {
  switch (op) {
    case ScalarOp::sqrt:
      return stored(lang::sqrt(a));
    case ScalarOp::rsqrt:
      return stored(lang::rsqrt(a));
    case ScalarOp::exp:
      return stored(lang::exp(a));
    case ScalarOp::exp2:
      return stored(lang::exp2(a));
    case ScalarOp::log:
      return stored(lang::log(a));
    case ScalarOp::log1p:
      return stored(lang::log1p(a));
    case ScalarOp::log2:
      return stored(lang::log2(a));
    case ScalarOp::sin:
      return stored(lang::sin(a));
    case ScalarOp::cos:
      return stored(lang::cos(a));
    case ScalarOp::tanh:
      return stored(lang::tanh(a));
    case ScalarOp::floor:
      return stored(lang::floor(a));
    case ScalarOp::ceil:
      return stored(lang::ceil(a));
    case ScalarOp::round:
      return stored(lang::round(a));
    case ScalarOp::trunc:
      return stored(lang::trunc(a));
    case ScalarOp::pow:
      return stored(lang::pow(a, b));
    case ScalarOp::fma:
      return stored(lang::fma(a, b, c));
    default:
      ADD_FAILURE() << "no reference for " << scalar_op_info(op).name;
      return 0;
  }
}

template <typename T>
std::uint64_t integer_only(ScalarOp op, T a, T b) {
  switch (op) {
    case ScalarOp::floor:
    case ScalarOp::ceil:
    case ScalarOp::round:
    case ScalarOp::trunc:
      return stored(a);
    case ScalarOp::bit_not:
      return stored(lang::bit_not(a));
    case ScalarOp::bit_and:
      return stored(T(a & b));
    case ScalarOp::bit_or:
      return stored(T(a | b));
    case ScalarOp::bit_xor:
      return stored(T(a ^ b));
    case ScalarOp::shl:
      return stored(lang::shl(a, b));
    case ScalarOp::shr:
      return stored(lang::shr(a, b));
    case ScalarOp::popcount:
      return lang::popcount(a);
    case ScalarOp::clz:
      return lang::clz(a);
    case ScalarOp::ceil_div:
      return stored(lang::ceil_div(a, b));
    default:
      ADD_FAILURE() << "no reference for " << scalar_op_info(op).name;
      return 0;
  }
}

template <typename T>
std::uint64_t reference(ScalarOp op, T a, T b, T c) {
  switch (op) {
    case ScalarOp::neg:
      return stored(lang::neg(a));
    case ScalarOp::abs:
      return stored(lang::abs(a));
    case ScalarOp::sign:
      return stored(lang::sign(a));
    case ScalarOp::isnan:
      return a != a;
    case ScalarOp::isfinite:
      return !std::is_floating_point_v<T> || std::isfinite(static_cast<double>(a));
    case ScalarOp::add:
      return stored(lang::add(a, b));
    case ScalarOp::sub:
      return stored(lang::sub(a, b));
    case ScalarOp::mul:
      return stored(lang::mul(a, b));
    case ScalarOp::div:
      return stored(lang::div(a, b));
    case ScalarOp::mod:
      return stored(lang::mod(a, b));
    case ScalarOp::min:
      return stored(lang::min(a, b));
    case ScalarOp::max:
      return stored(lang::max(a, b));
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    case ScalarOp::gt:
      return a > b;
    case ScalarOp::ge:
      return a >= b;
    case ScalarOp::divide_or_zero:
      return stored(lang::divide_or_zero(a, b));
    case ScalarOp::clamp:
      return stored(lang::clamp(a, b, c));
    default:
      if constexpr (std::is_floating_point_v<T>) {
        return float_only(op, a, b, c);
      } else {
        return integer_only(op, a, b);
      }
  }
}

std::uint64_t bool_reference(ScalarOp op, bool a, bool b) {
  switch (op) {
    case ScalarOp::bit_not:
      return !a;
    case ScalarOp::bit_and:
    case ScalarOp::min:
      return a && b;
    case ScalarOp::bit_or:
    case ScalarOp::max:
      return a || b;
    case ScalarOp::bit_xor:
    case ScalarOp::ne:
      return a != b;
    case ScalarOp::eq:
      return a == b;
    case ScalarOp::lt:
      return a < b;
    case ScalarOp::le:
      return a <= b;
    case ScalarOp::gt:
      return a > b;
    case ScalarOp::ge:
      return a >= b;
    default:
      ADD_FAILURE() << "no reference for " << scalar_op_info(op).name;
      return 0;
  }
}

std::uint64_t reference_of_bits(ScalarOp op, ComputeType type, std::uint64_t a, std::uint64_t b,
                                std::uint64_t c) {
  const auto f32 = [](std::uint64_t x) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(x));
  };
  switch (type) {
    case ComputeType::Bool:
      return bool_reference(op, a, b);
    case ComputeType::I32:
      return reference(op, static_cast<int>(a), static_cast<int>(b), static_cast<int>(c));
    case ComputeType::U32:
      return reference(op, static_cast<unsigned>(a), static_cast<unsigned>(b),
                       static_cast<unsigned>(c));
    case ComputeType::I64:
      return reference(op, static_cast<long long>(a), static_cast<long long>(b),
                       static_cast<long long>(c));
    case ComputeType::U64:
      return reference<unsigned long long>(op, a, b, c);
    case ComputeType::F32:
      return reference(op, f32(a), f32(b), f32(c));
    case ComputeType::F64:
      return reference(op, std::bit_cast<double>(a), std::bit_cast<double>(b),
                       std::bit_cast<double>(c));
  }
  return 0;
}

// Small numbers, edges and random bits of a type.
std::vector<std::uint64_t> operand_bits(ComputeType type, std::size_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> bits = test_words(count, seed);
  const auto floats = test_floats(count, seed, true);
  for (std::size_t i = 0; i < count; ++i) {
    std::uint64_t& x = bits[i];
    const std::uint64_t kind = x >> 56 & 3;
    if (type == ComputeType::Bool) {
      x &= 1;
    } else if (type == ComputeType::F32) {
      if (kind) x = std::bit_cast<std::uint32_t>(floats[i]);
      x &= 0xffffffffu;
    } else if (type == ComputeType::F64) {
      if (kind) x = std::bit_cast<std::uint64_t>(static_cast<double>(floats[i]) * 1.01);
    } else {
      if (kind == 1) x = x % 9 - 4;
      if (kind == 2) x = 1ull << (kir::compute_type_bytes(type) * 8 - 1);
      if (kir::compute_type_bytes(type) == 4) x &= 0xffffffffu;
    }
  }
  return bits;
}

bool is_valid(KernelProgram program, ScalarOp op, const std::vector<BufferIndex>& in,
              BufferIndex out);

// Adds a kernel out[i] = op(in0[i], in1[i], …).
void add_kernel(KernelProgram& program, ScalarOp op, const std::vector<BufferIndex>& in,
                BufferIndex out, bool as_scalars) {
  HostExprPool& pool = *program.info.exprs;
  KernelBuilder b(program, "k" + std::to_string(program.kernels.size()),
                  as_scalars ? GroupKind::Row : GroupKind::Tile);
  if (as_scalars) {
    b.set_rows(pool.n(), pool.const_int(1));
  } else {
    b.set_extent(pool.n());
  }
  const ValueId base = b.group_base();
  const ValueId group = b.group_index();
  if (as_scalars) {
    b.group();
  } else {
    b.elements();
  }
  std::vector<ValueId> operands;
  for (BufferIndex buffer : in) {
    operands.push_back(as_scalars ? b.load_at(buffer, group) : b.load_linear(buffer, base));
  }
  const ValueId x = b.scalar(op, operands);
  if (as_scalars) {
    b.store_at(out, group, x);
  } else {
    b.store_linear(out, x, base);
  }
  b.finish();
}

bool is_valid(KernelProgram program, ScalarOp op, const std::vector<BufferIndex>& in,
              BufferIndex out) {
  add_kernel(program, op, in, out, false);
  return kir::first_complaint(program).empty();
}

struct OpCase {
  ScalarOp op;
  BufferIndex out;
  int out_bytes;
};

TEST_P(ScalarOnArch, ComputesEveryOperationOfEveryType) {
  constexpr std::size_t kCount = 1531;
  for (int t = 0; t < 7; ++t) {
    const auto type = static_cast<ComputeType>(t);
    const DType dtype = kir::dtype_of(type);
    KernelProgram program;
    HostExprPool& pool = *program.info.exprs;
    std::vector<BufferIndex> in;
    for (const char* name : {"a", "b", "c"}) {
      in.push_back(add_test_buffer(program, name, dtype, pool.n()));
    }
    std::vector<OpCase> cases;
    for (int i = 0; i < kNumScalarOps; ++i) {
      const auto op = static_cast<ScalarOp>(i);
      if (op == ScalarOp::select) continue;
      const ScalarOpInfo& info = scalar_op_info(op);
      const DType out_dtype = info.result == ScalarResult::Bool  ? kBool
                              : info.result == ScalarResult::U32 ? kU32
                                                                 : dtype;
      const std::vector<BufferIndex> operands(in.begin(), in.begin() + info.arity);
      const BufferIndex out = add_test_buffer(program, "out", out_dtype, pool.n());
      if (!is_valid(program, op, operands, out)) continue;
      add_kernel(program, op, operands, out, false);
      add_kernel(program, op, operands, out, true);
      cases.push_back({op, out, is_bool(out_dtype) ? 1 : out_dtype.bits / 8});
    }
    ASSERT_GE(cases.size(), type == ComputeType::Bool ? 10u : 25u);
    const auto module = compile_for_test(program, GetParam());
    KernelRun run(program, *module, {.n = kCount});
    std::vector<std::vector<std::uint64_t>> bits;
    for (std::size_t k = 0; k < 3; ++k) {
      bits.push_back(operand_bits(type, kCount, 100 + 10 * k + static_cast<std::uint64_t>(t)));
      std::vector<std::uint8_t> bytes;
      for (std::uint64_t x : bits.back()) {
        for (int byte = 0; byte < kir::compute_type_bytes(type); ++byte) {
          bytes.push_back(static_cast<std::uint8_t>(x >> 8 * byte));
        }
      }
      run.set(in[k], bytes);
    }
    for (std::size_t k = 0; k < program.kernels.size(); ++k) {
      run.run(k);
      const OpCase& c = cases[k / 2];
      const auto bytes = run.get_bytes(c.out);
      for (std::size_t i = 0; i < kCount; ++i) {
        std::uint64_t got = 0;
        std::memcpy(&got, bytes.data() + i * static_cast<std::size_t>(c.out_bytes),
                    static_cast<std::size_t>(c.out_bytes));
        ASSERT_EQ(got, reference_of_bits(c.op, type, bits[0][i], bits[1][i], bits[2][i]))
            << GetParam() << " " << scalar_op_info(c.op).name << " of "
            << kir::compute_type_name(type) << (k % 2 ? " as scalars" : " as lanes") << ": "
            << std::hex << bits[0][i] << " " << bits[1][i] << " " << bits[2][i];
      }
    }
  }
}

// Constants chosen by comparing one value with constants: at, next to and between the ends, beyond
// them, and NaN. With two to eight ends, in nested selects of different shapes.
TEST_P(ScalarOnArch, ChoosesAmongSteps) {
  constexpr float kEnds[] = {-7.5f, -1.25f, -0.0f, 0x1p-140f, 2.0f, 3.5f, 0x1p90f, INFINITY};
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  KernelBuilder b(program, "steps", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(in, base);
  const auto is_above = [&](std::size_t k) {
    return b.scalar(ScalarOp::gt, {x, b.const_f32(kEnds[k])});
  };
  // Of the ends first … last - 1: 0.5 more than how many x is above.
  const std::function<ValueId(std::size_t, std::size_t)> count = [&](std::size_t first,
                                                                     std::size_t last) {
    if (first == last) return b.const_f32(static_cast<float>(first) + 0.5f);
    const std::size_t middle = first + (last - first) / 2;
    const ValueId high = count(middle + 1, last), low = count(first, middle);
    return b.select(is_above(middle), high, low);
  };
  std::vector<BufferIndex> out;
  for (std::size_t ends = 2; ends <= std::size(kEnds); ++ends) {
    out.push_back(add_test_buffer(program, "out", kF32, pool.n()));
    b.store_linear(out.back(), count(0, ends), base);
  }
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  std::vector<float> values = test_floats(1100, 41, true);
  for (const float end : kEnds) {
    values.insert(values.end(), {end, std::nextafter(end, INFINITY), std::nextafter(end, -9.0f)});
  }
  KernelRun run(program, *module, {.n = static_cast<std::int64_t>(values.size())});
  run.set(in, values);
  run.run(0);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto got = run.get<float>(out[k], values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const auto* end = kEnds + k + 2;
      const auto above = std::count_if(kEnds, end, [&](float e) { return values[i] > e; });
      ASSERT_EQ(got[i], static_cast<float>(above) + 0.5f) << values[i] << " of " << k + 2;
    }
  }
}

// Sums of what comparisons of one value choose, as floats and as integers.
TEST_P(ScalarOnArch, AddsUpSteps) {
  constexpr float kEnds[] = {0.25f, 0.5f, 0.75f, 1.0f, 1.5f, 2.5f, 4.5f};
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kF32, pool.n());
  const BufferIndex sums = add_test_buffer(program, "sums", kF32, pool.n());
  const BufferIndex places = add_test_buffer(program, "places", kI32, pool.n());
  KernelBuilder b(program, "steps", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.scalar(ScalarOp::abs, {b.load_linear(in, base)});
  ValueId sum = b.const_f32(0.1f), place = b.const_i32(-3);
  for (const float end : kEnds) {
    const ValueId is_above = b.lt(b.const_f32(end), x);
    sum = b.add(sum, b.select(is_above, b.const_f32(end / 3), b.zero(ComputeType::F32)));
    place = b.add(place, b.convert(is_above, ComputeType::I32));
  }
  b.store_linear(sums, sum, base);
  b.store_linear(places, b.mul(place, b.const_i32(5)), base);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  std::vector<float> values = test_floats(1100, 41, true);
  for (const float end : kEnds) {
    values.insert(values.end(), {end, -std::nextafter(end, 9.0f), std::nextafter(end, 0.0f)});
  }
  KernelRun run(program, *module, {.n = static_cast<std::int64_t>(values.size())});
  run.set(in, values);
  run.run(0);
  const auto got_sums = run.get<float>(sums, values.size());
  const auto got_places = run.get<std::int32_t>(places, values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    float want = 0.1f;
    int above = 0;
    for (const float end : kEnds) {
      const bool is_above = std::fabs(values[i]) > end;
      want += is_above ? end / 3 : 0.0f;
      above += is_above;
    }
    ASSERT_EQ(got_sums[i], want) << values[i];
    ASSERT_EQ(got_places[i], 5 * (above - 3)) << values[i];
  }
}

// What only depends on a field of few bits, as a float and as an integer.
TEST_P(ScalarOnArch, LooksUpShortCodes) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  for (const int bits : {3, 4, 5}) {
    const BufferIndex in = add_test_buffer(program, "in", *make_uint(bits), pool.n(), bits);
    const BufferIndex floats = add_test_buffer(program, "floats", kF32, pool.n());
    const BufferIndex words = add_test_buffer(program, "words", kU32, pool.n());
    KernelBuilder b(program, "codes" + std::to_string(bits), GroupKind::Tile);
    b.set_extent(pool.n());
    const ValueId base = b.group_base();
    b.elements();
    const ValueId code = b.convert(b.load_linear(in, base), ComputeType::U32);
    const ValueId high = b.scalar(ScalarOp::shr, {code, b.const_u32(1)});
    ValueId x = b.convert(high, ComputeType::F32), word = b.mul(code, b.const_u32(0x10001));
    for (const std::uint32_t bound : {0u, 2u, 3u, 5u}) {
      const ValueId is_above = b.lt(b.const_u32(bound), high);
      x = b.add(x, b.select(is_above, b.const_f32(0.7f), b.const_f32(-0.3f)));
      word = b.scalar(ScalarOp::bit_xor, {word, b.select(is_above, b.const_u32(77), high)});
    }
    const ValueId low = b.scalar(ScalarOp::bit_and, {code, b.const_u32(1)});
    const ValueId is_odd = b.eq(low, b.const_u32(1));
    b.store_linear(floats, b.select(is_odd, b.scalar(ScalarOp::neg, {x}), x), base);
    b.store_linear(words, word, base);
    b.finish();
  }
  const auto module = compile_for_test(program, GetParam());
  const auto words = test_words(1111, 6);
  KernelRun run(program, *module, {.n = 1111});
  for (std::uint32_t k = 0; k < 3; ++k) {
    const int bits = static_cast<int>(k) + 3;
    std::vector<std::uint64_t> codes;
    for (const std::uint64_t word : words) codes.push_back(word >> 20 & ((1u << bits) - 1));
    run.set(3 * k, pack_reference(codes, bits));
    run.run(k);
    const auto got = run.get<float>(3 * k + 1, codes.size());
    const auto got_words = run.get<std::uint32_t>(3 * k + 2, codes.size());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      const auto code = static_cast<std::uint32_t>(codes[i]), high = code >> 1;
      float x = static_cast<float>(high);
      std::uint32_t word = code * 0x10001;
      for (const std::uint32_t bound : {0u, 2u, 3u, 5u}) {
        x += high > bound ? 0.7f : -0.3f;
        word ^= high > bound ? 77 : high;
      }
      ASSERT_EQ(got[i], code & 1 ? -x : x) << code;
      ASSERT_EQ(got_words[i], word) << code;
    }
  }
}

// A u32 beside bounds of 64 bits, around both ends of its range.
TEST_P(ScalarOnArch, ComparesNarrowWithWideBounds) {
  constexpr std::int64_t kBounds[] = {INT64_MIN,    -1,           0,         1,        77,
                                      0x80000000ll, 0xffffffffll, 1ll << 32, INT64_MAX};
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kU32, pool.n());
  KernelBuilder b(program, "bounds", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.convert(b.load_linear(in, base), ComputeType::I64);
  std::vector<std::pair<BufferIndex, BufferIndex>> out;
  for (const std::int64_t bound : kBounds) {
    out.emplace_back(add_test_buffer(program, "below", kU8, pool.n()),
                     add_test_buffer(program, "other", kU8, pool.n()));
    const auto store = [&](BufferIndex to, ScalarOp op) {
      b.store_linear(to, b.convert(b.scalar(op, {x, b.const_i64(bound)}), ComputeType::I32), base);
    };
    store(out.back().first, ScalarOp::lt);
    store(out.back().second, ScalarOp::ge);
  }
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  std::vector<std::uint32_t> values = {0, 1, 76, 77, 78, 0x7fffffff, 0x80000000, 0xfffffffe, ~0u};
  for (const std::uint64_t word : test_words(1100, 8)) {
    values.push_back(static_cast<std::uint32_t>(word));
  }
  KernelRun run(program, *module, {.n = static_cast<std::int64_t>(values.size())});
  run.set(in, values);
  run.run(0);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto below = run.get<std::uint8_t>(out[k].first, values.size());
    const auto other = run.get<std::uint8_t>(out[k].second, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(below[i], values[i] < kBounds[k]) << values[i] << " and " << kBounds[k];
      ASSERT_EQ(other[i], values[i] >= kBounds[k]) << values[i] << " and " << kBounds[k];
    }
  }
}

// The upper half of a product of 64 bits, which wraps for factors above 32 bits.
TEST_P(ScalarOnArch, TakesTheHighHalfOfAProduct) {
  constexpr std::uint64_t kFactors[] = {
      0, 1, 3, 1000003, 0xffffffff, 1ull << 32, 0x123456789abcdefull};
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex in = add_test_buffer(program, "in", kU32, pool.n());
  KernelBuilder b(program, "high", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.convert(b.load_linear(in, base), ComputeType::U64);
  std::vector<BufferIndex> out;
  for (const std::uint64_t factor : kFactors) {
    out.push_back(add_test_buffer(program, "out", kU32, pool.n()));
    const ValueId product = b.mul(x, b.const_u64(factor));
    const ValueId high = b.scalar(ScalarOp::shr, {product, b.const_u64(32)});
    b.store_linear(out.back(), b.convert(high, ComputeType::U32), base);
  }
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  std::vector<std::uint32_t> values = {0, 1, ~0u};
  for (const std::uint64_t word : test_words(1100, 9)) {
    values.push_back(static_cast<std::uint32_t>(word));
  }
  KernelRun run(program, *module, {.n = static_cast<std::int64_t>(values.size())});
  run.set(in, values);
  run.run(0);
  for (std::size_t k = 0; k < out.size(); ++k) {
    const auto got = run.get<std::uint32_t>(out[k], values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_EQ(got[i], static_cast<std::uint32_t>(values[i] * kFactors[k] >> 32)) << kFactors[k];
    }
  }
}

// Widths that are not their container's: the result comes back to its width.
TEST_P(ScalarOnArch, WrapsOddWidths) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const DType u40 = *make_uint(40), i33 = *make_int(33), u5 = *make_uint(5);
  const BufferIndex a = add_test_buffer(program, "a", u40, pool.n());
  const BufferIndex s = add_test_buffer(program, "s", i33, pool.n());
  const BufferIndex w = add_test_buffer(program, "w", u5, pool.n());
  const BufferIndex a_out = add_test_buffer(program, "a_out", kU64, pool.n());
  const BufferIndex s_out = add_test_buffer(program, "s_out", kI64, pool.n());
  const BufferIndex w_out = add_test_buffer(program, "w_out", kI32, pool.n());
  const BufferIndex zeros = add_test_buffer(program, "zeros", kU32, pool.n());
  KernelBuilder b(program, "wrap", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId x = b.load_linear(a, base), y = b.load_linear(s, base), z = b.load_linear(w, base);
  b.store_linear(a_out, b.scalar(ScalarOp::mul, {x, x}, u40), base);
  b.store_linear(s_out, b.scalar(ScalarOp::shl, {y, b.const_i64(34)}, i33), base);
  b.store_linear(w_out, b.scalar(ScalarOp::bit_not, {z}, u5), base);
  b.store_linear(zeros, b.scalar(ScalarOp::clz, {x}, u40), base);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  const auto words = test_words(999, 31);
  std::vector<std::uint64_t> as;
  std::vector<std::int64_t> ss;
  std::vector<std::uint8_t> ws;
  for (std::uint64_t word : words) {
    as.push_back((word & ((1ull << 40) - 1)) >> (word >> 58));
    ss.push_back(static_cast<std::int64_t>(word << 31) >> 31);
    ws.push_back(word >> 50 & 31);
  }
  KernelRun run(program, *module, {.n = 999});
  run.set(a, as);
  run.set(s, ss);
  run.set(w, ws);
  run.run(0);
  const auto got_a = run.get<std::uint64_t>(a_out, 999);
  const auto got_s = run.get<std::int64_t>(s_out, 999);
  const auto got_w = run.get<std::int32_t>(w_out, 999);
  const auto got_z = run.get<std::uint32_t>(zeros, 999);
  for (std::size_t i = 0; i < 999; ++i) {
    EXPECT_EQ(got_a[i], as[i] * as[i] & ((1ull << 40) - 1));
    // 34 modulo 33 is 1.
    EXPECT_EQ(got_s[i], static_cast<std::int64_t>(static_cast<std::uint64_t>(ss[i]) << 32) >> 31);
    EXPECT_EQ(got_w[i], ~ws[i] & 31);
    EXPECT_EQ(got_z[i], static_cast<std::uint32_t>(std::countl_zero(as[i])) - 24);
  }
}

TEST_P(ScalarOnArch, ConvertsAndCastsBits) {
  KernelProgram program;
  HostExprPool& pool = *program.info.exprs;
  const BufferIndex x = add_test_buffer(program, "x", kF32, pool.n());
  const BufferIndex d = add_test_buffer(program, "d", kF64, pool.n());
  const BufferIndex u4 = add_test_buffer(program, "u4", kI32, pool.n());
  const BufferIndex i40 = add_test_buffer(program, "i40", kI64, pool.n());
  const BufferIndex sat = add_test_buffer(program, "sat", kI8, pool.n());
  const BufferIndex half_bits = add_test_buffer(program, "half_bits", kU16, pool.n());
  const BufferIndex from_bits = add_test_buffer(program, "from_bits", kF32, pool.n());
  const BufferIndex truth = add_test_buffer(program, "truth", kF32, pool.n());
  const BufferIndex bits = add_test_buffer(program, "bits", kU64, pool.n());
  KernelBuilder b(program, "convert", GroupKind::Tile);
  b.set_extent(pool.n());
  const ValueId base = b.group_base();
  b.elements();
  const ValueId v = b.load_linear(x, base), w = b.load_linear(d, base);
  b.store_linear(u4, b.convert(v, kF32, *make_uint(4)), base);
  b.store_linear(i40, b.convert(w, kF64, *make_int(40)), base);
  b.store_linear(sat, b.convert(b.convert(w, kF64, *make_int(40)), *make_int(40), kI8), base);
  b.store_linear(half_bits, b.bitcast(b.convert(v, kF32, kF16), kF16, kU16), base);
  b.store_linear(from_bits, b.bitcast(b.bitcast(v, kF32, kI32), kI32, kF32), base);
  b.store_linear(truth, b.convert(b.lt(v, b.const_f32(0)), kBool, kF32), base);
  b.store_linear(bits, b.bitcast(w, kF64, kU64), base);
  b.finish();
  const auto module = compile_for_test(program, GetParam());
  const auto floats = test_floats(3001, 33, true);
  std::vector<double> doubles;
  for (float f : floats) doubles.push_back(static_cast<double>(f) * 1e10);
  KernelRun run(program, *module, {.n = 3001});
  run.set(x, floats);
  run.set(d, doubles);
  run.run(0);
  for (std::size_t i = 0; i < floats.size(); ++i) {
    const float f = floats[i];
    const auto want40 = lang::float_to_int<long long>(doubles[i], 40);
    ASSERT_EQ(run.get<std::int32_t>(u4, 3001)[i],
              static_cast<int>(lang::float_to_int<unsigned>(f, 4)));
    ASSERT_EQ(run.get<std::int64_t>(i40, 3001)[i], want40);
    ASSERT_EQ(run.get<std::int8_t>(sat, 3001)[i], std::clamp<long long>(want40, -128, 127));
    ASSERT_EQ(run.get<std::uint16_t>(half_bits, 3001)[i], lang::to_f16(f));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(run.get<float>(from_bits, 3001)[i]),
              std::bit_cast<std::uint32_t>(lang::canonical(f)));
    ASSERT_EQ(run.get<float>(truth, 3001)[i], f < 0 ? 1.0f : 0.0f);
    ASSERT_EQ(run.get<std::uint64_t>(bits, 3001)[i], lang::bits_of(lang::canonical(doubles[i])));
  }
}

}  // namespace
}  // namespace cinch::codegen
