// Answers editors' requests about a document: one function for each request of the protocol that
// needs an analysis. Results are JSON of the protocol; null means that there is no answer. A failed
// request throws RequestError.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/lsp/analysis.h"
#include "compiler/lsp/protocol/json.h"
#include "compiler/lsp/workspace.h"
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

}  // namespace cinch::lsp
