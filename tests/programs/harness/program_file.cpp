// Directives are read line by line; an unknown capitalised one is an error, so that a typing
// mistake does not drop a check.
#include "tests/programs/harness/program_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "tests/environment.h"

namespace cinch::testing {
namespace {

bool split(const std::string& text, char separator, std::string& left, std::string& right) {
  const std::size_t at = text.find(separator);
  if (at == std::string::npos) return false;
  left = text.substr(0, at);
  right = text.substr(at + 1);
  return !left.empty() && !right.empty();
}

bool read_directive(const std::string& key, std::istringstream& words, ProgramFile& program) {
  std::string word, left, right;
  while (words >> word) {
    if (key == "KERNELS" && split(word, '=', left, right)) {
      program.kernels[left] = std::stoi(right);
    } else if (key == "SHAPES" && split(word, 'x', left, right)) {
      program.shapes.emplace_back(std::stoll(left), std::stoll(right));
    } else if (key == "WORLD") {
      program.world = static_cast<std::uint32_t>(std::stoul(word));
    } else if (key == "SET" && split(word, '=', left, right)) {
      program.bindings.emplace_back(left, std::stod(right));
    } else {
      return false;
    }
  }
  return true;
}

// "// KEY: words": the key where the line is one, else nothing.
std::string directive_key(const std::string& line, std::istringstream& words) {
  if (!line.starts_with("// ")) return {};
  const std::size_t colon = line.find(':');
  if (colon == std::string::npos) return {};
  std::string key = line.substr(3, colon - 3);
  const bool is_key = key.size() > 2 && std::all_of(key.begin(), key.end(),
                                                    [](char c) { return c >= 'A' && c <= 'Z'; });
  if (!is_key) return {};
  words.str(line.substr(colon + 1));
  return key;
}

}  // namespace

std::optional<ProgramFile> make_program(std::string name, std::string text) {
  ProgramFile program;
  program.name = std::move(name);
  program.path = program.name + ".cinch";
  program.text = std::move(text);
  std::istringstream lines(program.text);
  std::string line;
  while (std::getline(lines, line)) {
    std::istringstream words;
    const std::string key = directive_key(line, words);
    if (!key.empty() && !read_directive(key, words, program)) return std::nullopt;
  }
  return program;
}

std::optional<ProgramFile> read_program(const std::filesystem::path& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  std::ostringstream text;
  text << in.rdbuf();
  auto program = make_program(path.stem().string(), text.str());
  if (program) program->path = path.string();
  return program;
}

bool is_wrapper(const ProgramFile& program) {
  return program.text.find(": compressor") != std::string::npos &&
         program.text.find("compressor " + program.name + " =") == std::string::npos;
}

bool is_protocol(const ProgramFile& program) {
  return program.text.find("\n  sync(") != std::string::npos;
}

std::vector<ProgramFile> library_compositions() {
  std::vector<ProgramFile> programs;
  for (const ProgramFile& inner : compressors_of(CINCH_STDLIB_DIR)) {
    // A residual around states of the gradient's size is an error.
    if (inner.text.find("\n  state ") != std::string::npos) continue;
    const std::string name = "ef_of_" + inner.name;
    const std::string family = std::filesystem::path(inner.path).parent_path().filename();
    auto program = make_program(
        name, fmt::format("import std.wrap\nimport std.{}\ncompressor {} = error_feedback({})\n",
                          family, name, inner.name));
    if (program) programs.push_back(std::move(*program));
  }
  const std::pair<const char*, const char*> with_momentum[] = {
      {"momentum_of_qsgd", "momentum(qsgd, nesterov: true)"},
      {"momentum_of_ef_of_topk", "momentum(error_feedback(topk))"}};
  for (const auto& [name, tree] : with_momentum) {
    auto program =
        make_program(name, fmt::format("import std.wrap\nimport std.quantize\nimport std.sparsify\n"
                                       "compressor {} = {}\n",
                                       name, tree));
    if (program) programs.push_back(std::move(*program));
  }
  return programs;
}

namespace {

std::vector<ProgramFile> readable_programs(const std::filesystem::path& folder,
                                           bool are_protocols) {
  std::vector<ProgramFile> programs;
  for (const auto& path : find_programs(folder)) {
    auto program = read_program(path);
    if (program && !is_wrapper(*program) && is_protocol(*program) == are_protocols) {
      programs.push_back(std::move(*program));
    }
  }
  return programs;
}

}  // namespace

std::vector<ProgramFile> compressors_of(const std::filesystem::path& folder) {
  return readable_programs(folder, false);
}
std::vector<ProgramFile> protocols_of(const std::filesystem::path& folder) {
  return readable_programs(folder, true);
}

std::vector<ProgramFile> every_nth(std::vector<ProgramFile> programs, std::size_t n) {
  std::vector<ProgramFile> kept;
  for (std::size_t i = 0; i < programs.size(); i += n) kept.push_back(std::move(programs[i]));
  return kept;
}

std::vector<ProgramFile> sample_of(std::vector<ProgramFile> programs) {
  return is_sample_run() ? every_nth(std::move(programs), 3) : programs;
}

std::vector<ProgramFile> everyday_part_of(std::vector<ProgramFile> programs, std::size_t n) {
  return is_long_run() ? programs : sample_of(every_nth(std::move(programs), n));
}

std::vector<ProgramFile> programs_for_cuda(bool is_long) {
  std::vector<ProgramFile> programs = compressors_of(CINCH_STDLIB_DIR);
  for (ProgramFile& program : protocols_of(CINCH_STDLIB_DIR)) {
    programs.push_back(std::move(program));
  }
  for (ProgramFile& program : library_compositions()) {
    const bool is_short = program.name == "ef_of_onebit" || program.name == "momentum_of_qsgd";
    if (is_long || is_short) programs.push_back(std::move(program));
  }
  if (!is_long) return sample_of(std::move(programs));
  for (ProgramFile& program : compressors_of(CINCH_PROGRAMS_DIR)) {
    programs.push_back(std::move(program));
  }
  return programs;
}

std::vector<std::filesystem::path> find_programs(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    // Parts contain only functions.
    const bool is_program = entry.path().parent_path().filename() != "parts";
    if (is_program && entry.path().extension() == ".cinch") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace cinch::testing
