// The contents of the standard library as data, for `cinch list --json` and the C API.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>

#include "compiler/service/front_end.h"
#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr_id.h"

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

// Formulas in the form that people read.

/// The same sum with equal terms combined: 4 * n + 4 * n becomes 8 * n, and the whole bytes of 32 *
/// n bits become 4 * n.
HostExprId collected(HostExprPool& pool, HostExprId sum);

/// "ceil_div(n, 8)", with the names of the program's parameters and counts.
std::string formula_text(rt::ProgramInfo& info, HostExprId id);

/// The same, shortened by names of the program's sizes: "4 * k + 80, where k = ceil(ratio * n)".
std::string formula_with_sizes(rt::ProgramInfo& info, HostExprId id);

/// Replaces `formula` by the name of the size that it defines, wherever it needs no brackets.
/// Returns whether it did.
bool name_size(std::string& text, const std::string& formula, const std::string& name);

/// The most bytes of a payload: 64, the counts, then each field at the next multiple of 16.
HostExprId payload_bound(rt::ProgramInfo& info);

// What carries sums of a program, in words and as data, for explain and list.

/// "itself", "error_feedback(topk(ratio: 0.001))", "f32 (exact)", …
std::string carrier_text(const rt::ProgramInfo& info);
/// kind (itself, exact, program or none), text, shares_draws.
nlohmann::json carrier_json(const rt::SumCarrier& carrier);

}  // namespace cinch::service
