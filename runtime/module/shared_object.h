// SharedObject: code loaded from the bytes of a shared object, without a file on disk.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "runtime/core/error.h"

namespace cinch::rt {

class SharedObject {
 public:
  /// `what` is for messages: "kernels". Errors: CorruptFile (not a loadable shared object), Io (no
  /// memory file).
  static Result<SharedObject> load(std::span<const std::uint8_t> bytes, const std::string& what);

  SharedObject(SharedObject&&) noexcept;
  SharedObject& operator=(SharedObject&&) noexcept;
  ~SharedObject();

  /// Null if there is no such symbol.
  void* find(const char* symbol) const;

 private:
  SharedObject() = default;
  void* handle_ = nullptr;
  int file_ = -1;
};

}  // namespace cinch::rt
