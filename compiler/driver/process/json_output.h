// What a command with --json prints on standard output: one JSON object or list, its result or,
// where there is none, what went wrong.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

// Does the command line ask for JSON? Also where the parser does not take the rest of it.
bool asks_for_json(const std::vector<std::string>& words);

// One line. Bytes that are no UTF-8, as names of files may have, are replaced.
void print_result(const nlohmann::json& result);
// For a result that was printed by other means.
void note_printed_result();

// What print_failure says where a command ends with a code and without a message.
void keep_failure_message(const std::string& message);
// The diagnostics of the latest program, as dsl::render_json writes them, for a failure that may
// follow.
void keep_diagnostics(const std::string& rendered);

// {"error": {"kind", "exit_code", "message", "diagnostics"}}, where the command line asked for JSON
// and no result was printed.
void print_failure(ExitCode code, const std::string& message);

}  // namespace cinch::driver
