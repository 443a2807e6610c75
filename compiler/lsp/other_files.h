// Finds uses of a name in the editor's other files.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/lsp/features.h"

namespace cinch::lsp {

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
