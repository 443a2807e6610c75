// How elements of a buffer are stored and what text turns them into compute values and back.
#pragma once
#include <string>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct Storage {
  DType dtype;
  int bits = 0;
  bool is_packed = false;  // fields of `bits` bits one after another
  std::string element;     // as loaded: "f32", "u16" (f16's bits), …; packed: the stage's element
  bool is_bit() const { return is_packed && bits == 1; }
};

Storage storage_of(const rt::BufferInfo& buffer);

/// A loaded element (scalar or lanes of storage.element) as a value of the dtype's compute type.
std::string from_storage(const Storage& storage, const std::string& x);
/// The inverse: canonical NaN, low bits of integers.
std::string to_storage(const Storage& storage, const std::string& x);

}  // namespace cinch::codegen
