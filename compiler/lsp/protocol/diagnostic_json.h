// One diagnostic in the protocol's form.
#pragma once
#include "compiler/lsp/analysis.h"
#include "compiler/lsp/protocol/json.h"
#include "dsl/diag/diag.h"

namespace cinch::lsp {

/// Errors in an imported file are shown at the import, with a link there.
Json diagnostic_json(const Analysis& analysis, const TextPositions& positions,
                     const dsl::Diagnostic& diag);

}  // namespace cinch::lsp
