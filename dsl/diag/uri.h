// File names in what other programs read.
#pragma once
#include <string>
#include <string_view>

namespace cinch::dsl {

/// A file name as a URI reference: all but unreserved characters and `/` are written as %XX (RFC
/// 3986).
std::string to_uri(std::string_view name);

}  // namespace cinch::dsl
