// One checked document, which every feature reads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/lsp/name_index.h"
#include "compiler/lsp/protocol/json.h"
#include "dsl/diag/diag.h"
#include "dsl/sema/sema.h"
#include "dsl/source/source.h"
#include "runtime/core/extern_function.h"

namespace cinch::lsp {
/// Why a file was read: the first import that asked for it.
struct ImportOrigin {
  std::string from;  // name of the importing file
  std::string file;  // as the import writes it, or empty
  std::vector<std::string> std_path;
};

class Analysis;

struct AnalysisRequest {
  std::string path, text;  // the document's text, used instead of the file's
  sema::Loader load;       // kept in the analysis
  sema::ExternReader read_extern;
  sema::CheckDepth depth = sema::CheckDepth::Everything;
  /// The last state of the document whose imports could be read, or nullptr. While the text has
  /// syntax errors, names of imports come from there.
  std::shared_ptr<const Analysis> earlier;
};

class Analysis {
 public:
  /// Throws InternalError for a fault of the checker.
  explicit Analysis(AnalysisRequest request);

  Analysis(const Analysis&) = delete;
  Analysis& operator=(const Analysis&) = delete;

  const dsl::SourceSet& sources() const { return sources_; }
  const dsl::DiagSink& sink() const { return sink_; }
  const sema::TypeRecord& types() const { return types_; }
  const sema::CheckedModule& module() const { return *module_; }
  const sema::FileUnit& root() const;
  const dsl::SourceBuffer& source() const { return *root().source; }
  /// The file whose imports are used to look up names: root(), or an earlier state of it.
  const sema::FileUnit& imports() const;
  bool has_imports() const { return imports_from_ == nullptr; }
  /// Was this file read for the document?
  bool depends_on(const std::string& path) const { return origins_.contains(path); }
  /// Was any imported file, direct or indirect, unreadable?
  bool lacks_files() const { return lacks_files_; }
  /// The span of the import in this file through which another file, given by name, was read.
  std::optional<Span> import_of(const std::string& path) const;

  /// Names of the document, or of a file that it imports.
  const NameIndex& names() const { return names_of(root()); }
  const NameIndex& names_of(const sema::FileUnit& unit) const;
  /// The declaration in the file's index; nullptr if there is none.
  const Declaration* find(const NamePlace& place) const;

 private:
  dsl::SourceSet sources_;
  dsl::DiagSink sink_;
  sema::TypeRecord types_;
  std::unique_ptr<const sema::CheckedModule> module_;
  std::map<std::string, ImportOrigin> origins_;  // by name of the imported file
  bool lacks_files_ = false;
  std::shared_ptr<const Analysis> imports_from_;
  mutable std::map<const sema::FileUnit*, std::unique_ptr<const NameIndex>> indices_;
};

// The documents that an editor has open, and their analyses. Texts come from the editor. Imports of
// an open document are read from other open documents first, then from files.

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
