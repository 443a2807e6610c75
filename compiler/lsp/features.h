// What editors ask about a document: one function for each request of the protocol that needs an
// analysis. Results are JSON of the protocol; null means that there is nothing to tell. A failed
// request is thrown as RequestError.
#pragma once
#include "compiler/lsp/analysis.h"
#include "compiler/lsp/protocol/json.h"
#include "compiler/lsp/workspace.h"

namespace cinch::lsp {

/// A checked document and the place that is asked about.
struct Query {
  const Workspace& workspace;
  const Document& document;
  const Analysis& analysis;
  const TextPositions& positions;
  std::uint32_t offset = 0;
};

/// Diagnostics of the checker as those of the protocol. What is wrong in an imported file is told
/// at the import.
Json diagnostics(const Analysis& analysis);

Json hover(const Query& query);
Json definition(const Query& query);
Json references(const Query& query, bool with_declaration);
Json highlights(const Query& query);
Json prepare_rename(const Query& query);
Json rename(const Query& query, const std::string& name);
Json completion(const Query& query);
Json document_symbols(const Query& query);
/// Types of variables in [offset, end), where the text does not say them.
Json inlay_hints(const Query& query, std::uint32_t end);
/// What diagnostics that meet [offset, end] offer.
Json code_actions(const Query& query, std::uint32_t end);
/// Edits to the canonical layout; null where the text has syntax errors. Needs no analysis.
Json formatting(const Document& document);

}  // namespace cinch::lsp
