// A file of the store: the bytes to which one request was compiled, with their hash. Processes and
// threads that need the same entry at the same time wait for the first.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cinch::kept_code {

using Bytes = std::vector<std::uint8_t>;

/// Returns the bytes in the file `path`, or those that `make` returns, which are then written
/// there. If `make` fails it returns nothing: nothing is kept, and the result is empty. If the file
/// cannot be opened or locked nothing is kept, and the result is that of `make`.
std::optional<Bytes> find_or_make(const std::string& path,
                                  const std::function<std::optional<Bytes>()>& make);

// The build ID that the linker gave a loaded library, a digest of its contents.

/// The GNU build ID of a library from dlopen; empty if it has none.
std::string build_id(void* library);

}  // namespace cinch::kept_code
