// The public functions of dsl/sema: they turn the tree of a file into a checked module, and one of
// its compressors into a checked program. They report every mistake to a DiagSink, and throw for no
// input text.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dsl/diag/diag.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"
#include "runtime/core/error.h"
#include "runtime/core/extern_function.h"

namespace cinch::sema {

/// What is known of the expressions and names of one file, for editors. Types and sizes are in the
/// form of messages: "[f32; k]", "f32", "the number 4". Bodies are recorded at their declaration,
/// with parameters at their defaults. Inlined copies, such as a fn with the sizes of its arguments,
/// are not recorded.
struct TypeRecord {
  dsl::FileId file = dsl::kNoFile;
  /// By begin and end of an expression or of a declared name. The first record is kept.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> types;

  /// nullptr if nothing is known.
  const std::string* find(dsl::Span span) const {
    const auto at = types.find({span.begin, span.end});
    return at == types.end() || span.file != file ? nullptr : &at->second;
  }
};

/// The files that an `import` names: `std.sparsify` gives std_path {"sparsify"}, `"mine.cinch"`
/// gives file.
struct ImportRequest {
  std::vector<std::string> std_path;
  std::string file;
  std::string from;  // name of the importing file, as SourceBuffer::name() gives it
};

/// One file of an import. `name` identifies it: two imports with the same name mean the same file.
struct LoadedText {
  std::string name;
  std::string text;
};

/// Finds the files of an import. A family of the standard library means all its files,
/// `std.family.name` one of them, and a path one file relative to `from`. Empty: not found. An
/// error says why a file is not read.
using Loader = std::function<rt::Result<std::vector<LoadedText>>(const ImportRequest&)>;

/// Reads the C++ headers of `extern fn`. If it is empty, calls of such functions are errors.
using ExternReader = rt::ExternReader;

/// One compressor of a file, for lists and completion.
struct CompressorEntry {
  std::string name;
  std::string doc;
  dsl::Span span;
  bool is_composition = false;
  bool is_wrapper = false;          // needs a compressor: can only be used in a composition
  std::vector<std::string> states;  // its own, not those of compressors that it composes or wraps
  std::vector<std::string> inputs;  // the same
  std::vector<std::string> claims;  // likewise, as written
};

/// The files, trees and names of a module; opaque to users.
struct ModuleData;

/// A file and its imports, with names resolved. Refers to the SourceSet from which it was made.
class CheckedModule {
 public:
  explicit CheckedModule(std::shared_ptr<ModuleData> data) : data_(std::move(data)) {}
  /// Compressors that the file itself declares, in source order.
  std::vector<CompressorEntry> compressors() const;
  ModuleData& data() const { return *data_; }

 private:
  std::shared_ptr<ModuleData> data_;
};

/// A parameter that callers can bind. Its texts are as in the program.
struct OpenParameter {
  std::string name, doc;
  std::string type;            // "f32", "{exponential, gamma}", "compressor"
  std::string initial, range;  // "0.01" and "(0, 1]"; empty if the text has none
  bool is_const = false;
  std::vector<std::string> words;
};

/// Open parameters of a compressor of the module: its own, then those of the compressors in it. For
/// a wrapper, also the compressor that it needs. Reports mistakes in compositions to `sink`.
std::vector<OpenParameter> open_parameters(const CheckedModule& module, std::string_view compressor,
                                           dsl::DiagSink& sink);

enum class CheckDepth : std::uint8_t {
  /// Only parses and resolves imports and names of declarations: enough for `elaborate`.
  Names,
  /// Also elaborates every compressor with its defaults, every fn once with unknown sizes, and
  /// every wrapper around a plain compressor: `cinch check`.
  Everything,
};

/// Parses `file` of `sources` and its imports, and checks them. Adds imports and headers of `extern
/// fn` to `sources`. If `sink` gets an error, only compressors() of the module may be used. `types`
/// receives what is known of the file that it names. It must outlive the module.
CheckedModule check_module(dsl::SourceSet& sources, dsl::FileId file, const Loader& loader,
                           dsl::DiagSink& sink, CheckDepth depth = CheckDepth::Everything,
                           ExternReader read_extern = {}, TypeRecord* types = nullptr);

/// A value from outside (`--set bits=4`): the value of a constant parameter, or the new default of
/// a run-time parameter.
struct Binding {
  std::string name;
  double value = 0;
  std::string word = {};  // in place of a value, for a parameter whose values have names
};

/// Elaborates one compressor with constant parameters bound. Returns nothing if `sink` got an
/// error: an unknown name, a value outside its range, a wrapper without an inner compressor, or a
/// mistake in a body.
std::optional<CheckedProgram> elaborate(const CheckedModule& module, std::string_view compressor,
                                        const std::vector<Binding>& bindings, dsl::DiagSink& sink);

/// Elaborates the program that carries sums of a compressor (ProgramInfo::carrier), if it is of
/// kind Program. Its parameters have the names that they have in the compressor, or begin with
/// "again.". Bindings that are not passed on to it are left out. Returns nothing, without a report,
/// if the carrier is of another kind.
std::optional<CheckedProgram> elaborate_carrier(const CheckedModule& module,
                                                std::string_view compressor,
                                                const std::vector<Binding>& bindings,
                                                dsl::DiagSink& sink);

/// An argument of a function that the compiler calls: a value of this type, or a number that the
/// host computes.
struct FnArgument {
  Type type;
  HostExprId number;
};

/// A call by the compiler: statements, then results. `program` has the tree, and the ProgramInfo of
/// the caller.
struct CheckedCall {
  CheckedProgram program;
  std::vector<VarId> params;  // one for each argument that is a value
  std::vector<StmtId> stmts;
  std::vector<ExprId> results;
};

/// Elaborates a call of a `fn` of the module. In its text, the type `T` is `element`. `info` has
/// the sizes of the arguments, and may get counts.
CheckedCall elaborate_call(const CheckedModule& module, std::string_view fn, DType element,
                           const std::vector<FnArgument>& arguments, rt::ProgramInfo info,
                           Span span, dsl::DiagSink& sink);

/// The checked tree as indented text, for `--emit=checked`. Stable; ends with a newline.
std::string dump(const CheckedProgram& program);

}  // namespace cinch::sema
