// The contents of the standard library as data, for `cinch list --json` and the C API.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "compiler/service/front_end.h"

namespace cinch::service {

/// An object for each compressor: name, family, file; summary, paper, stores and choices, from its
/// documentation; payload_bits_per_element (for a tensor of 4 MiB) and payload_bound (a formula),
/// null if it has no payload of its own; carrier and carries_sums, null for wrappers; aggregation,
/// matrix, state, claims; parameters (name, doc, type, default, range, constant, words); example
/// (command, python). Diagnostics of programs that fail the check go to the front end's sink.
/// Throws ServiceError (Unavailable) if the library is not found.
nlohmann::json list_library(FrontEnd& front_end);

/// The text after `heading` ("Paper:") in a program's documentation, up to the next heading, on one
/// line. With an empty heading, the text before the first one. "" if there is none.
std::string doc_section(const std::string& doc, std::string_view heading);

/// Makes the example of an item of list_library(): program (for a wrapper, an expression around a
/// compressor), command and python (two lines). A wrapper wraps topk, or the compressor that is
/// alone in it in `doc`: `error_feedback(topk)`.
nlohmann::json example_of(const nlohmann::json& item, const std::string& doc);

}  // namespace cinch::service
