#include "compiler/lsp/analysis.h"

#include <utility>

#include "dsl/sema/module_data.h"

namespace cinch::lsp {

namespace {

bool has_import(const ast::Module& tree) {
  for (const ast::DeclId id : tree.decls) {
    if (std::holds_alternative<ast::Import>(tree[id].node)) return true;
  }
  return false;
}

bool is_of(const ast::Import& import, const ImportOrigin& origin) {
  if (import.is_file()) return import.file == origin.file;
  if (import.path.size() != origin.std_path.size() + 1) return false;
  for (std::size_t i = 0; i < origin.std_path.size(); ++i) {
    if (import.path[i + 1].text != origin.std_path[i]) return false;
  }
  return true;
}

}  // namespace

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
  if (lacks_imports && request.earlier != nullptr && has_import(request.earlier->root().tree)) {
    imports_from_ = std::move(request.earlier);
  }
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

}  // namespace cinch::lsp
