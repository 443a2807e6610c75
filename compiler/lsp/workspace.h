// The documents that an editor has open, and their analyses. Texts come from the editor. Imports of
// an open document are read from other open documents first, then from files.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/lsp/analysis.h"
#include "compiler/lsp/protocol/json.h"
#include "runtime/core/extern_function.h"

namespace cinch::lsp {

struct Document {
  std::string uri, path, text;
  std::int64_t version = 0;
  bool is_stale = true;  // its text or an imported file changed since the last check
  // nullptr before the first check, and if a fault of the checker ended it.
  std::shared_ptr<const Analysis> analysis;
  std::shared_ptr<const Analysis> last_with_imports;
};

class Workspace {
 public:
  /// `log` gets sentences about unreadable files.
  Workspace(const rt::HeaderSearch& headers, std::function<void(const std::string&)> log);

  /// Sets the folders whose files are searched when a name of a file changes.
  void set_folders(std::vector<std::string> folders) { folders_ = std::move(folders); }

  void open(const std::string& uri, std::int64_t version, std::string text);
  /// `changes`: contentChanges of the protocol. Throws RequestError if the document is not open or
  /// a range is invalid.
  void change(const std::string& uri, std::int64_t version, const Json& changes);
  void close(const std::string& uri);
  /// Notes that files on the disk may have changed: marks all documents stale.
  void touch_all();
  /// The same for one file. It says nothing new of an open document, whose text is the editor's.
  void note_change_on_disk(const std::string& path);

  /// Throws RequestError for a document that is not open.
  Document& document(const std::string& uri);
  /// The next document to check; nullptr if none is stale.
  Document* next_stale();
  /// Checks a stale document. Throws InternalError for a fault of the checker; the document then
  /// has no analysis and is not stale.
  void check(Document& document);

  /// Cinch files in the folders, and opened documents in none of them, by path; at most some
  /// thousands.
  std::vector<std::string> files() const;
  /// The text of an open document or of a file; nothing if it cannot be read.
  std::optional<std::string> text_of(const std::string& path) const;
  /// Reads a file and its imports, but checks only declarations of names. Throws InternalError.
  std::shared_ptr<const Analysis> read(const std::string& path, std::string text) const;

 private:
  // Marks documents stale that import this file, or that import a missing file.
  void touch(const std::string& path);
  AnalysisRequest request(const std::string& path, std::string text) const;
  rt::Result<std::vector<sema::LoadedText>> load(const sema::ImportRequest& request) const;
  const Document* find_path(const std::string& path) const;

  std::function<void(const std::string&)> log_;
  std::string confine_;
  sema::ExternReader read_extern_;
  std::vector<std::string> folders_;
  std::map<std::string, Document> documents_;  // by URI
};

}  // namespace cinch::lsp
