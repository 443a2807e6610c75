// The shape of a matrix that is given by its number of elements.
#pragma once
#include <cstdint>
#include <optional>

namespace cinch::driver {

/// Those asked for, else as many as come nearest to a square. Throws CommandError where the
/// elements are no multiple of those asked for.
std::int64_t matrix_columns(std::int64_t elements, std::optional<std::int64_t> asked);

}  // namespace cinch::driver
