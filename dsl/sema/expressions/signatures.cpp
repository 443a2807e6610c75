// Sizes in signatures, and values in declared types.
#include "dsl/sema/expressions/calls.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Signatures::to_result(const Value& value, ast::TypeId id, Span span, std::string_view what) {
  const auto* types = std::get_if<ast::TupleType>(&tree()[id].node);
  if (types == nullptr) return to_declared(value, id, span, what);
  const auto wanted = tree().list(types->elements);
  if (value.kind != ValueKind::Tuple || value.elements.size() != wanted.size()) {
    reporter_.report<DiagKind::Mismatch>(value.span, std::to_string(wanted.size()) + " values",
                                         text_.describe(value));
    return error_value(span);
  }
  Value result = value;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    result.elements[i] = to_declared(value.elements[i], wanted[i], span, what);
    if (result.elements[i].is_error()) return error_value(span);
  }
  return result;
}

namespace {

// The name, if a size in a type is a plain name, or nullptr.
const ast::Name* plain_name(const ast::Module& tree, ast::ExprId id) {
  const auto* name = std::get_if<ast::NameRef>(&tree[id].node);
  return name == nullptr ? nullptr : &name->name;
}

}  // namespace

// Binds sizes that are plain names and no constants. A size that is bound already must be the same.
bool Signatures::bind_generic_sizes(const ast::ArrayType& type, const Value& arg, Scope& scope) {
  const Type shape = types_.value_type(arg);
  if (type.is_any()) return true;
  const auto dims = tree().list(type.dims);
  if (dims.size() != shape.rank) return false;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const ast::Name* name = plain_name(tree(), dims[i]);
    if (name == nullptr || env_->unit->names.contains(name->text)) continue;
    if (is_reserved_name(name->text)) {
      reporter_.report<DiagKind::BuiltinNameTaken>(name->span, name->text)
          .note("a size in the signature of a fn has a name of its own");
      return false;
    }
    const auto bound = scope.find(name->text);
    if (bound == scope.end()) {
      Symbol symbol;
      symbol.value = host_value(shape.dims[i], name->span);
      symbol.span = name->span;
      scope.emplace(name->text, symbol);
    } else if (!prover_.proves_equal(bound->second.value.host, shape.dims[i])) {
      auto& diag = reporter_.report<DiagKind::GenericSizes>(
          arg.span, name->text, sizes_.size_text(bound->second.value.host),
          sizes_.size_text(shape.dims[i]));
      text_.note_sizes(diag.note(name->span, "the size"), {&arg});
      return false;
    }
  }
  return true;
}

bool Signatures::bind_fn_params(const ast::Fn& fn, const std::vector<Value>& args,
                                Environment& inner) {
  std::size_t next = 0;
  std::vector<std::pair<const ast::Param*, const Value*>> arrays;
  bool is_good = true;
  for (std::uint32_t i = 0; i < fn.params.count; ++i, ++next) {
    const ast::Module& tree = inner.unit->tree;
    const ast::Param& param = tree[tree.params.pool[fn.params.first + i]];
    const auto* array = std::get_if<ast::ArrayType>(&tree[param.type].node);
    if (array == nullptr) continue;
    bool has_shape = false;
    const std::size_t errors = reporter_.num_errors();
    all_.names.with_environment(
        inner, [&] { has_shape = bind_generic_sizes(*array, args[next], inner.scopes.front()); });
    if (!has_shape && reporter_.num_errors() == errors) {
      const auto& text = inner.unit->source->text(tree[param.type].span);
      reporter_.report<DiagKind::Mismatch>(args[next].span, std::string(text),
                                           text_.describe(args[next]));
    }
    is_good &= has_shape;
  }
  if (!is_good) return false;
  for (std::uint32_t i = 0; i < fn.params.count; ++i) {
    const ast::Module& tree = inner.unit->tree;
    const ast::Param& param = tree[tree.params.pool[fn.params.first + i]];
    Value value;
    all_.names.with_environment(
        inner, [&] { value = to_declared(args[i], param.type, args[i].span, param.name.text); });
    if (value.is_error()) return false;
    Symbol symbol;
    symbol.value = build_.shared(value, param.name.text);
    symbol.span = param.name.span;
    symbol.noun = "an argument";
    inner.scopes.front().insert_or_assign(param.name.text, symbol);
  }
  return true;
}

