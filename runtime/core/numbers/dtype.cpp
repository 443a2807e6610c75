// The rules of the scalar types, from the table in dtype.def.
#include <immintrin.h>

#include <array>

#include "runtime/core/check.h"
#include "runtime/core/numbers/floats.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch {
namespace {

struct KindRow {
  DTypeKind kind;
  std::string_view spelling;
  int bits;
  int digits;
  int max_exponent;
  int min_exponent;
};

constexpr std::array kRows = {
#define CINCH_DTYPE(Kind, spelling, bits, digits, max_exponent, min_exponent) \
  KindRow{DTypeKind::Kind, spelling, bits, digits, max_exponent, min_exponent},
#include "runtime/core/numbers/dtype.def"
};

const KindRow& row(DType type) {
  return kRows[static_cast<std::size_t>(type.kind)];
}

// "7" of "u7": no sign, no leading zero, at most two digits; 0 where it is not a width.
int parse_width(std::string_view digits) {
  if (digits.empty() || digits.size() > 2 || digits[0] == '0') return 0;
  int width = 0;
  for (char c : digits) {
    if (c < '0' || c > '9') return 0;
    width = width * 10 + (c - '0');
  }
  return width;
}

bool float_widens(const KindRow& from, const KindRow& to) {
  if (from.kind == to.kind) return true;
  // e4m3 has no infinity: no other format holds its values, and it holds no other format's.
  return from.digits <= to.digits && from.max_exponent <= to.max_exponent &&
         from.min_exponent >= to.min_exponent && to.kind != DTypeKind::F8E4M3;
}

constexpr std::array<ScalarOpInfo, kNumScalarOps> kInfos = {{
#define SCALAR_OP(name, arity, operands, result, cost, meaning) \
  {#name, arity, ScalarOperands::operands, ScalarResult::result, cost, meaning},
#include "runtime/core/numbers/scalar_op.def"
}};

}  // namespace

std::optional<DType> make_uint(std::int64_t bits) {
  if (bits < 1 || bits > 64) return std::nullopt;
  return DType{DTypeKind::UInt, static_cast<std::uint8_t>(bits)};
}

std::optional<DType> make_int(std::int64_t bits) {
  if (bits < 2 || bits > 64) return std::nullopt;
  return DType{DTypeKind::Int, static_cast<std::uint8_t>(bits)};
}

std::string dtype_name(DType type) {
  std::string name(row(type).spelling);
  return is_int(type) ? name + std::to_string(type.bits) : name;
}

std::optional<DType> parse_dtype(std::string_view name) {
  for (const KindRow& r : kRows) {
    if (r.bits != 0 && name == r.spelling) {
      return DType{r.kind, static_cast<std::uint8_t>(r.bits)};
    }
  }
  if (name.empty() || (name[0] != 'u' && name[0] != 'i')) return std::nullopt;
  const int width = parse_width(name.substr(1));
  return name[0] == 'u' ? make_uint(width) : make_int(width);
}

int significand_digits(DType type) {
  return row(type).digits;
}

std::int64_t packed_bytes(DType type, std::int64_t num_elems) {
  CINCH_CHECK(num_elems >= 0 && num_elems <= INT64_MAX / 64 - 8, "element count out of range");
  return (num_elems * type.bits + 7) / 8;
}

std::int64_t min_int(DType type) {
  if (!is_signed_int(type)) return 0;
  return type.bits == 64 ? INT64_MIN : -(std::int64_t{1} << (type.bits - 1));
}

std::uint64_t max_int(DType type) {
  const int magnitude_bits = type.bits - (is_signed_int(type) ? 1 : 0);
  return magnitude_bits == 64 ? UINT64_MAX : (std::uint64_t{1} << magnitude_bits) - 1;
}

bool widens_losslessly(DType from, DType to) {
  if (from == to) return true;
  if (is_bool(to)) return false;
  if (is_float(from)) return is_float(to) && float_widens(row(from), row(to));
  const int magnitude_bits = from.bits - (is_signed_int(from) ? 1 : 0);
  // The float format must hold every integer of `magnitude_bits` bits, besides the sign.
  if (is_float(to))
    return magnitude_bits <= row(to).digits && magnitude_bits <= row(to).max_exponent;
  if (is_signed_int(from) && !is_signed_int(to)) return false;
  return magnitude_bits <= to.bits - (is_signed_int(to) ? 1 : 0);
}

DType arithmetic_type(DType type) {
  if (is_float(type)) return type.bits < 32 ? kF32 : type;
  return type.bits < 32 ? kI32 : type;
}

std::optional<DType> common_arithmetic_type(DType a, DType b) {
  const DType to_a = arithmetic_type(a);
  const DType to_b = arithmetic_type(b);
  if (widens_losslessly(a, to_b)) return to_b;
  if (widens_losslessly(b, to_a)) return to_a;
  return std::nullopt;
}

const ScalarOpInfo& scalar_op_info(ScalarOp op) {
  return kInfos[static_cast<std::size_t>(op)];
}

bool rounds(ScalarOp op) {
  return op == ScalarOp::floor || op == ScalarOp::ceil || op == ScalarOp::round ||
         op == ScalarOp::trunc;
}

std::optional<ScalarOp> find_scalar_op(std::string_view name) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<ScalarOp>(i);
  }
  return std::nullopt;
}

}  // namespace cinch

namespace cinch::rt {
// Kernels compute with SSE and AVX alone, by MXCSR. Compilers and libraries of C use the x87, too,
// where an exception that is not masked ends the process.

namespace {

constexpr std::uint32_t kDefaultMxcsr = 0x1f80;  // all exceptions masked, nearest, no DAZ, no FTZ
constexpr std::uint16_t kDefaultX87 = 0x37f;     // all exceptions masked, nearest, 64 bits

}  // namespace

DefaultFloatEnvironment::DefaultFloatEnvironment() : saved_(_mm_getcsr()) {
  if (saved_ != kDefaultMxcsr) _mm_setcsr(kDefaultMxcsr);
  asm volatile("fnstcw %0" : "=m"(saved_x87_));
  if (saved_x87_ != kDefaultX87) asm volatile("fldcw %0" : : "m"(kDefaultX87));
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() {
  _mm_setcsr(saved_);
  // A pending exception would trap as soon as it is no longer masked.
  if (saved_x87_ != kDefaultX87) asm volatile("fnclex\n\tfldcw %0" : : "m"(saved_x87_));
}

}  // namespace cinch::rt
