// Elements of buffers; see kernel_run.h.
#include "tests/programs/harness/kernel_run.h"

#include <cstring>

#include "codegen/kir/compute_type.h"
#include "runtime/core/numbers/scalar_eval.h"

namespace cinch::testing {
namespace {

// Narrow floats are computed with as f32.
Word to_own_bits(DType dtype, Word value) {
  return is_narrow_float(dtype) ? convert_element(kF32, dtype, value) : value;
}
Word from_own_bits(DType dtype, Word bits) {
  return is_narrow_float(dtype) ? convert_element(dtype, kF32, bits) : bits;
}

Word load_bits(const std::uint8_t* bytes, std::int64_t first, int count) {
  Word bits = 0;
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = first + i;
    bits |= static_cast<Word>(bytes[at / 8] >> (at % 8) & 1) << i;
  }
  return bits;
}
void store_bits(std::uint8_t* bytes, std::int64_t first, int count, Word bits) {
  for (int i = 0; i < count; ++i) {
    const std::int64_t at = first + i;
    const auto mask = static_cast<std::uint8_t>(1u << (at % 8));
    bytes[at / 8] =
        static_cast<std::uint8_t>(bits >> i & 1 ? bytes[at / 8] | mask : bytes[at / 8] & ~mask);
  }
}

bool is_whole_width(int bits) {
  return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

}  // namespace

Word load_word(const rt::BufferInfo& buffer, const void* memory, std::int64_t index) {
  const auto* bytes = static_cast<const std::uint8_t*>(memory);
  const int bits = buffer.storage_bits;
  Word raw = 0;
  if (is_whole_width(bits)) {
    std::memcpy(&raw, bytes + index * (bits / 8), static_cast<std::size_t>(bits / 8));
  } else {
    raw = load_bits(bytes, index * bits, bits);
  }
  if (is_bool(buffer.dtype)) return raw != 0;
  return from_own_bits(buffer.dtype, encode_bits(buffer.dtype, raw));
}

void store_word(const rt::BufferInfo& buffer, void* memory, std::int64_t index, Word value) {
  auto* bytes = static_cast<std::uint8_t*>(memory);
  const int bits = buffer.storage_bits;
  const Word raw = to_own_bits(buffer.dtype, value);
  if (is_whole_width(bits)) {
    std::memcpy(bytes + index * (bits / 8), &raw, static_cast<std::size_t>(bits / 8));
  } else {
    store_bits(bytes, index * bits, bits, raw);
  }
}

void close_run(const rt::BufferInfo& buffer, void* memory, std::int64_t end) {
  const std::int64_t at = end * buffer.storage_bits;
  if (at % 8 != 0)
    store_bits(static_cast<std::uint8_t*>(memory), at, static_cast<int>(8 - at % 8), 0);
}

Word compute_word(const kir::Instr& instr, kir::ComputeType operand_type, const Word* operands) {
  if (instr.kind == kir::InstrKind::scalar) {
    const bool is_own_width = kir::is_integer(operand_type) &&
                              scalar_op_info(instr.scalar_op).result != ScalarResult::Bool;
    const DType dtype = is_own_width ? instr.dtype : kir::dtype_of(operand_type);
    const auto arity = static_cast<std::size_t>(scalar_op_info(instr.scalar_op).arity);
    return evaluate_scalar(instr.scalar_op, dtype, {operands, arity});
  }
  const Word own = to_own_bits(instr.from_dtype, operands[0]);
  const Word result = instr.kind == kir::InstrKind::bitcast
                          ? bitcast_element(instr.from_dtype, instr.dtype, own)
                          : convert_element(instr.from_dtype, instr.dtype, own);
  return from_own_bits(instr.dtype, result);
}

Word constant_word(kir::ComputeType type, std::uint64_t bits) {
  return encode_bits(kir::dtype_of(type), bits);
}

}  // namespace cinch::testing
