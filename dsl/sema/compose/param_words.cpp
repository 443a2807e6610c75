// Declares words, and finds the word that a comparison with a parameter means.
#include "dsl/sema/compose/parameters.h"

#include <algorithm>

#include <fmt/format.h>

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

const ast::Name* name_in(const ast::Module& tree, ast::ExprId id) {
  const ast::Expr& node = tree[id];
  if (const auto* paren = std::get_if<ast::Paren>(&node.node)) return name_in(tree, paren->inner);
  const auto* name = std::get_if<ast::NameRef>(&node.node);
  return name == nullptr ? nullptr : &name->name;
}

bool has_word(const ast::EnumType& words, std::string_view text) {
  return std::ranges::any_of(words.names, [&](const ast::Name& word) { return word.text == text; });
}

}  // namespace

// The word is visible wherever the compressor's names are. Its value is its number.
void ParamWords::declare_word(Instance& instance, const ast::Param& param, std::size_t i) {
  const auto& words = std::get<ast::EnumType>(tree()[param.type].node).names;
  const ast::Name& word = words[i];
  const auto before = words.begin() + static_cast<std::ptrdiff_t>(i);
  const auto is_same = [&](const ast::Name& other) { return other.text == word.text; };
  if (const auto first = std::find_if(words.begin(), before, is_same); first != before) {
    reporter_.report<DiagKind::DuplicateName>(word.span, word.text)
        .note(first->span, "first declared here");
    return;
  }
  const auto known = instance.names.find(word.text);
  const HostExprId number = pool().const_int(static_cast<std::int64_t>(i));
  if (known != instance.names.end() && known->second.is_word) {
    known->second.is_ambiguous |= known->second.value.host != number;
    return;
  }
  Symbol symbol;
  symbol.value = host_value(number, word.span);
  symbol.span = word.span;
  symbol.is_word = true;
  symbol.noun = "a word";
  all_.instances.declare_item(instance, word, std::move(symbol));
}

// The parameter with words that an expression names, or nullptr.
const ast::Param* ParamWords::words_param(ast::ExprId id) const {
  const Instance* instance = env_->instance;
  const ast::Name* name = id ? name_in(tree(), id) : nullptr;
  if (instance == nullptr || name == nullptr) return nullptr;
  const auto known = instance->names.find(name->text);
  if (known == instance->names.end() || all_.names.find_symbol(name->text) != &known->second)
    return nullptr;
  for (ast::ParamId param : instance->tree().list(instance->spec->node->params)) {
    const ast::Param& declared = instance->tree()[param];
    const bool has_words = declared.type && std::holds_alternative<ast::EnumType>(
                                                instance->tree()[declared.type].node);
    if (has_words && declared.name.text == name->text) return &declared;
  }
  return nullptr;
}

Value ParamWords::compared(ast::ExprId id, ast::ExprId other) {
  const ast::Param* param = words_param(other);
  const ast::Name* name = param != nullptr && id ? name_in(tree(), id) : nullptr;
  const Symbol* symbol = name == nullptr ? nullptr : all_.names.find_symbol(name->text);
  if (symbol == nullptr || !symbol->is_word) return all_.exprs.expr(id);
  const auto& words = std::get<ast::EnumType>(tree()[param->type].node).names;
  const auto is_it = [&](const ast::Name& word) { return word.text == name->text; };
  const auto at = std::ranges::find_if(words, is_it);
  if (at != words.end()) return host_value(pool().const_int(at - words.begin()), name->span);
  const auto type = all_.params.declared_type(*param);
  if (!type) return error_value(name->span);
  reporter_.report<DiagKind::ParameterOutOfRange>(
      name->span, param->name.text, "`" + name->text + "`", Parameters::takes_text(*type));
  return error_value(name->span);
}

bool ParamWords::may_be_word(ast::ExprId id) {
  if (!id) return false;
  if (const auto* choice = std::get_if<ast::If>(&tree()[id].node)) {
    return may_be_word(tree()[choice->then].value) || may_be_word(choice->otherwise);
  }
  if (const auto* block = std::get_if<ast::BlockExpr>(&tree()[id].node)) {
    return may_be_word(tree()[block->block].value);
  }
  const ast::Name* name = name_in(tree(), id);
  if (name == nullptr || all_.names.find_symbol(name->text) != nullptr ||
      is_builtin_name(name->text)) {
    return false;
  }
  return !find_decl(*env_->unit, name->text, name->span, reporter_);
}

Value ParamWords::ambiguous_word(const ast::Name& name) {
  std::vector<std::string> owners;
  const ast::Module& tree = env_->instance->tree();
  for (ast::ParamId param : tree.list(env_->instance->spec->node->params)) {
    const ast::TypeId type = tree[param].type;
    const auto* words = type ? std::get_if<ast::EnumType>(&tree[type].node) : nullptr;
    if (words != nullptr && has_word(*words, name.text)) {
      owners.push_back("`" + tree[param].name.text + "`");
    }
  }
  reporter_.report<DiagKind::AmbiguousWord>(name.span, name.text,
                                            fmt::format("{}", fmt::join(owners, ", ")));
  return error_value(name.span);
}

}  // namespace cinch::sema
