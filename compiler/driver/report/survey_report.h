// The text of `cinch report`. The report is JSON: folder, tensors, elements, gradient_bytes, ranks,
// link, latency_us, threads; uncompressed and each of programs, fastest step first: program,
// family, ratio, payload_bytes, relative_error, exact_tensors, encode_ms, decode_ms, step_ms,
// network_ms, plan, note; not_tried: program and reason.
#pragma once
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cinch::driver {

/// No line is longer than `width` (at least 75).
std::string survey_text(const nlohmann::json& report, std::size_t width);

/// How the numbers of a column were computed.
struct ColumnNote {
  std::string column, text;
};
std::vector<ColumnNote> survey_notes(const nlohmann::json& report);

/// "4 ranks, each with a link of 1Gbit/s and 50 µs".
std::string survey_ranks(const nlohmann::json& report);

/// Milliseconds in readable form; "-" for null.
std::string milliseconds_text(const nlohmann::json& milliseconds);
/// "0.716", "2e-04"; "-" for null.
std::string error_text(const nlohmann::json& error);
/// Three digits; "-" for null.
std::string digits_or_dash(const nlohmann::json& number);

}  // namespace cinch::driver