// Converts a value to a type in a signature, whose sizes are already bound. The host still knows
// whole numbers, because sizes may use them, but they take the arithmetic of the type.
Value Signatures::to_declared(const Value& value, ast::TypeId id, Span span,
                              std::string_view what) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[id].node);
  if (array != nullptr) {
    const std::size_t errors = reporter_.num_errors();
    Scope& scope = env_->scopes.front();
    if (!bind_generic_sizes(*array, value, scope)) {
      if (reporter_.num_errors() == errors) {
        reporter_.report<DiagKind::Mismatch>(
            value.span, "`" + std::string(env_->unit->source->text(tree()[id].span)) + "`",
            text_.describe(value));
      }
      return error_value(span);
    }
  }
  if (array != nullptr && array->is_any()) {
    const auto element = all_.written_types.dtype_of(array->element);
    return element && !value.is_error() ? conversions_.coerce(value, *element) : error_value(span);
  }
  const auto type = all_.written_types.type_of(id);
  if (!type || value.is_error()) return error_value(span);
  const bool is_number = value.is_host() && type->rank == 0;
  if (is_number && is_int(type->dtype) && pool().type(value.host) == HostType::Int) {
    Value made = conversions_.coerce(value, type->dtype);
    const bool may_change =
        type->dtype.bits < 32 && !types_.is_known_to_fit(value.host, type->dtype);
    if (made.is_error() || (may_change && !mode_.in_host)) return made;
    Value number = value;
    number.declared = type->dtype;
    number.quotient.reset();
    number.remake.reset();
    return number;
  }
  if (is_number && mode_.in_host && types_.can_coerce(value, type->dtype)) {
    if (is_bool(type->dtype)) return value;
    return host_value(is_int(type->dtype) ? pool().cast(value.host, HostType::Int)
                                          : pool().cast(as_quotient(value).host, HostType::F64),
                      value.span);
  }
  Value made = conversions_.coerce(value, type->dtype);
  if (made.is_error()) return made;
  if (!sizes_.same_shape(made.type, *type)) {
    auto& diag = reporter_.report<DiagKind::Mismatch>(value.span, sizes_.type_text(*type),
                                                      text_.describe(value));
    text_.note_sizes(diag.note("this is `" + std::string(what) + "`"), {&made});
    return error_value(span);
  }
  return made;
}

void Signatures::declare_generic_sizes(const ast::Param& param) {
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
    const HostExprId leaf = sizes_.opaque_number(HostType::Int);
    prover_.set_nonnegative(leaf);
    sizes_.name(leaf, name->name.text, name->name.span);
    Symbol symbol;
    symbol.value = host_value(leaf, name->name.span);
    symbol.span = name->name.span;
    env_->scopes.front().emplace(name->name.text, symbol);
  }
}

// An array of any sizes is checked as a vector, which has the most operators, and all of them get
// one size.
std::optional<Type> Signatures::checked_type(const ast::Param& param) {
  const auto* array = std::get_if<ast::ArrayType>(&tree()[param.type].node);
  if (array == nullptr || !array->is_any()) return all_.written_types.type_of(param.type);
  const auto element = all_.written_types.dtype_of(array->element);
  if (!element) return std::nullopt;
  Symbol& size = env_->scopes.front()[".."];
  if (!size.value.host) {
    size.value = host_value(sizes_.opaque_number(HostType::Int), param.name.span);
    prover_.set_nonnegative(size.value.host);
    sizes_.name(size.value.host, "..", param.name.span);
  }
  return vector_type(*element, size.value.host);
}

}  // namespace cinch::sema
