// Checks of single declarations, with nothing that calls them: fns with sizes of their own,
// constants, and constants that compositions ask for.
#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

// Parameters of numbers that no compressor reaches stand for the sizes of a signature.
constexpr std::uint32_t kFirstGenericSize = 1u << 22;

}  // namespace

HostExprId Elaborator::opaque_number(HostType type) {
  return pool().param(kFirstGenericSize + next_generic_++, type);
}

std::optional<Constant> Elaborator::evaluate_constant(const FileUnit& unit, ast::ExprId id) {
  const Use use(*this, unit.tree[id].span);
  Environment env{&unit, nullptr, {Scope{}}};
  std::optional<Constant> value;
  in_constant_ = true;
  with_environment(env, [&] { value = constant_number(id); });
  in_constant_ = false;
  return value;
}

void Elaborator::check_const(const DeclRef& decl) {
  const auto& node = std::get<ast::Const>((*decl).node);
  const Use use(*this, node.name.span);
  Environment env{decl.unit, nullptr, {Scope{}}};
  std::vector<StmtId> stmts;
  stmts_ = &stmts;
  with_environment(env, [&] { const_value(decl, node); });
  stmts_ = nullptr;
}

void Elaborator::declare_generic_sizes(const ast::Param& param) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[param.type].node);
  if (array == nullptr) return;
  for (ast::ExprId dim : tree().list(array->dims)) {
    const auto* name = std::get_if<ast::NameRef>(&tree()[dim].node);
    if (name == nullptr || env_->unit->names.contains(name->name.text)) continue;
    if (is_reserved_name(name->name.text)) {
      reporter_.report<DiagKind::BuiltinNameTaken>(name->name.span, name->name.text)
          .note("a size in the signature of a fn has a name of its own");
      continue;
    }
    if (env_->scopes.front().contains(name->name.text)) continue;
    const HostExprId leaf = opaque_number(HostType::Int);
    sizes_.set_nonnegative(leaf);
    size_names_.try_emplace(leaf, name->name.text, name->name.span);
    Symbol symbol;
    symbol.value = host(leaf, name->name.span);
    symbol.span = name->name.span;
    env_->scopes.front().emplace(name->name.text, symbol);
  }
}

// Of an array of any sizes: a vector, as it has the most forms, and of the same size for all of
// them.
std::optional<Type> Elaborator::checked_type(const ast::Param& param) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[param.type].node);
  if (array == nullptr || !array->is_any()) return type_of(param.type);
  const auto element = dtype_of(array->element);
  if (!element) return std::nullopt;
  Symbol& size = env_->scopes.front()[".."];
  if (!size.value.host) {
    size.value = host(opaque_number(HostType::Int), param.name.span);
    sizes_.set_nonnegative(size.value.host);
    size_names_.try_emplace(size.value.host, "..", param.name.span);
  }
  return vector(*element, size.value.host);
}

void Elaborator::check_fn(const DeclRef& decl) {
  const auto& fn = std::get<ast::Fn>((*decl).node);
  const Use use(*this, fn.name.span);
  is_check_ = true;
  is_of_fn_ = true;
  body_ = BodyKind::Encode;
  open_fns_.push_back(decl);
  Environment env{decl.unit, nullptr, {Scope{}}};
  std::vector<StmtId> stmts;
  stmts_ = &stmts;
  with_environment(env, [&] {
    const auto each_param = [&](auto&& handle) {
      for (std::uint32_t i = 0; i < fn.params.count; ++i) {
        handle(tree()[tree().params.pool[fn.params.first + i]]);
      }
    };
    each_param([&](const ast::Param& param) { declare_generic_sizes(param); });
    each_param([&](const ast::Param& param) {
      const auto type = checked_type(param);
      Symbol symbol;
      symbol.span = param.name.span;
      symbol.noun = "an argument";
      if (type) {
        symbol.value = read_var(add_var(param.name.text, *type, false, symbol.span), symbol.span);
        // Whole numbers may stand in sizes.
        if (type->rank == 0 && is_int(type->dtype)) {
          const HostExprId leaf = opaque_number(HostType::Int);
          size_names_.try_emplace(leaf, param.name.text, param.name.span);
          symbol.value = host(leaf, symbol.span);
          symbol.value.declared = type->dtype;
        }
      }
      declare(param.name, symbol);
    });
    fn_body(fn, fn.name.span);
  });
  stmts_ = nullptr;
  open_fns_.pop_back();
}

}  // namespace cinch::sema
