// Where the rest of the editor's files uses a name.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/lsp/features.h"

namespace cinch::lsp {

/// Uses in the file, its declaration too, of a name that is declared at a place of this or another
/// file. Files are compared by name, as each analysis reads them anew.
std::vector<NameUse> uses_in(const Analysis& analysis, const NamePlace& declared);

using OtherFileVisitor =
    std::function<void(const std::string& path, const Analysis&, const std::vector<NameUse>&)>;

/// Cinch files of the editor, but the document itself, that use the name, which is declared at
/// `declared`. None where other files cannot import it.
void visit_other_files(const Query& query, const NamePlace& declared, const Declaration& name,
                       const OtherFileVisitor& visit);

}  // namespace cinch::lsp
