// What the standard library has, as data: what `cinch list --json` prints and the C API gives.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "compiler/service/front_end.h"

namespace cinch::service {

/// An object for each compressor: name, family, file; summary, paper, stores and choices, as its
/// documentation has them; payload_bits_per_element (of a tensor of 4 MiB) and payload_bound (a
/// formula), null where there is no payload of its own; aggregation, matrix, state, claims;
/// parameters (name, doc, type, default, range, constant, words); example (command, python).
/// Diagnostics of programs that do not check go to the front end's sink. Throws ServiceError
/// (Unavailable) where the library is not found.
nlohmann::json list_library(FrontEnd& front_end);

/// What follows `heading` ("Paper:") in a program's documentation, up to the next heading, on one
/// line; with no heading what comes before the first one. "" where there is none.
std::string doc_section(const std::string& doc, std::string_view heading);

}  // namespace cinch::service
