// Shared by the tests of dsl/syntax: parsing of text, and the corpus of whole programs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "dsl/diag/render.h"
#include "dsl/syntax/syntax.h"

namespace cinch::dsl {

/// A parsed text with its source and diagnostics.
struct Parsed {
  SourceSet sources;
  DiagSink sink;
  const SourceBuffer* source = nullptr;
  ast::Module module;

  explicit Parsed(const std::string& text) {
    source = &sources.add("t.cinch", text);
    module = parse(*source, sink);
  }

  std::string errors() const { return render_text(sink.all(), sources); }
  /// `line:column Kind` of each diagnostic.
  std::vector<std::string> places() const {
    std::vector<std::string> result;
    for (const Diagnostic& diag : sink.all()) {
      const LineColumn at = source->position(diag.span.begin);
      result.push_back(std::to_string(at.line) + ":" + std::to_string(at.column) + " " +
                       std::string(diag_info(diag.kind).name));
    }
    return result;
  }
  std::vector<std::string> messages() const {
    std::vector<std::string> result;
    for (const Diagnostic& diag : sink.all()) result.push_back(message(diag));
    return result;
  }
};

/// The dump of a text that must parse.
inline std::string dump_of(const std::string& text) {
  const Parsed parsed(text);
  EXPECT_FALSE(parsed.sink.has_errors()) << text << "\n" << parsed.errors();
  return dump(parsed.module);
}

/// The dump of one expression.
inline std::string expr_dump(const std::string& expression) {
  const std::string text = dump_of("const A = " + expression + "\n");
  const std::string head = "const A ";
  return text.size() > head.size() ? text.substr(head.size(), text.size() - head.size() - 1) : text;
}

/// The dump of statements inside an encode, without the surrounding program.
inline std::string body_dump(const std::string& statements) {
  const std::string text = dump_of("compressor c {\n  encode(g) {\n" + statements + "\n  }\n}\n");
  const std::string head = "compressor c\n  encode\n    param g\n";
  return text.substr(std::min(head.size(), text.size()));
}

struct CorpusFile {
  std::string name;
  std::string text;
};

inline std::vector<CorpusFile> corpus() {
  std::vector<CorpusFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(CINCH_CORPUS)) {
    if (entry.path().extension() != ".cinch") continue;
    std::ifstream file(entry.path(), std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    files.push_back({entry.path().stem().string(), text.str()});
  }
  std::sort(files.begin(), files.end(),
            [](const CorpusFile& a, const CorpusFile& b) { return a.name < b.name; });
  EXPECT_GE(files.size(), 8u);
  return files;
}

}  // namespace cinch::dsl
