// The meanings of exit codes, and the codes of errors of runtime and service.
#include <stdlib.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>

#include "compiler/driver/process/files.h"
#include "compiler/driver/process/terminal.h"
#include "runtime/core/files/file_bytes.h"

namespace cinch::driver {
std::string read_text_file(const std::string& path) {
  return value_or_throw(rt::read_text_file(path));
}

std::string read_text_or_input(const std::string& path) {
  return path == kStandardInput ? value_or_throw(rt::read_text_input()) : read_text_file(path);
}

void write_file(const std::string& path, std::span<const std::uint8_t> bytes) {
  value_or_throw(rt::write_file_bytes(path, bytes, set_unfinished_file));
}

void write_file(const std::string& path, std::string_view text) {
  write_file(path, std::span(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

namespace {

// Where a path leads, even through a link to a file that does not exist yet.
std::filesystem::path place_of(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::error_code error;
  std::filesystem::path place = std::filesystem::absolute(path, error);
  for (int i = 0; i < kMostLinks && std::filesystem::is_symlink(place, error); ++i) {
    place = place.parent_path() / std::filesystem::read_symlink(place, error);
  }
  const std::filesystem::path canonical = std::filesystem::weakly_canonical(place, error);
  return error ? place : canonical;
}

constexpr ExitCodeMeaning kExitCodes[] = {
    {ExitCode::Done, "done", "The command did what it was asked to do."},
    {ExitCode::AtFault, "input",
     "The program, a file or a payload is wrong, or a file or the output could not be written. The "
     "message says which."},
    {ExitCode::Usage, "usage", "The command line is wrong."},
    {ExitCode::Unavailable, "unavailable",
     "The machine or this version lacks something: a device, a library, memory, file "
     "descriptors, or another rank that did not come or answer in time."},
    {ExitCode::Internal, "internal",
     "Cinch itself is at fault. A report is left in the folder for temporary files."},
};

using nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

struct Printed {
  bool has_result = false;
  std::string message;
  OrderedJson diagnostics = OrderedJson::array();
};

Printed& printed() {
  static Printed state;
  return state;
}

template <typename Json>
void print_line(const Json& value) {
  fmt::print("{}\n", value.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// "topk.cinch:3:7: unknown name `x`".
std::string first_error(const OrderedJson& diagnostics) {
  for (const OrderedJson& found : diagnostics) {
    if (found["severity"] != "error") continue;
    auto message = found["message"].get<std::string>();
    if (!found.contains("file")) return message;
    return fmt::format("{}:{}:{}: {}", found["file"].get<std::string>(), found["line"].get<int>(),
                       found["column"].get<int>(), message);
  }
  return {};
}

}  // namespace

void require_place_for(const std::string& path) {
  if (path.empty()) return;
  std::error_code error;  // whoever writes the file reports what is not seen here
  const bool is_folder = std::filesystem::is_directory(path, error);
  // Devices and pipes may lie in folders that cannot be written to.
  if (!is_folder && std::filesystem::exists(path, error)) return;
  const std::filesystem::path folder = place_of(path).parent_path();
  if (!is_folder && access(folder.c_str(), W_OK | X_OK) == 0) return;
  const int problem = is_folder ? EISDIR : errno;
  throw CommandError(ExitCode::AtFault, "cannot write '{}': {}", path, std::strerror(problem));
}

void require_distinct_files(const std::vector<OutputOption>& outputs) {
  std::map<std::filesystem::path, std::string> seen;
  for (const OutputOption& output : outputs) {
    std::error_code error;
    const auto kind = std::filesystem::status(output.path, error).type();
    const bool is_file = kind == std::filesystem::file_type::regular ||
                         kind == std::filesystem::file_type::not_found;
    if (output.path.empty() || !is_file) continue;
    const auto [at, is_new] = seen.try_emplace(place_of(output.path), output.name);
    if (is_new) continue;
    throw UsageError("{} and {} name one file, {}", at->second, output.name, output.path);
  }
}

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::error_code not_there;
  const auto parent = std::filesystem::temp_directory_path(not_there);
  std::string pattern = (parent / (name + "-XXXXXX")).string();
  if (not_there || !mkdtemp(pattern.data())) {
    throw CommandError(ExitCode::Unavailable, "no temporary folder can be made in " +
                                                  parent.string() + ": " + std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::span<const ExitCodeMeaning> exit_code_meanings() {
  return kExitCodes;
}

const ExitCodeMeaning& meaning_of(ExitCode code) {
  const auto index = static_cast<std::size_t>(code);
  return kExitCodes[index < std::size(kExitCodes) ? index : std::size(kExitCodes) - 1];
}

ExitCode exit_code_of(service::Fault fault) {
  switch (fault) {
    case service::Fault::Unavailable:
      return ExitCode::Unavailable;
    case service::Fault::Internal:
      return ExitCode::Internal;
    case service::Fault::Argument:
      return ExitCode::Usage;
    default:
      return ExitCode::AtFault;
  }
}

ExitCode exit_code_of(rt::ErrorKind kind) {
  switch (kind) {
    case rt::ErrorKind::Unavailable:
    case rt::ErrorKind::OutOfMemory:
    case rt::ErrorKind::Device:
    case rt::ErrorKind::TimedOut:
      return ExitCode::Unavailable;
    case rt::ErrorKind::Internal:
      return ExitCode::Internal;
    default:
      return ExitCode::AtFault;
  }
}

CommandError::CommandError(rt::ErrorKind kind, std::string message)
    : code_(exit_code_of(kind)), message_(std::move(message)), kind_(kind) {}

void throw_error(const rt::Error& error, const std::string& context) {
  const std::string place = context.empty() ? "" : context + ": ";
  throw CommandError(error.kind, place + error.message);
}

bool asks_for_json(const std::vector<std::string>& words) {
  std::string_view before;
  for (const std::string& word : words) {
    if (word == "--") return false;
    if (word == "--json" || word == "--diagnostics=json") return true;
    if (word == "json" && before == "--diagnostics") return true;
    before = word;
  }
  return false;
}

void print_result(const json& result) {
  note_printed_result();
  print_line(result);
}

void note_printed_result() {
  printed().has_result = true;
}

void keep_diagnostics(const std::string& rendered) {
  printed().diagnostics = OrderedJson::parse(rendered)["diagnostics"];
}

void keep_failure_message(const std::string& message) {
  printed().message = message;
}

void print_failure(ExitCode code, const std::string& message) {
  const OutputSettings& settings = output_settings();
  if (!settings.is_json || !settings.prints_json_errors || printed().has_result) return;
  const OrderedJson& diagnostics = printed().diagnostics;
  std::string text = message.empty() ? first_error(diagnostics) : message;
  if (text.empty()) text = printed().message;
  if (text.empty()) text = meaning_of(code).text;
  const OrderedJson error = {{"kind", meaning_of(code).kind},
                             {"exit_code", static_cast<int>(code)},
                             {"message", text},
                             {"diagnostics", diagnostics}};
  print_line(OrderedJson{{"error", error}});
}

}  // namespace cinch::driver
