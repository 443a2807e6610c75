// Example calls of programs of the standard library, to paste.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cinch::service {

/// Makes the example of an item of list_library(): program (for a wrapper, an expression around a
/// compressor), command and python (two lines). A wrapper wraps topk, or the compressor that is
/// alone in it in `doc`: `error_feedback(topk)`.
nlohmann::json example_of(const nlohmann::json& item, const std::string& doc);

}  // namespace cinch::service
