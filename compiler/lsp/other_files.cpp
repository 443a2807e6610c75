#include "compiler/lsp/features.h"

#include <algorithm>
#include <iterator>

#include "dsl/sema/module_data.h"

namespace cinch::lsp {

namespace {

bool can_be_imported(NameKind kind) {
  return kind == NameKind::Const || kind == NameKind::Fn || kind == NameKind::ExternFn ||
         kind == NameKind::Compressor || kind == NameKind::Parameter ||
         kind == NameKind::InnerCompressor;
}

}  // namespace

std::vector<NameUse> uses_in(const Analysis& analysis, const NamePlace& declared) {
  std::vector<NameUse> found;
  std::ranges::copy_if(analysis.names().uses, std::back_inserter(found), [&](const NameUse& use) {
    return use.declared.name.begin == declared.name.begin &&
           use.declared.unit->source->name() == declared.unit->source->name();
  });
  return found;
}

void visit_other_files(const Query& query, const NamePlace& declared, const Declaration& name,
                       const OtherFileVisitor& visit) {
  if (!can_be_imported(name.kind)) return;
  for (const std::string& path : query.workspace.files()) {
    if (path == query.document.path) continue;
    const auto text = query.workspace.text_of(path);
    if (!text || text->find(name.name.text) == std::string::npos) continue;
    const auto other = query.workspace.read(path, *text);
    const std::vector<NameUse> uses = uses_in(*other, declared);
    if (!uses.empty()) visit(path, *other, uses);
  }
}

}  // namespace cinch::lsp
