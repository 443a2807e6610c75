// The documents that an editor has open, their analyses, and the files that they name.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "compiler/lsp/features.h"
#include "compiler/service/front_end.h"
#include "dsl/sema/module_data.h"
#include "runtime/core/files/file_bytes.h"

namespace cinch::lsp {
namespace fs = std::filesystem;

namespace {

// Limits, since a folder of an editor may be a whole disk.
constexpr std::size_t kMaxFiles = 4000, kMaxEntries = 200000;

std::string normal_path(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

// Without a compiler headers cannot be read: the reader then returns that as an error at the
// `import`.
sema::ExternReader reader_that_returns(const rt::HeaderSearch& headers) {
  return [read = service::extern_reader(headers)](const rt::ExternRequest& request) {
    try {
      return read(request);
    } catch (const service::ServiceError& error) {
      return rt::ExternReply{.message = error.what()};
    }
  };
}

}  // namespace

Workspace::Workspace(const rt::HeaderSearch& headers, std::function<void(const std::string&)> log)
    : log_(std::move(log)), confine_(headers.confine), read_extern_(reader_that_returns(headers)) {}

void Workspace::open(const std::string& uri, std::int64_t version, std::string text) {
  Document& document = documents_[uri];
  document.uri = uri;
  document.path = path_of_uri(uri);
  document.text = std::move(text);
  document.version = version;
  document.is_stale = true;
  touch(document.path);
}

void Workspace::change(const std::string& uri, std::int64_t version, const Json& changes) {
  Document& changed = document(uri);
  for (const Json& change : changes) {
    auto text = change.at("text").get<std::string>();
    if (!change.contains("range")) {
      changed.text = std::move(text);
      continue;
    }
    const TextPositions positions(changed.text);
    const Json& range = change["range"];
    const std::uint32_t begin = positions.offset(position_of(range.at("start")));
    const std::uint32_t end = positions.offset(position_of(range.at("end")));
    if (end < begin) throw RequestError{ErrorCode::InvalidParams, "a range ends before it begins"};
    changed.text.replace(begin, end - begin, text);
  }
  changed.version = version;
  changed.is_stale = true;
  touch(changed.path);
}

void Workspace::close(const std::string& uri) {
  const std::string path = document(uri).path;
  documents_.erase(uri);
  touch(path);
}

void Workspace::touch(const std::string& path) {
  for (auto& [uri, document] : documents_) {
    const Analysis* const analysis = document.analysis.get();
    document.is_stale |=
        analysis == nullptr || analysis->lacks_files() || analysis->depends_on(path);
  }
}

void Workspace::touch_all() {
  for (auto& [uri, document] : documents_) document.is_stale = true;
}

void Workspace::note_change_on_disk(const std::string& path) {
  if (find_path(path) == nullptr) touch_all();
}

Document& Workspace::document(const std::string& uri) {
  const auto at = documents_.find(uri);
  if (at == documents_.end()) {
    throw RequestError{ErrorCode::InvalidParams, "the document is not open: " + uri};
  }
  return at->second;
}

Document* Workspace::next_stale() {
  for (auto& [uri, document] : documents_) {
    if (document.is_stale) return &document;
  }
  return nullptr;
}

AnalysisRequest Workspace::request(const std::string& path, std::string text) const {
  return {.path = path, .text = std::move(text), .load = [this](const sema::ImportRequest& import) {
            return load(import);
          }};
}

void Workspace::check(Document& document) {
  if (!document.is_stale) return;
  document.is_stale = false;
  document.analysis = nullptr;
  // A document may have syntax errors when it is opened.
  if (document.last_with_imports == nullptr) {
    std::istringstream whole(document.text);
    std::string imports;  // at their lines
    for (std::string line; std::getline(whole, line);)
      imports += (line.starts_with("import ") ? line : "") + "\n";
    document.last_with_imports = read(document.path, imports);
  }
  AnalysisRequest wanted = request(document.path, document.text);
  wanted.read_extern = read_extern_;
  wanted.earlier = document.last_with_imports;
  document.analysis = std::make_shared<const Analysis>(std::move(wanted));
  if (document.analysis->has_imports()) document.last_with_imports = document.analysis;
}

std::shared_ptr<const Analysis> Workspace::read(const std::string& path, std::string text) const {
  AnalysisRequest wanted = request(path, std::move(text));
  wanted.depth = sema::CheckDepth::Names;
  return std::make_shared<const Analysis>(std::move(wanted));
}

// ---- files

const Document* Workspace::find_path(const std::string& path) const {
  const auto at =
      std::ranges::find(documents_, normal_path(path),
                        [](const auto& entry) -> const std::string& { return entry.second.path; });
  return at == documents_.end() ? nullptr : &at->second;
}

std::optional<std::string> Workspace::text_of(const std::string& path) const {
  if (const Document* open = find_path(path)) return open->text;
  const auto text = rt::read_text_file(path);
  return text ? std::optional(*text) : std::nullopt;
}

rt::Result<std::vector<sema::LoadedText>> Workspace::load(
    const sema::ImportRequest& request) const {
  CINCH_TRY(service::check_import(request, confine_));
  if (request.std_path.empty()) {
    const std::string path =
        (fs::path(request.from).parent_path() / request.file).lexically_normal().string();
    if (const Document* open = find_path(path))
      return std::vector<sema::LoadedText>{{path, open->text}};
  }
  try {
    std::vector<sema::LoadedText> texts = service::load_import(request);
    for (sema::LoadedText& loaded : texts) {
      if (const Document* open = find_path(loaded.name)) loaded.text = open->text;
    }
    return texts;
  } catch (const service::ServiceError& error) {
    log_(error.what());
    return {};
  }
}

std::vector<std::string> Workspace::files() const {
  std::set<std::string> found;
  for (const auto& [uri, document] : documents_) found.insert(document.path);
  std::size_t num_entries = 0;
  for (const std::string& folder : folders_) {
    std::error_code error;
    const auto options = fs::directory_options::skip_permission_denied;
    for (fs::recursive_directory_iterator next(folder, options, error), end;
         !error && next != end && found.size() < kMaxFiles && num_entries < kMaxEntries;
         next.increment(error), ++num_entries) {
      // Folders like `.git` contain nothing that anybody edits.
      if (next->path().filename().string().starts_with('.')) next.disable_recursion_pending();
      std::error_code gone;
      const bool is_source =
          next->path().extension() == ".cinch" && next->is_regular_file(gone);  // and not a pipe
      if (is_source) found.insert(normal_path(next->path()));
    }
  }
  return {found.begin(), found.end()};
}

static bool is_of(const ast::Import& import, const ImportOrigin& origin) {
  if (import.is_file()) return import.file == origin.file;
  if (import.path.size() != origin.std_path.size() + 1) return false;
  for (std::size_t i = 0; i < origin.std_path.size(); ++i) {
    if (import.path[i + 1].text != origin.std_path[i]) return false;
  }
  return true;
}

Analysis::Analysis(AnalysisRequest request) {
  // Kept with the module, which outlives this call.
  const sema::Loader load = [this, read = std::move(request.load)](const sema::ImportRequest& of) {
    auto texts = read(of);
    lacks_files_ |= !texts || texts->empty();
    if (!texts) return texts;
    for (const sema::LoadedText& loaded : *texts) {
      origins_.try_emplace(loaded.name, ImportOrigin{of.from, of.file, of.std_path});
    }
    return texts;
  };
  types_.file = sources_.add(std::move(request.path), std::move(request.text)).id();
  module_ = std::make_unique<const sema::CheckedModule>(sema::check_module(
      sources_, types_.file, load, sink_, request.depth, std::move(request.read_extern), &types_));
  // Imports are followed only in texts without syntax errors.
  const bool lacks_imports = root().imports.empty() && root().names.empty();
  if (!lacks_imports || request.earlier == nullptr) return;
  const ast::Module& tree = request.earlier->root().tree;
  const bool has_import = std::ranges::any_of(tree.decls, [&](ast::DeclId id) {
    return std::holds_alternative<ast::Import>(tree[id].node);
  });
  if (has_import) imports_from_ = std::move(request.earlier);
}

const sema::FileUnit& Analysis::root() const {
  return module_->data().root();
}

const sema::FileUnit& Analysis::imports() const {
  return imports_from_ != nullptr ? imports_from_->root() : root();
}

std::optional<Span> Analysis::import_of(const std::string& path) const {
  std::string name = path;
  // Each step leads to a file that was read earlier: origins contain no cycle.
  for (auto at = origins_.find(name); at != origins_.end(); at = origins_.find(name)) {
    if (at->second.from != root().source->name()) {
      name = at->second.from;
      continue;
    }
    for (const ast::DeclId id : root().tree.decls) {
      const auto* import = std::get_if<ast::Import>(&root().tree[id].node);
      if (import != nullptr && is_of(*import, at->second)) return root().tree[id].span;
    }
    break;
  }
  return std::nullopt;
}

const NameIndex& Analysis::names_of(const sema::FileUnit& unit) const {
  std::unique_ptr<const NameIndex>& index = indices_[&unit];
  if (index == nullptr) {
    const sema::FileUnit& imported = &unit == &root() ? imports() : unit;
    index = std::make_unique<const NameIndex>(index_names(unit, imported));
  }
  return *index;
}

const Declaration* Analysis::find(const NamePlace& place) const {
  return place.unit == nullptr ? nullptr : names_of(*place.unit).find(place.name);
}

std::vector<NameUse> uses_in(const Analysis& analysis, const NamePlace& declared) {
  std::vector<NameUse> found;
  std::ranges::copy_if(analysis.names().uses, std::back_inserter(found), [&](const NameUse& use) {
    return use.declared.name.begin == declared.name.begin &&
           use.declared.unit->source->name() == declared.unit->source->name();
  });
  return found;
}

void visit_other_files(const Query& query, const NamePlace& declared, const Declaration& name,
                       const OtherFileVisitor& visit) {
  const bool can_be_imported =
      name.kind == NameKind::Const || name.kind == NameKind::Fn ||
      name.kind == NameKind::ExternFn || name.kind == NameKind::Compressor ||
      name.kind == NameKind::Parameter || name.kind == NameKind::InnerCompressor;
  if (!can_be_imported) return;
  for (const std::string& path : query.workspace.files()) {
    if (path == query.document.path) continue;
    const auto text = query.workspace.text_of(path);
    if (!text || text->find(name.name.text) == std::string::npos) continue;
    const auto other = query.workspace.read(path, *text);
    const std::vector<NameUse> uses = uses_in(*other, declared);
    if (!uses.empty()) visit(path, *other, uses);
  }
}

}  // namespace cinch::lsp
