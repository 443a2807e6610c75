// The standard output of a command with --json: one JSON object or list, which is the result or the
// error.
#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

// Does the command line ask for JSON? Works even if the parser rejects the rest of it.
bool asks_for_json(const std::vector<std::string>& words);

// Prints one line. Replaces bytes that are not UTF-8, which names of files may contain.
void print_result(const nlohmann::json& result);
// Notes that the result was printed by other means.
void note_printed_result();

// Keeps a message for print_failure, for a command that ends with a code and without a message.
void keep_failure_message(const std::string& message);
// Keeps the latest program's diagnostics, as dsl::render_json writes them, in case a failure
// follows.
void keep_diagnostics(const std::string& rendered);

// Prints {"error": {"kind", "exit_code", "message", "diagnostics"}}, if the command line asked for
// JSON and no result was printed.
void print_failure(ExitCode code, const std::string& message);

}  // namespace cinch::driver
