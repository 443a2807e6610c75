// Compositions as written, before elaboration: trees of Specs, and the parameters that they leave
// open.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/sema/value.h"

namespace cinch::sema {

/// A compressor's expression in a composition, or its declaration, as a tree of Specs. Reports and
/// gives nothing on a mistake.
std::unique_ptr<Spec> make_spec(ModuleData& module, const DeclRef& decl, Reporter& reporter);
/// The number of the word that an expression is, of those that a parameter takes.
std::optional<Constant> word_given(const ast::Module& declaring, const ast::Param& param,
                                   const ast::Module& tree, ast::ExprId id);
/// Reports a name that is no word of `param` where it takes words, nor anything that `unit`
/// declares.
bool is_wrong_word(const ast::Module& declaring, const ast::Param& param, const FileUnit& unit,
                   ast::ExprId id, Reporter& reporter);
/// True where the spec still wants a compressor; `fill`: puts the stand-in there.
bool wants_inner(ModuleData& module, Spec& spec, bool fill);
/// Open (not fixed) parameters of a spec: their name in the result, the spec and the parameter.
struct OpenParam {
  std::string name;
  Spec* spec;
  const ast::Param* param;
  const ast::Param* declared;  // by a composition, or nullptr
};
std::vector<OpenParam> open_params(Spec& spec);

}  // namespace cinch::sema
