// The fixture of the checker's tests.
#include "tests/unit/dsl/sema/check_fixture.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace cinch::sema {

namespace {

std::vector<LoadedText> load_std(const std::vector<std::string>& names) {
  std::filesystem::path path = CINCH_STDLIB;
  for (const std::string& name : names) path /= name;
  std::vector<LoadedText> texts;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      texts.push_back({entry.path().string(), read_file(entry.path())});
    }
    return texts;
  }
  // A program may be named without its family.
  const std::string wanted = names.back() + ".cinch";
  for (const auto& entry : std::filesystem::recursive_directory_iterator(CINCH_STDLIB)) {
    if (entry.path().filename() != wanted) continue;
    texts.push_back({entry.path().string(), read_file(entry.path())});
  }
  return texts;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::vector<std::string> Checked::lines() const {
  std::vector<std::string> lines;
  for (const dsl::Diagnostic& diag : sink->all()) {
    const dsl::SourceBuffer* file = sources->find(diag.span.file);
    const dsl::LineColumn at =
        file == nullptr ? dsl::LineColumn{} : file->position(diag.span.begin);
    lines.push_back(std::to_string(at.line) + ":" + std::to_string(at.column) + ": " +
                    std::string(diag.code()) + " " + dsl::message(diag));
  }
  return lines;
}

std::string Checked::all_lines() const {
  std::string text;
  for (const std::string& line : lines()) text += line + "\n";
  return text;
}

const dsl::Diagnostic* Checked::find(dsl::DiagKind kind) const {
  for (const dsl::Diagnostic& diag : sink->all()) {
    if (diag.kind == kind) return &diag;
  }
  return nullptr;
}

CheckedProgram Checked::program(const std::string& name, const std::vector<Binding>& bindings) {
  auto made = elaborate(*module, name, bindings, *sink);
  EXPECT_TRUE(made.has_value()) << all_lines();
  return made ? std::move(*made) : CheckedProgram{};
}

Checked check(const std::string& text, const std::map<std::string, std::string>& others,
              ExternReader read_extern) {
  Checked checked;
  checked.sources = std::make_unique<dsl::SourceSet>();
  checked.sink = std::make_unique<dsl::DiagSink>();
  const dsl::SourceBuffer& file = checked.sources->add("main.cinch", text);
  const Loader loader = [&](const ImportRequest& request) -> std::vector<LoadedText> {
    if (!request.std_path.empty()) return load_std(request.std_path);
    if (request.file == "main.cinch") return {{"main.cinch", text}};
    const auto other = others.find(request.file);
    if (other == others.end()) return {};
    return {{other->first, other->second}};
  };
  checked.module = check_module(*checked.sources, file.id(), loader, *checked.sink,
                                CheckDepth::Everything, std::move(read_extern));
  return checked;
}

std::string in_encode(const std::string& statements, const std::string& items) {
  return "compressor t {\n" + items + "wire { value: [f32; n] }\nencode(g: [f32; n]) {\n" +
         statements + "\nwire { value: g }\n}\ndecode(w) { w.value }\n}\n";
}

std::string in_decode(const std::string& statements, const std::string& items) {
  return "compressor t {\n" + items +
         "wire { value: [f32; n] }\nencode(g: [f32; n]) { wire { value: g } }\ndecode(w) {\n" +
         statements + "\n}\n}\n";
}

}  // namespace cinch::sema
