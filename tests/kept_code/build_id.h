// The number that the linker gave a loaded library, a digest of its contents.
#pragma once
#include <string>

namespace cinch::kept_code {

/// The GNU build ID of a library that dlopen gave; empty where it has none.
std::string build_id(void* library);

}  // namespace cinch::kept_code
