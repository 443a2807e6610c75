// The files of a run and the names that they declare. check_module builds this, and elaboration
// reads it.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "dsl/diag/diag.h"
#include "dsl/sema/sema.h"
#include "dsl/source/source.h"
#include "dsl/syntax/ast.h"
#include "runtime/core/numbers/dtype.h"
#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::sema {

struct FileUnit;

/// The files of one `import`, under the name before the point.
struct ImportedFiles {
  std::string qualifier;
  std::vector<const FileUnit*> files;
};

struct FileUnit {
  const dsl::SourceBuffer* source = nullptr;
  ast::Module tree;
  std::map<std::string, ast::DeclId, std::less<>> names;  // declared in the file itself
  std::vector<ImportedFiles> imports;
  bool is_library = false;  // an import of the standard library
  bool is_loading = true;   // until its imports are read: meeting it again is a loop
};

/// A declaration, and the file in which its names are looked up.
struct DeclRef {
  const FileUnit* unit = nullptr;
  ast::DeclId decl;
  const ast::Decl& operator*() const { return unit->tree[decl]; }
  friend bool operator==(const DeclRef&, const DeclRef&) = default;
};

/// A constant number of the text.
struct Constant {
  HostValue value;
  bool is_big = false;             // a literal of 2^63 or more, held as its bits
  std::optional<double> quotient;  // of divided whole numbers: the value that floats get

  double to_double() const { return is_big ? static_cast<double>(value.bits) : value.to_double(); }
  /// The value of a parameter of this type that is bound to the number.
  Constant bound_to(DType type) const {
    return is_float(type) && quotient ? Constant{HostValue::from_f64(*quotient), false, {}} : *this;
  }
};

/// A constant of a file that is made of numbers only.
struct KnownConst {
  bool is_table = false;
  std::vector<Constant> numbers;
  std::uint32_t table_cols = 0;
  std::optional<DType> declared;  // the type that a fn's signature gave to it
  bool is_hex = false;            // of literals in hexadecimal
  int levels = 0;                 // depth of the expressions that computed it
  // If whole numbers were divided: the value for operators on floats.
  std::shared_ptr<const KnownConst> quotient;
};

struct ModuleData {
  dsl::SourceSet* sources = nullptr;
  std::vector<std::unique_ptr<FileUnit>> units;  // [0] is the file itself
  std::unique_ptr<FileUnit> stand_in;  // a plain compressor inside which wrappers are checked

  Loader load;
  ExternReader read_extern;
  TypeRecord* types = nullptr;
  // By declaration. An entry without a value: a mistake was reported.
  std::map<const ast::ExternFn*, std::unique_ptr<const rt::ExternInfo>> externs;

  // By the constant, and whether whole numbers divide exactly.
  std::map<std::pair<const ast::Const*, bool>, KnownConst> known_consts;

  const FileUnit& root() const { return *units.front(); }
};

/// The work of one run over a file. When it reaches the limit, nothing more is checked: a small
/// text could ask for any amount of work.
struct Work {
  std::size_t num_steps = 0;
  bool is_over = false;  // and reported
};

/// Adds each diagnostic to a sink only once: bodies are elaborated each time that they are inlined.
class Reporter {
 public:
  explicit Reporter(dsl::DiagSink& sink) : sink_(sink) {}

  template <dsl::DiagKind kKind, class... Args>
  dsl::Diagnostic& report(Span span, Args&&... args) {
    static_assert(sizeof...(Args) == dsl::diag_arity(kKind), "arguments and template differ");
    return add(dsl::Diagnostic{
        kKind, span, {dsl::make_diag_arg(std::forward<Args>(args))...}, {}, {}, {}});
  }
  /// The number of errors so far, including repeated ones.
  std::size_t num_errors() const { return num_errors_; }
  /// While a composition of the user is elaborated: mistakes in files of the library are reported
  /// at `composition`, with a note at their own place. Without a file: no longer.
  void blame(const ModuleData* module, Span composition) {
    module_ = module;
    composition_ = composition;
  }
  Work& work() { return work_; }
  const Work& work() const { return work_; }

 private:
  dsl::Diagnostic& add(dsl::Diagnostic diag);

  void move_to_composition(dsl::Diagnostic& diag) const;
  // Also true for diagnostics that others have reported to the sink meanwhile.
  bool is_reported(const dsl::Diagnostic& diag);

  using Place = std::tuple<dsl::DiagKind, dsl::FileId, std::uint32_t, std::uint32_t>;

  dsl::DiagSink& sink_;
  std::set<Place> reported_;  // places of the first num_known_ diagnostics of the sink
  std::size_t num_known_ = 0;
  dsl::Diagnostic repeated_{};
  std::size_t num_errors_ = 0;
  const ModuleData* module_ = nullptr;
  Span composition_;
  Work work_;
};

/// The name of a declaration; empty for an import.
const ast::Name* declared_name(const ast::Decl& decl);
/// "a compressor" or "a function", for messages.
std::string decl_noun(const ast::Decl& decl);

/// The declaration that `name` means in `unit`: its own, else one of the imported files. Reports an
/// ambiguous name and returns nothing; returns nothing for an unknown name, without a report.
std::optional<DeclRef> find_decl(const FileUnit& unit, std::string_view name, Span span,
                                 Reporter& reporter);
/// The declaration that `qualifier.name` means; nothing if there is no such import or name.
std::optional<DeclRef> find_qualified(const FileUnit& unit, std::string_view qualifier,
                                      std::string_view name);
/// Is this the name of an import?
bool is_qualifier(const FileUnit& unit, std::string_view name);
/// "the file has `a`, `b` and 3 more", for notes; "the file has none" without names.
std::string names_text(const std::string& before, const std::vector<std::string_view>& names);
/// All names that are visible in `unit` without a qualifier, for suggestions.
std::vector<std::string_view> visible_names(const FileUnit& unit);

/// The family of a compressor of the standard library; "" for other names.
std::string library_family(const ModuleData& module, const std::string& name);
/// The module of the standard library that has this function for other programs; "" if none has.
std::string module_of_function(const ModuleData& module, const std::string& name);

/// Parses `file` and everything that it imports.
std::shared_ptr<ModuleData> load_files(dsl::SourceSet& sources, dsl::FileId file,
                                       const Loader& loader, dsl::DiagSink& sink);

/// `n`, `r`, `c`, `world`, `worker` and `step`.
bool is_builtin_name(std::string_view name);
/// The first expression inside `text` that is the plain name `name`, or nullptr.
const ast::Expr* find_name(const ast::Module& tree, Span text, std::string_view name);
/// The built-in names that no declaration may hide, wherever it is. `r` and `c` are reserved in
/// compressors of matrices; `step` may be hidden.
bool is_reserved_name(std::string_view name);

}  // namespace cinch::sema
