// Reports of internal errors; see report.h.
#include "compiler/driver/report/report.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <filesystem>

#include "compiler/driver/process/exit_code.h"
#include "compiler/driver/process/output_file.h"
#include "compiler/driver/version.h"

namespace cinch::driver {

namespace {

std::string now_as_text(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, format, &parts);
  return text;
}

}  // namespace

std::string write_report(const InternalError& error, const std::vector<std::string>& command_line) {
  std::string text =
      fmt::format("Cinch {}\nTime: {}\nCommand:", kVersion, now_as_text("%Y-%m-%d %H:%M:%S UTC"));
  for (const std::string& word : command_line) text += " '" + word + "'";
  text += fmt::format("\n\n{}\nWhere: {}\nStage: {}\n", error.what(), error.location(),
                      error.stage().empty() ? "not known" : error.stage());
  if (!error.program().empty()) text += "\nProgram:\n" + error.program() + "\n";
  try {
    const std::filesystem::path folder = std::filesystem::temp_directory_path();
    const std::string path =
        folder / fmt::format("cinch-report-{}-{}.txt", now_as_text("%Y%m%d-%H%M%S"), getpid());
    write_file(path, text);
    return path;
  } catch (const std::exception&) {
    return "";
  }
}

}  // namespace cinch::driver
