// A file of the store: the bytes that one request compiled to, with their hash. Processes and
// threads that ask for the same entry at the same time wait for the first.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cinch::kept_code {

using Bytes = std::vector<std::uint8_t>;

/// The bytes in the file `path`; else those that `make` returns, which are then written there.
/// `make` returns nothing where it failed: then nothing is kept, and the result is empty. A file
/// that cannot be opened or locked keeps nothing: the result is that of `make`.
std::optional<Bytes> find_or_make(const std::string& path,
                                  const std::function<std::optional<Bytes>()>& make);

}  // namespace cinch::kept_code
