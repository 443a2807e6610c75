// Checks program text in memory: files by name, the standard library from the tree, and diagnostics
// as lines `12:18: S014 cannot add …`.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/sema/sema.h"

namespace cinch::sema {

struct Checked {
  std::unique_ptr<dsl::SourceSet> sources;
  std::unique_ptr<dsl::DiagSink> sink;
  std::optional<CheckedModule> module;

  /// `line:column: code message`, one per diagnostic, in order.
  std::vector<std::string> lines() const;
  std::string all_lines() const;
  /// The first diagnostic of this kind, or nullptr.
  const dsl::Diagnostic* find(dsl::DiagKind kind) const;
  /// Elaborates; the test fails if that reports something.
  CheckedProgram program(const std::string& name, const std::vector<Binding>& bindings = {});
};

/// Checks `text` as "main.cinch"; `others` are files that it may import by name.
Checked check(const std::string& text, const std::map<std::string, std::string>& others = {},
              ExternReader read_extern = {});

/// A compressor `t` that sends g itself, with these statements in its encode.
std::string in_encode(const std::string& statements, const std::string& items = "");
/// The same, in its decode.
std::string in_decode(const std::string& statements, const std::string& items = "");

/// The whole file; empty if there is none.
std::string read_file(const std::filesystem::path& path);
bool contains(const std::string& text, const std::string& part);

}  // namespace cinch::sema
