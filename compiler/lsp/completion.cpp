// Completion: what the place allows, from the tables of the language, the names in scope and
// imported files.
#include <algorithm>
#include <filesystem>
#include <set>

#include "compiler/lsp/features.h"
#include "compiler/service/front_end.h"
#include "dsl/sema/claims.h"

namespace cinch::lsp {

namespace {

// CompletionItemKind of the protocol.
enum class Kind {
  Function = 3,
  Field = 5,
  Variable = 6,
  Class = 7,
  Module = 9,
  Property = 10,
  Keyword = 14,
  Constant = 21,
  Struct = 22,
  Operator = 24
};

class Completer {
 public:
  explicit Completer(const Query& query) : query_(query) {}

  Json run() {
    const PlaceContext place = place_at(query_.analysis.source().text(), query_.offset);
    switch (place.kind) {
      case PlaceKind::Nothing:
        break;
      case PlaceKind::Declarations:
        words({"import", "const", "fn", "extern fn", "compressor"});
        break;
      case PlaceKind::Items:
        words({"const", "size", "set", "state", "input", "wire", "encode", "decode", "finish",
               "sync", "claims", "again"});
        break;
      case PlaceKind::WireEntries:
        words({"count"});
        break;
      case PlaceKind::WireFields:
        fields_of_payload();
        break;
      case PlaceKind::Statement:
        words({"let", "let mut", "for", "while", "assert", "wire"});
        expressions(place);
        break;
      case PlaceKind::Expression:
        expressions(place);
        break;
      case PlaceKind::Type:
        for (const char* type :
             {"bool", "u8", "u16", "u32", "u64", "i8", "i16", "i32", "i64", "f16", "bf16", "f32",
              "f64", "f8e4m3", "f8e5m2", "int", "uint", "compressor"})
          add(type, Kind::Struct, 0);
        names_in_scope();
        break;
      case PlaceKind::Member:
        members(place.base);
        break;
      case PlaceKind::Import:
        imports(place.path);
        break;
      case PlaceKind::Claims:
        claims();
        break;
    }
    return {{"isIncomplete", false}, {"items", std::move(items_)}};
  }

 private:
  // `order`: nearer names come first.
  Json* add(const std::string& label, Kind kind, int order, const std::string& detail = "",
            const std::string& doc = "") {
    if (!labels_.insert(label).second) return nullptr;
    Json item = {{"label", label},
                 {"kind", static_cast<int>(kind)},
                 {"sortText", std::to_string(order) + label}};
    if (!detail.empty()) item["detail"] = detail;
    if (!doc.empty()) item["documentation"] = markdown(doc);
    items_.push_back(std::move(item));
    return &items_.back();
  }

  void words(std::initializer_list<const char*> list) {
    for (const char* word : list) add(word, Kind::Keyword, 4);
  }

  static Kind kind_of(NameKind kind) {
    switch (kind) {
      case NameKind::Const:
      case NameKind::Word:
        return Kind::Constant;
      case NameKind::Fn:
      case NameKind::ExternFn:
        return Kind::Function;
      case NameKind::Compressor:
      case NameKind::InnerCompressor:
        return Kind::Class;
      case NameKind::Field:
      case NameKind::Count:
        return Kind::Field;
      case NameKind::State:
      case NameKind::Input:
        return Kind::Property;
      default:
        return Kind::Variable;
    }
  }

  void add_declaration(const sema::FileUnit& unit, const Declaration& decl, int order) {
    add(decl.name.text, kind_of(decl.kind), order, declaration_text(query_.analysis, unit, decl),
        decl.doc);
  }

  void expressions(const PlaceContext& place) {
    if (!place.callee.empty()) arguments(place.callee);
    names_in_scope();
    for (const sema::ImportedFiles& import : query_.analysis.imports().imports) {
      add(import.qualifier, Kind::Module, 2, "import " + import.qualifier);
      for (const sema::FileUnit* file : import.files) names_of_file(*file, 2);
    }
    for (const std::string_view name : operator_names()) {
      const OperatorInfo info = find_operator(name).value_or(OperatorInfo());
      add(std::string(name), Kind::Function, 3, info.signature, info.meaning);
    }
    for (const char* name : {"n", "r", "c", "world", "worker", "machine_ranks", "step"})
      add(name, Kind::Constant, 4, std::string(builtin_name_meaning(name)));
    words({"if", "else", "as", "true", "false", "inf", "nan", "pi"});
  }

  // Of two with the same name, the one declared later is nearer, and is offered.
  void names_in_scope(const std::function<bool(const Declaration&)>& is_wanted = {}) {
    const NameIndex& names = query_.analysis.names();
    for (std::size_t i = names.declarations.size(); i-- > 0;) {
      const Declaration& decl = names.declarations[i];
      // At the end of its own statement a variable is not visible yet.
      const bool is_seen = decl.scope.begin < query_.offset && query_.offset <= decl.scope.end;
      const bool is_in_wire = decl.kind == NameKind::Field;
      const bool is_of_file = decl.scope == query_.analysis.source().whole();
      if (!is_seen || is_in_wire || (is_wanted && !is_wanted(decl))) continue;
      add_declaration(query_.analysis.root(), decl, is_of_file ? 1 : 0);
    }
  }

