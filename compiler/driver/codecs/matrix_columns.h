// The shape of a matrix with a given number of elements.
#pragma once
#include <cstdint>
#include <optional>

namespace cinch::driver {

/// The requested number of columns, else the one closest to a square. Throws CommandError if the
/// elements are not a multiple of the request.
std::int64_t matrix_columns(std::int64_t elements, std::optional<std::int64_t> asked);

}  // namespace cinch::driver
