// Compositions before elaboration: trees of Specs, and the parameters that they leave open.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dsl/sema/value.h"

namespace cinch::sema {

/// Makes a tree of Specs of a composition's expression, or of a compressor's declaration. Reports
/// mistakes and then returns nothing.
std::unique_ptr<Spec> make_spec(ModuleData& module, const DeclRef& decl, Reporter& reporter);
/// What names mean in a clause `again`: parameters of the compressor that has the clause.
struct ClauseScope {
  const Spec& owner;
  /// The carrier of what was passed for a compressor parameter, or nothing.
  std::function<std::unique_ptr<Spec>(const std::string& slot)> carrier_of;
};
/// Makes a tree of Specs of the expression in a clause `again`. Reports mistakes and then returns
/// nothing; without a report if `carrier_of` gave nothing.
std::unique_ptr<Spec> make_clause_spec(ModuleData& module, const ClauseScope& clause,
                                       ast::ExprId carrier, Reporter& reporter);
/// Numbers those compressors of the tree, outermost first, that have no number, from the lowest
/// that is above all others.
void number_compressors(Spec& spec);
/// Does a compressor of the tree take matrices?
bool takes_matrix(const Spec& spec);
/// The number of the word that an expression names, if the parameter takes it.
std::optional<Constant> word_given(const ast::Module& declaring, const ast::Param& param,
                                   const ast::Module& tree, ast::ExprId id);
/// Reports a name for a parameter with words that is neither one of them nor declared in `unit`.
bool is_wrong_word(const ast::Module& declaring, const ast::Param& param, const FileUnit& unit,
                   ast::ExprId id, Reporter& reporter);
/// Does the spec still need a compressor? With `fill`, puts the stand-in there.
bool wants_inner(ModuleData& module, Spec& spec, bool fill);
/// An open (not fixed) parameter of a spec.
struct OpenParam {
  std::string name;
  Spec* spec;
  const ast::Param* param;
  const ast::Param* declared;  // by a composition; else nullptr
};
std::vector<OpenParam> open_params(Spec& spec);

}  // namespace cinch::sema
