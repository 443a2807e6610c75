// Files of commands. All functions throw CommandError.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/service/front_end.h"
#include "runtime/core/error.h"

namespace cinch::driver {
inline constexpr std::string_view kStandardInput = "-";

std::string read_text_file(const std::string& path);
// The same; "-" is standard input.
std::string read_text_or_input(const std::string& path);
// As rt::write_file_bytes: replaces the file, or writes to it if it is not a regular file. An
// interrupt leaves no half-written file.
void write_file(const std::string& path, std::span<const std::uint8_t> bytes);
void write_file(const std::string& path, std::string_view text);

// Throws as write_file would if no file can be written at `path`: call it before long work whose
// result goes there. An empty path is an option that was not given.
void require_place_for(const std::string& path);

struct OutputOption {
  std::string name, path;  // an option that was not given has no path
};
// Throws (ExitCode::Usage) if two options name one file, since the first output would be lost.
// Devices and pipes may take several outputs, one after the other.
void require_distinct_files(const std::vector<OutputOption>& outputs);

/// A private folder of this process, removed with its contents when the object is destroyed.
class TemporaryFolder {
 public:
  // Throws CommandError (Unavailable) if it cannot be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// How a command ends. Any part of the driver throws a CommandError if it cannot go on because of
// the user, the data or the machine; main prints it and exits with its code. Bugs of Cinch are
// InternalError.

enum class ExitCode : int {
  Done = 0,
  AtFault = 1,      // an error in the program, data or payload; a diagnostic says where
  Usage = 2,        // an error in the command line
  Unavailable = 3,  // not available on this machine, in this version, or in time
  Internal = 4,     // a bug of Cinch
};

// The meaning of a code, for people and scripts: `cinch help exit-codes`, and the `kind` of an
// error as JSON.
struct ExitCodeMeaning {
  ExitCode code;
  std::string_view kind, text;
};
std::span<const ExitCodeMeaning> exit_code_meanings();
const ExitCodeMeaning& meaning_of(ExitCode code);

class CommandError : public std::exception {
 public:
  // `message` without "error: "; empty if diagnostics were printed already.
  CommandError(ExitCode code, std::string message) : code_(code), message_(std::move(message)) {}
  template <typename First, typename... Rest>
  CommandError(ExitCode code, fmt::format_string<First, Rest...> format, First&& first,
               Rest&&... rest)
      : CommandError(
            code, fmt::format(format, std::forward<First>(first), std::forward<Rest>(rest)...)) {}
  CommandError(rt::ErrorKind kind, std::string message);
  ExitCode code() const { return code_; }
  // For an error of the runtime.
  std::optional<rt::ErrorKind> kind() const { return kind_; }
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  ExitCode code_;
  std::string message_;
  std::optional<rt::ErrorKind> kind_;
};

// An error in the command line.
class UsageError : public CommandError {
 public:
  explicit UsageError(std::string message) : CommandError(ExitCode::Usage, std::move(message)) {}
  template <typename First, typename... Rest>
  UsageError(fmt::format_string<First, Rest...> format, First&& first, Rest&&... rest)
      : CommandError(ExitCode::Usage, format, std::forward<First>(first),
                     std::forward<Rest>(rest)...) {}
};

// The exit code for an error of the runtime or of the service.
ExitCode exit_code_of(service::Fault fault);
ExitCode exit_code_of(rt::ErrorKind kind);
[[noreturn]] void throw_error(const rt::Error& error, const std::string& context = "");

// Returns the value, or throws the error with `context` ("file g.npy") before it.
template <typename T>
T value_or_throw(rt::Result<T> result, const std::string& context = "") {
  if (!result) throw_error(result.error(), context);
  return std::move(*result);
}

// The standard output of a command with --json: one JSON object or list, which is the result or the
// error.

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