  void names_of_file(const sema::FileUnit& file, int order) {
    const NameIndex& names = query_.analysis.names_of(file);
    for (const auto& [name, id] : file.names) {
      const Declaration* decl = names.find(sema::declared_name(file.tree[id])->span);
      if (decl != nullptr) add_declaration(file, *decl, order);
    }
  }

  // Labels: parameters of a compressor, or labels in an operator's signature.
  void arguments(const std::string& callee) {
    const auto add_label = [&](const std::string& name, const std::string& detail,
                               const std::string& doc) {
      if (Json* item = add(name + ":", Kind::Property, 0, detail, doc)) {
        (*item)["insertText"] = name + ": ";
      }
    };
    if (const auto info = find_operator(callee)) {
      for (const std::string& label : labels_in(info->signature)) add_label(label, "", "");
    }
    for (const sema::FileUnit* file : files_with(callee)) {
      const ast::Decl& decl = file->tree[file->names.find(callee)->second];
      const auto* compressor = std::get_if<ast::Compressor>(&decl.node);
      const auto* composition = std::get_if<ast::Composition>(&decl.node);
      if (compressor == nullptr && composition == nullptr) continue;
      const auto& params = compressor != nullptr ? compressor->params : composition->params;
      for (const ast::ParamId id : file->tree.list(params)) {
        const ast::Param& param = file->tree[id];
        add_label(param.name.text, std::string(file->source->text(param.span)), param.doc);
      }
    }
  }

  // "where" and "axis" of "sum(x, where:, axis:)".
  static std::vector<std::string> labels_in(const std::string& signature) {
    std::vector<std::string> labels;
    std::string word;
    for (const char c : signature) {
      const bool is_letter = (c >= 'a' && c <= 'z') || c == '_';
      if (c == ':' && !word.empty()) labels.push_back(word);
      if (!is_letter) word.clear();
      if (is_letter) word += c;
    }
    return labels;
  }

  std::vector<const sema::FileUnit*> files_with(const std::string& name) const {
    std::vector<const sema::FileUnit*> files;
    const sema::FileUnit& root = query_.analysis.imports();
    if (root.names.contains(name)) files.push_back(&root);
    for (const sema::ImportedFiles& import : root.imports) {
      for (const sema::FileUnit* file : import.files) {
        if (file->names.contains(name)) files.push_back(file);
      }
    }
    return files;
  }

  void members(const std::string& base) {
    for (const sema::ImportedFiles& import : query_.analysis.imports().imports) {
      if (import.qualifier != base) continue;
      for (const sema::FileUnit* file : import.files) names_of_file(*file, 0);
    }
    const NameIndex& names = query_.analysis.names();
    for (const Declaration& decl : names.declarations) {
      const bool is_seen = decl.scope.begin <= query_.offset && query_.offset <= decl.scope.end;
      if (!is_seen || decl.name.text != base) continue;
      if (decl.kind == NameKind::InnerCompressor) words({"wire", "encode", "decode", "finish"});
      if (decl.kind == NameKind::PayloadParameter) {
        for (const Declaration* field : fields_around(decl.name.span.begin))
          add_declaration(query_.analysis.root(), *field, 0);
      }
    }
  }

  // Fields of the payload of the compressor around an offset.
  std::vector<const Declaration*> fields_around(std::uint32_t offset) const {
    const ast::Module& tree = query_.analysis.root().tree;
    std::vector<const Declaration*> fields;
    for (const ast::DeclId id : tree.decls) {
      const Span around = tree[id].span;
      if (offset < around.begin || offset > around.end) continue;
      for (const Declaration& decl : query_.analysis.names().declarations) {
        const bool is_inside =
            around.begin <= decl.name.span.begin && decl.name.span.end <= around.end;
        if (decl.kind == NameKind::Field && is_inside) fields.push_back(&decl);
      }
    }
    return fields;
  }

  // In `wire { }` a field has a value, or is short for the variable of its name.
  void fields_of_payload() {
    const std::vector<const Declaration*> fields = fields_around(query_.offset);
    for (const Declaration* field : fields) {
      const std::string& name = field->name.text;
      const auto detail = declaration_text(query_.analysis, query_.analysis.root(), *field);
      if (Json* item = add(name + ":", Kind::Field, 0, detail, field->doc)) {
        (*item)["insertText"] = name + ": ";
      }
    }
    names_in_scope([&](const Declaration& decl) {
      return std::ranges::any_of(
          fields, [&](const Declaration* field) { return field->name.text == decl.name.text; });
    });
  }

  void imports(const std::vector<std::string>& path) {
    if (path.empty()) {
      add("std", Kind::Module, 0, "the standard library");
    } else if (path.front() == "std" && path.size() <= 2) {
      for (const service::StdlibFile& file : service::stdlib_files()) {
        const std::string name = std::filesystem::path(file.path).stem().string();
        if (path.size() == 1) add(file.family, Kind::Module, 0, "a family of the standard library");
        if (path.size() == 1 || file.family == path[1])
          add(name, Kind::Module, 1, "std." + file.family + "." + name);
      }
    }
  }

  void claims() {
    for (const sema::ClaimInfo& info : sema::all_claims()) {
      add(std::string(info.name), Kind::Keyword, 0, std::string(info.meaning));
    }
  }

  const Query& query_;
  Json items_ = Json::array();
  std::set<std::string> labels_;
};

}  // namespace

Json completion(const Query& query) {
  return Completer(query).run();
}

}  // namespace cinch::lsp
