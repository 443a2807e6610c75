// The build ID that the linker gave a loaded library, a digest of its contents.
#pragma once
#include <string>

namespace cinch::kept_code {

/// The GNU build ID of a library from dlopen; empty if it has none.
std::string build_id(void* library);

}  // namespace cinch::kept_code
