// Answers editors' requests about a document: one function for each request of the protocol that
// needs an analysis. Results are JSON of the protocol; null means that there is no answer. A failed
// request throws RequestError.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/lsp/analysis.h"
#include "compiler/lsp/protocol/json.h"
#include "dsl/diag/diag.h"

namespace cinch::lsp {
/// A checked document and the place of the request.
struct Query {
  const Workspace& workspace;
  const Document& document;
  const Analysis& analysis;
  const TextPositions& positions;
  std::uint32_t offset = 0;
};

/// The checker's diagnostics in the protocol's form. Errors in an imported file are shown at the
/// import.
Json diagnostics(const Analysis& analysis);
/// One of them. An error in an imported file is shown at the import, with a link to its place.
Json diagnostic_json(const Analysis& analysis, const TextPositions& positions,
                     const dsl::Diagnostic& diag);

Json hover(const Query& query);
Json definition(const Query& query);
Json references(const Query& query, bool with_declaration);
Json highlights(const Query& query);
Json prepare_rename(const Query& query);
Json rename(const Query& query, const std::string& name);
Json completion(const Query& query);
Json document_symbols(const Query& query);
/// Types of variables in [offset, end) that the text does not state.
Json inlay_hints(const Query& query, std::uint32_t end);
/// Fixes that diagnostics touching [offset, end] offer.
Json code_actions(const Query& query, std::uint32_t end);
/// Edits to the canonical layout; null if the text has syntax errors. Needs no analysis.
Json formatting(const Document& document);

/// Uses in the file, including its declaration, of a name that is declared at a place of this or
/// another file. Files are compared by name, since each analysis reads them anew.
std::vector<NameUse> uses_in(const Analysis& analysis, const NamePlace& declared);

using OtherFileVisitor =
    std::function<void(const std::string& path, const Analysis&, const std::vector<NameUse>&)>;

/// Visits the editor's other Cinch files that use the name declared at `declared`. Visits none if
/// other files cannot import it.
void visit_other_files(const Query& query, const NamePlace& declared, const Declaration& name,
                       const OtherFileVisitor& visit);

// Descriptions of names, for hover and completion.

/// An operator of the language.
struct OperatorInfo {
  std::string signature, meaning;
};
std::optional<OperatorInfo> find_operator(std::string_view name);
/// Names of operators that are called by name, in the order of the tables.
std::vector<std::string_view> operator_names();

/// The meaning of a built-in name: `n`, `world` …; empty for any other.
std::string_view builtin_name_meaning(std::string_view name);

/// The declaration as code, with the type if the text does not state it: "let a: [f32; n]".
std::string declaration_text(const Analysis& analysis, const sema::FileUnit& unit,
                             const Declaration& decl);

/// What the compiler knows of a compressor of the document: claims, payload, and bytes that its
/// sweeps move per element. Markdown; empty if the compressor cannot be compiled as it is.
std::string compressor_text(const Analysis& analysis, const std::string& name);

/// What the statement at a place adds to the sweeps over memory, per element. Markdown; empty if
/// that is not known.
std::string cost_text(const Analysis& analysis, std::uint32_t offset);

// Decides, from the tokens before a place, what may follow there. For completion, while the text is
// seldom a whole program.

enum class PlaceKind : std::uint8_t {
  Nothing,       // a comment, a string, or a new name
  Declarations,  // of a file
  Items,         // of a compressor
  WireEntries,
  WireFields,  // of the payload that an `encode` makes
  Expression,
  Statement,  // or an expression
  Type,
  Member,  // after `base.`
  Import,
  Claims,
};

struct PlaceContext {
  PlaceKind kind = PlaceKind::Nothing;
  std::string base;               // Member: the name before the point
  std::vector<std::string> path;  // Import: the words of `std.family.` so far
  std::string callee;             // if an argument may begin here: the name before the bracket
};

/// Ignores a word that ends at the offset: it is the one being completed.
PlaceContext place_at(std::string_view text, std::uint32_t offset);

}  // namespace cinch::lsp
