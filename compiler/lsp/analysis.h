// One checked document, which every feature reads.
#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "compiler/lsp/name_index.h"
#include "dsl/diag/diag.h"
#include "dsl/sema/sema.h"
#include "dsl/source/source.h"

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

}  // namespace cinch::lsp
