// Functions of a library that is opened at run time.
#pragma once
#include <dlfcn.h>

namespace cinch::rt {

/// Looks up functions, and remembers the first required one that is missing.
class LibrarySymbols {
 public:
  explicit LibrarySymbols(void* library) : library_(library) {}

  template <typename F>
  void find_if_any(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library_, name));
  }
  template <typename F>
  void find(F*& function, const char* name) {
    find_if_any(function, name);
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  /// Null if there are all.
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

}  // namespace cinch::rt
