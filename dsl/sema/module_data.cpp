// Loads files and their imports, and looks up declared names.
#include "dsl/sema/module_data.h"

#include <algorithm>
#include <filesystem>

#include "dsl/syntax/syntax.h"

namespace cinch::sema {

using dsl::DiagKind;

bool Reporter::is_reported(const dsl::Diagnostic& diag) {
  const auto place_of = [](const dsl::Diagnostic& of) {
    return Place(of.kind, of.span.file, of.span.begin, of.span.end);
  };
  const std::vector<dsl::Diagnostic>& all = sink_.all();
  for (; num_known_ < all.size(); ++num_known_) reported_.insert(place_of(all[num_known_]));
  return reported_.contains(place_of(diag));
}

void Reporter::move_to_composition(dsl::Diagnostic& diag) const {
  const bool is_in_library = std::ranges::any_of(module_->units, [&](const auto& unit) {
    return unit->is_library && unit->source->id() == diag.span.file;
  });
  if (!is_in_library) return;
  diag.notes.insert(diag.notes.begin(), {"in this compressor of the library", diag.span});
  diag.span = composition_;
}

dsl::Diagnostic& Reporter::add(dsl::Diagnostic diag) {
  if (diag.severity() == dsl::Severity::Error) ++num_errors_;
  if (module_ != nullptr) move_to_composition(diag);
  if (!is_reported(diag)) return sink_.add(std::move(diag));
  repeated_ = std::move(diag);
  return repeated_;
}

const ast::Name* declared_name(const ast::Decl& decl) {
  return std::visit(
      [](const auto& node) -> const ast::Name* {
        if constexpr (requires { node.name; }) {
          return &node.name;
        } else {
          return nullptr;
        }
      },
      decl.node);
}

std::string decl_noun(const ast::Decl& decl) {
  constexpr const char* kNouns[] = {"an import",          "a constant",   "a function",
                                    "an extern function", "a compressor", "a compressor"};
  return kNouns[decl.node.index()];
}

bool is_builtin_name(std::string_view name) {
  constexpr std::string_view kNames[] = {"n", "r", "c", "world", "worker", "machine_ranks", "step"};
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

const ast::Expr* find_name(const ast::Module& tree, Span text, std::string_view name) {
  const auto is_it = [&](const ast::Expr& expr) {
    const auto* found = std::get_if<ast::NameRef>(&expr.node);
    return found != nullptr && found->name.text == name && text.begin <= expr.span.begin &&
           expr.span.end <= text.end;
  };
  const auto at = std::ranges::find_if(tree.exprs.nodes, is_it);
  return at == tree.exprs.nodes.end() ? nullptr : &*at;
}

bool is_reserved_name(std::string_view name) {
  return name == "n" || name == "world" || name == "worker";
}

namespace {

class FileLoader {
 public:
  FileLoader(ModuleData& data, const Loader& loader, dsl::DiagSink& sink)
      : data_(data), loader_(loader), sink_(sink) {}

  const FileUnit* load(const dsl::SourceBuffer& source, bool is_library = false) {
    data_.units.push_back(std::make_unique<FileUnit>());
    FileUnit& unit = *data_.units.back();
    unit.source = &source;
    unit.is_library = is_library;
    const std::size_t errors = sink_.num_errors();
    unit.tree = dsl::parse(source, sink_);
    if (sink_.num_errors() == errors) {
      collect_names(unit);
      for (ast::DeclId id : unit.tree.decls) {
        const ast::Decl& decl = unit.tree[id];
        if (const auto* import = std::get_if<ast::Import>(&decl.node)) {
          follow(unit, *import, decl.span);
        }
      }
    }
    unit.is_loading = false;
    return &unit;
  }

 private:
  void collect_names(FileUnit& unit) {
    for (ast::DeclId id : unit.tree.decls) {
      const ast::Name* name = declared_name(unit.tree[id]);
      if (name == nullptr) continue;
      if (is_reserved_name(name->text)) {
        sink_.report<DiagKind::BuiltinNameTaken>(name->span, name->text);
      }
      const auto [at, is_new] = unit.names.emplace(name->text, id);
      if (!is_new) {
        sink_.report<DiagKind::DuplicateName>(name->span, name->text)
            .note(declared_name(unit.tree[at->second])->span, "first declared here");
      }
    }
  }

  void follow(FileUnit& unit, const ast::Import& import, Span span) {
    ImportRequest request{.file = import.file, .from = unit.source->name()};
    std::string shown = "`" + import.file + "`";
    // Messages show lines of what is parsed, so that a stranger's text must not name any file.
    if (import.is_file() && !import.file.ends_with(".cinch")) {
      sink_.report<DiagKind::ImportNotFound>(span, shown)
          .note("names of files that are imported end with `.cinch`");
      return;
    }
    if (!import.is_file()) {
      if (import.path.front().text != "std" || import.path.size() < 2) {
        sink_.report<DiagKind::ImportNotFound>(span, "this module: paths begin with `std.`");
        return;
      }
      shown = "`std";
      for (std::size_t i = 1; i < import.path.size(); ++i) {
        request.std_path.push_back(import.path[i].text);
        shown += "." + import.path[i].text;
      }
      shown += "`";
    }
    const auto texts = loader_ ? loader_(request) : std::vector<LoadedText>{};
    if (!texts || texts->empty()) {
      auto& diag = sink_.report<DiagKind::ImportNotFound>(span, shown);
      if (!texts) diag.note(texts.error().message);
      return;
    }
    ImportedFiles imported{qualifier_of(import), {}};
    for (const LoadedText& text : *texts) {
      if (const FileUnit* file = load_once(text, span, !import.is_file()))
        imported.files.push_back(file);
    }
    unit.imports.push_back(std::move(imported));
  }

  const FileUnit* load_once(const LoadedText& text, Span span, bool is_library) {
    for (const auto& unit : data_.units) {
      if (unit->source->name() != text.name) continue;
      if (!unit->is_loading) return unit.get();
      sink_.report<DiagKind::ImportLoop>(span, text.name);
      return nullptr;
    }
    return load(data_.sources->add(text.name, text.text), is_library);
  }

  static std::string qualifier_of(const ast::Import& import) {
    if (!import.is_file()) return import.path.back().text;
    std::string stem = import.file;
    if (const auto slash = stem.find_last_of("/\\"); slash != std::string::npos) {
      stem = stem.substr(slash + 1);
    }
    return stem.substr(0, stem.find('.'));
  }

  ModuleData& data_;
  const Loader& loader_;
  dsl::DiagSink& sink_;
};

}  // namespace

std::string names_text(const std::string& before, const std::vector<std::string_view>& names) {
  constexpr std::size_t kMost = 12;
  if (names.empty()) return before + " none";
  std::string text = before;
  const std::size_t shown = names.size() <= kMost ? names.size() : kMost - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    text += i == 0 ? " `" : ", `";
    text += std::string(names[i]) + "`";
  }
  return shown == names.size() ? text
                               : text + " and " + std::to_string(names.size() - shown) + " more";
}

std::string library_family(const ModuleData& module, const std::string& name) {
  if (!module.load) return "";
  const auto found = module.load(ImportRequest{.std_path = {name}});
  if (!found || found->size() != 1) return "";
  return std::filesystem::path(found->front().name).parent_path().filename().string();
}

std::string module_of_function(const ModuleData& module, const std::string& name) {
  if (!module.load) return "";
  const auto files = module.load(ImportRequest{.std_path = {"parts"}});
  if (!files) return "";
  for (const LoadedText& file : *files) {
    if (file.text.find("\nfn " + name + "(") == std::string::npos) continue;
    return std::filesystem::path(file.name).stem().string();
  }
  return "";
}

std::shared_ptr<ModuleData> load_files(dsl::SourceSet& sources, dsl::FileId file,
                                       const Loader& loader, dsl::DiagSink& sink) {
  auto data = std::make_shared<ModuleData>();
  data->sources = &sources;
  FileLoader(*data, loader, sink).load(*sources.find(file));
  return data;
}

std::optional<DeclRef> find_decl(const FileUnit& unit, std::string_view name, Span span,
                                 Reporter& reporter) {
  if (const auto own = unit.names.find(name); own != unit.names.end()) {
    return DeclRef{&unit, own->second};
  }
  std::vector<DeclRef> found;
  std::vector<std::string> qualifiers;
  for (const ImportedFiles& import : unit.imports) {
    for (const FileUnit* file : import.files) {
      const auto at = file->names.find(name);
      if (at == file->names.end()) continue;
      // Several imports may find the same file, because compressors of the library use each other.
      DeclRef ref = {file, at->second};
      if (std::find(found.begin(), found.end(), ref) == found.end()) found.push_back(ref);
      qualifiers.push_back(import.qualifier);
    }
  }
  if (found.size() == 1) return found.front();
  if (found.size() > 1) {
    auto& diag = reporter.report<DiagKind::AmbiguousName>(span, name);
    for (std::size_t i = 0; i < found.size(); ++i) {
      diag.note(declared_name(*found[i])->span,
                "`" + qualifiers[i] + "." + std::string(name) + "` is declared here");
    }
  }
  return std::nullopt;
}

std::optional<DeclRef> find_qualified(const FileUnit& unit, std::string_view qualifier,
                                      std::string_view name) {
  for (const ImportedFiles& import : unit.imports) {
    if (import.qualifier != qualifier) continue;
    for (const FileUnit* file : import.files) {
      if (const auto at = file->names.find(name); at != file->names.end()) {
        return DeclRef{file, at->second};
      }
    }
  }
  return std::nullopt;
}

bool is_qualifier(const FileUnit& unit, std::string_view name) {
  return std::any_of(unit.imports.begin(), unit.imports.end(),
                     [&](const ImportedFiles& import) { return import.qualifier == name; });
}

std::vector<std::string_view> visible_names(const FileUnit& unit) {
  std::vector<std::string_view> names;
  names.reserve(unit.names.size());
  for (const auto& [name, id] : unit.names) names.push_back(name);
  for (const ImportedFiles& import : unit.imports) {
    for (const FileUnit* file : import.files) {
      for (const auto& [name, id] : file->names) names.push_back(name);
    }
  }
  return names;
}

}  // namespace cinch::sema
