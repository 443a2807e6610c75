// Body of storage.h.
#include "codegen/emit/cuda/storage.h"

#include <fmt/format.h>

#include "runtime/core/check.h"

namespace cinch::codegen {

namespace {
const char* kind_name(DTypeKind kind) {
  switch (kind) {
    case DTypeKind::Bool:
      return "Bool";
    case DTypeKind::UInt:
      return "UInt";
    case DTypeKind::Int:
      return "Int";
    case DTypeKind::F16:
      return "F16";
    case DTypeKind::BF16:
      return "BF16";
    case DTypeKind::F8E4M3:
      return "F8E4M3";
    case DTypeKind::F8E5M2:
      return "F8E5M2";
    case DTypeKind::F32:
      return "F32";
    case DTypeKind::F64:
      return "F64";
  }
  CINCH_BUG("unknown dtype");
}
}  // namespace

std::string stored_type(DType dtype, int storage_bits) {
  return fmt::format("Stored<Kind::{}, {}, {}>", kind_name(dtype.kind), dtype.bits, storage_bits);
}

}  // namespace cinch::codegen
