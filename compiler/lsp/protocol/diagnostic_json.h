// One diagnostic in the protocol's form.
#pragma once
#include "compiler/lsp/analysis.h"
#include "compiler/lsp/protocol/json.h"
#include "dsl/diag/diag.h"

namespace cinch::lsp {

/// What is wrong in an imported file is told at the import, and leads there.
Json diagnostic_json(const Analysis& analysis, const TextPositions& positions,
                     const dsl::Diagnostic& diag);

}  // namespace cinch::lsp
