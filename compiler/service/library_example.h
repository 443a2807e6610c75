// How a program of the standard library is called, to paste.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace cinch::service {

/// Of an item of list_library(): program (an expression around a compressor, of a wrapper), command
/// and python (two lines). A wrapper wraps topk, or the compressor that is alone in it in `doc`:
/// `error_feedback(topk)`.
nlohmann::json example_of(const nlohmann::json& item, const std::string& doc);

}  // namespace cinch::service
