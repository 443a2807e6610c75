// The doors of dsl/sema: from the tree of a file to a checked module, and from one of its
// compressors to a checked program. Both report every mistake they find to a DiagSink; neither
// throws for any input text.
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
#include "runtime/core/extern_function.h"

namespace cinch::sema {

// What is known of the expressions and names of one file while it is checked, for editors.

/// Types and sizes as messages write them: "[f32; k]", "f32", "the number 4". Bodies are recorded
/// as they are declared, with parameters at their defaults; what is inlined elsewhere, as a fn with
/// the sizes of its arguments, is not.
struct TypeRecord {
  dsl::FileId file = dsl::kNoFile;
  /// By begin and end of an expression or of the name of a declaration. The first one is kept.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::string> types;

  /// nullptr where nothing is known.
  const std::string* find(dsl::Span span) const {
    const auto at = types.find({span.begin, span.end});
    return at == types.end() || span.file != file ? nullptr : &at->second;
  }
};

/// What an `import` asks for: `std.sparsify` gives std_path {"sparsify"}; `"mine.cinch"` gives
/// file.
struct ImportRequest {
  std::vector<std::string> std_path;
  std::string file;
  std::string from;  // name of the importing file, as SourceBuffer::name() gives it
};

/// One file that an import stands for; `name` identifies it: two imports of one name are one file.
struct LoadedText {
  std::string name;
  std::string text;
};

/// Finds the files behind an import: a family of the standard library is all its files (or one, for
/// `std.family.name`), a path is one, relative to `from`. Empty: not found.
using Loader = std::function<std::vector<LoadedText>(const ImportRequest&)>;

/// Reads the C++ headers of `extern fn`. Empty: their calls are reported.
using ExternReader = rt::ExternReader;

/// One compressor of a file, for lists and look-ups.
struct CompressorEntry {
  std::string name;
  std::string doc;
  dsl::Span span;
  bool is_composition = false;
  bool is_wrapper = false;          // wants a compressor: can only stand in a composition
  std::vector<std::string> states;  // declared by itself, not by what it composes or wraps
  std::vector<std::string> claims;  // likewise, as written
};

/// Files, trees and names behind a module; opaque to users.
struct ModuleData;

/// A file and all it imports, names resolved. Refers to the SourceSet it was made from.
class CheckedModule {
 public:
  explicit CheckedModule(std::shared_ptr<ModuleData> data) : data_(std::move(data)) {}
  /// Compressors declared in the file itself, in source order.
  std::vector<CompressorEntry> compressors() const;
  ModuleData& data() const { return *data_; }

 private:
  std::shared_ptr<ModuleData> data_;
};

/// A parameter that is open from outside. What it takes is told in the words of the text.
struct OpenParameter {
  std::string name, doc;
  std::string type;            // "f32", "{exponential, gamma}", "compressor"
  std::string initial, range;  // "0.01" and "(0, 1]"; empty where the text says nothing
  bool is_const = false;
  std::vector<std::string> words;
};

/// Open parameters of a compressor of the module, its own before those of what it is made of; of a
/// wrapper also the compressor that it wants. Mistakes in compositions go to `sink`.
std::vector<OpenParameter> open_parameters(const CheckedModule& module, std::string_view compressor,
                                           dsl::DiagSink& sink);

/// How much check_module looks at.
enum class CheckDepth : std::uint8_t {
  /// Parse, imports and names of declarations: enough for `elaborate`.
  Names,
  /// Also elaborates every compressor at its defaults, every fn once with sizes of its own, and
  /// every wrapper around a plain compressor: `cinch check`.
  Everything,
};

/// Parses `file` of `sources` and what it imports (added to `sources`, as are the headers of
/// `extern fn`), and checks it. With errors
/// in `sink` the module is fit for nothing but compressors(). `types`: takes what is known of the
/// file that it names; it must outlive the module.
CheckedModule check_module(dsl::SourceSet& sources, dsl::FileId file, const Loader& loader,
                           dsl::DiagSink& sink, CheckDepth depth = CheckDepth::Everything,
                           ExternReader read_extern = {}, TypeRecord* types = nullptr);

/// A value given from outside (`--set bits=4`): for a constant parameter its value, for a run-time
/// parameter its new default.
struct Binding {
  std::string name;
  double value = 0;
  std::string word = {};  // in place of a value, for a parameter whose values have names
};

/// One compressor with constant parameters bound. Nothing when `sink` got an error: an unknown
/// name, a value outside its range, a wrapper without an inner compressor, or a mistake in a body.
std::optional<CheckedProgram> elaborate(const CheckedModule& module, std::string_view compressor,
                                        const std::vector<Binding>& bindings, dsl::DiagSink& sink);

/// The checked tree as indented text: `--emit=checked`. Stable; ends with a newline.
std::string dump(const CheckedProgram& program);

}  // namespace cinch::sema
