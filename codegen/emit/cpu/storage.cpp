#include "codegen/emit/cpu/kernel/facts.h"

#include <fmt/format.h>

#include "codegen/emit/c_family.h"
#include "codegen/kir/compute_type.h"
#include "runtime/core/check.h"

namespace cinch::codegen {
namespace {

bool is_whole(int bits) {
  return bits == 8 || bits == 16 || bits == 32 || bits == 64;
}

int stage_bits(int bits) {
  return bits <= 8 ? 8 : bits <= 16 ? 16 : bits <= 32 ? 32 : 64;
}

std::string whole_element(DType dtype, int bits) {
  if (is_float(dtype) && !is_narrow_float(dtype)) return dtype_name(dtype);
  return fmt::format("{}{}", is_signed_int(dtype) ? "i" : "u", bits);
}

}  // namespace

Storage storage_of(const rt::BufferInfo& buffer) {
  Storage storage;
  storage.dtype = buffer.dtype;
  storage.bits = buffer.storage_bits;
  storage.is_packed = !is_whole(storage.bits);
  CINCH_CHECK(storage.bits >= 1 && storage.bits <= 64, "storage width of " + buffer.name);
  CINCH_CHECK(!is_float(buffer.dtype) || storage.bits == buffer.dtype.bits,
              "storage of floats in " + buffer.name);
  storage.element = storage.is_packed ? fmt::format("u{}", stage_bits(storage.bits))
                                      : whole_element(storage.dtype, storage.bits);
  return storage;
}

std::string from_storage(const Storage& storage, const std::string& x) {
  const DType dtype = storage.dtype;
  if (is_bool(dtype)) return fmt::format("is_nonzero({})", x);
  if (is_narrow_float(dtype)) return fmt::format("widen_{}({})", dtype_name(dtype), x);
  if (is_float(dtype)) return x;
  const std::string whole =
      fmt::format("lang::convert<{}>({})", c_type(kir::compute_type(dtype)), x);
  const bool needs_sign = storage.is_packed && is_signed_int(dtype);
  return needs_sign ? fmt::format("wrap_signed<{}>({})", storage.bits, whole) : whole;
}

std::string to_storage(const Storage& storage, const std::string& x) {
  const DType dtype = storage.dtype;
  if (is_bool(dtype)) return fmt::format("truth_to<{}>({})", storage.element, x);
  if (is_narrow_float(dtype)) return fmt::format("lang::f32_to_{}({})", dtype_name(dtype), x);
  if (is_float(dtype)) return fmt::format("lang::canonical({})", x);
  return fmt::format("lang::convert<{}>({})", storage.element, x);
}

}  // namespace cinch::codegen
