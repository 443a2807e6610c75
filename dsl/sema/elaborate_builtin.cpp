// Named operators: dispatch, operands, and the first group (map, fill, len).
#include <fmt/format.h>

#include <algorithm>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

// Labels and number of operands of each operator; `min` leaves room for sizes of state inits.
struct Form {
  std::vector<std::string_view> labels;
  std::size_t min, max;
};

constexpr std::size_t kAny = 64;

// A table.
Form form_of(BuiltinId id) {  // NOLINT(cinch-function-length)
  switch (id) {
    case BuiltinId::map:
      return {{}, 2, kAny};
    case BuiltinId::fill:
      return {{}, 1, 2};
    case BuiltinId::len:
    case BuiltinId::transpose:
    case BuiltinId::orthonormalize:
    case BuiltinId::hadamard:
    case BuiltinId::allgather:
    case BuiltinId::all_to_all:
    case BuiltinId::reduce_scatter:
      return {{}, 1, 1};
    case BuiltinId::reduce:
      return {{"where", "axis"}, 3, 3};
    case BuiltinId::dot:
      return {{"where", "axis"}, 2, 2};
    case BuiltinId::scan:
      return {{"exclusive", "axis"}, 3, 3};
    case BuiltinId::cumsum:
      return {{"exclusive", "axis"}, 1, 1};
    case BuiltinId::filter:
      return {{"where", "limit"}, 1, 1};
    case BuiltinId::nonzero:
      return {{"limit"}, 1, 1};
    case BuiltinId::sort:
    case BuiltinId::argsort:
      return {{"descending", "axis"}, 1, 1};
    case BuiltinId::sort_by_key:
      return {{"descending", "axis"}, 2, 2};
    case BuiltinId::top_k:
    case BuiltinId::kth_largest:
      return {{"axis"}, 2, 2};
    case BuiltinId::pack:
      return {{"bits"}, 1, 1};
    case BuiltinId::unpack:
      return {{"bits", "size"}, 1, 1};
    case BuiltinId::concat:
      return {{}, 1, kAny};
    case BuiltinId::slice:
      return {{}, 3, 3};
    case BuiltinId::scatter:
      return {{"at", "size", "keep"}, 1, 1};
    case BuiltinId::scatter_add:
    case BuiltinId::scatter_min:
    case BuiltinId::scatter_max:
      return {{"at", "size"}, 1, 1};
    case BuiltinId::reshape:
      return {{}, 2, 3};
    case BuiltinId::floor_div:
    case BuiltinId::chunk:
    case BuiltinId::unchunk:
    case BuiltinId::allreduce:
      return {{}, 2, 2};
    case BuiltinId::iota:
      return {{}, 0, 1};
    case BuiltinId::histogram:
      return {{"bins"}, 1, 1};
    case BuiltinId::random:
    case BuiltinId::random_bits:
    case BuiltinId::normal:
      return {{"shared", "stream"}, 0, 1};
    case BuiltinId::random_index:
      return {{"size", "shared", "stream"}, 0, 1};
    case BuiltinId::stochastic_round:
      return {{"shared", "stream"}, 1, 1};
    case BuiltinId::broadcast:
      return {{"root"}, 1, 1};
    case BuiltinId::sendrecv:
      return {{"to"}, 1, 1};
    default:
      return {{"where", "axis"}, 1, 1};
  }
}

}  // namespace

Value Elaborator::call_builtin(const ast::Call& node, BuiltinId id, const ast::Name& name,
                               Span span) {
  const Form form = form_of(id);
  const CallArgs args = sort_args(node, name.text, span, form.labels, form.min, form.max);
  if (args.is_bad) return error(span);
  if (is_by_rows() && !in_host_ && !has_row_form(id)) {
    return not_by_rows("`" + name.text + "`", span);
  }
  switch (builtin_info(id).group) {
    case BuiltinGroup::Map:
      if (id == BuiltinId::map) return map_call(args);
      if (id == BuiltinId::floor_div) return floor_div_call(args);
      return id == BuiltinId::fill ? fill_call(args) : len_call(args);
    case BuiltinGroup::Reduce:
      return id == BuiltinId::reduce ? reduce_lambda_call(args) : reduce_call(id, args);
    case BuiltinGroup::Scan:
      return scan_call(id, args);
    case BuiltinGroup::Filter:
      return filter_call(id, args);
    case BuiltinGroup::Sort:
      return id == BuiltinId::top_k || id == BuiltinId::kth_largest ? top_k_call(id, args)
                                                                    : sort_call(id, args);
    case BuiltinGroup::Pack:
    case BuiltinGroup::Move:
      return move_call(id, args);
    case BuiltinGroup::Random:
      return id == BuiltinId::stochastic_round ? stochastic_round_call(args)
                                               : random_call(id, args);
    case BuiltinGroup::Matrix:
      return matrix_call(id, args);
    case BuiltinGroup::Collective:
      return collective_call(id, args);
  }
  return error(span);
}

Value Elaborator::builtin(BuiltinId id, Type type, std::vector<ExprId> args, Span span,
                          const std::function<void(Expr&)>& set) {
  Expr made{ExprKind::Builtin, type, span};
  made.builtin = id;
  made.args = std::move(args);
  if (set) set(made);
  return typed(std::move(made));
}

Value Elaborator::operand(ast::ExprId id) {
  return operand_of(expr(id));
}

Value Elaborator::operand_of(const Value& value) {
  if (value.is_error()) return value;
  const Value made = unmet(value);
  if (!made.is_error() && !made.is_typed()) {
    reporter_.report<DiagKind::BadType>(value.span, "a value", describe(value));
    return error(value.span);
  }
  return made.is_error() ? made : check_lambda_array(made);
}

Value Elaborator::array_operand(ast::ExprId id, std::string_view name) {
  return array_of(operand(id), name);
}

Value Elaborator::array_of(const Value& value, std::string_view name) {
  if (value.is_error() || value.type.rank > 0) return value;
  reporter_.report<DiagKind::CannotApply>(value.span, std::string(name), describe(value))
      .note("it takes an array");
  return error(value.span);
}

Value Elaborator::vector_operand(ast::ExprId id, std::string_view name) {
  Value value = array_operand(id, name);
  if (value.is_error() || value.type.rank == 1) return value;
  reporter_.report<DiagKind::NeedsVector>(value.span, std::string(name), describe(value));
  return error(value.span);
}

Value Elaborator::matrix_operand(ast::ExprId id, std::string_view name) {
  Value value = array_operand(id, name);
  if (value.is_error() || value.type.rank == 2) return value;
  reporter_.report<DiagKind::NeedsMatrix>(value.span, std::string(name), describe(value));
  return error(value.span);
}

std::optional<HostExprId> Elaborator::size_arg(ast::ExprId id, std::string_view name) {
  const std::string what = "the size in `" + std::string(name) + "`";
  const auto size = host_size(id, what);
  if (!size) return size;
  if (!without_counts(*size)) {
    reporter_.report<DiagKind::NotKnownOnHost>(tree()[id].span,
                                               "the most that " + what + " can be");
    return std::nullopt;
  }
  const bool is_possible = require_nonnegative(
      *size, "the size " + size_text(*size) + " is not negative", tree()[id].span);
  return is_possible ? size : std::nullopt;
}

std::optional<std::string_view> Elaborator::word(ast::ExprId id,
                                                 const std::vector<std::string_view>& words) {
  const ast::Expr& given = tree()[id];
  const auto* name = std::get_if<ast::NameRef>(&given.node);
  const auto known =
      name == nullptr ? words.end() : std::find(words.begin(), words.end(), name->name.text);
  if (known != words.end()) return *known;
  std::string wanted;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) wanted += i + 1 == words.size() ? " or " : ", ";
    wanted += fmt::format("`{}`", words[i]);
  }
  const std::string found(env_->unit->source->text(given.span));
  auto& diag = reporter_.report<DiagKind::BadType>(given.span, wanted,
                                                   "`" + found.substr(0, found.find('\n')) + "`");
  if (name != nullptr) {
    diag.suggest(given.span, std::string(dsl::nearest_name(name->name.text, words)));
  }
  return std::nullopt;
}

std::optional<HostExprId> Elaborator::named_size(const CallArgs& args, std::string_view label) {
  const auto at = args.named.find(label);
  if (at != args.named.end()) return size_arg(at->second->value, args.name);
  reporter_.report<DiagKind::MissingArgument>(args.span, args.name,
                                              "`" + std::string(label) + ":`");
  return std::nullopt;
}

// -1: no axis was asked for; nothing: a mistake was reported.
std::optional<int> Elaborator::axis(const CallArgs& args, const Value& x) {
  const auto at = args.named.find("axis");
  if (at == args.named.end()) return is_by_rows() && x.type.rank == 2 ? 1 : -1;
  const auto value = constant_int(at->second->value);
  if (!value) return std::nullopt;
  if (*value != 0 && *value != 1) {
    reporter_.report<DiagKind::OutOfRange>(at->second->span, "axis " + std::to_string(*value),
                                           "0 and 1");
    return std::nullopt;
  }
  if (x.type.rank != 2) {
    reporter_.report<DiagKind::NeedsMatrix>(x.span, "axis:", describe(x));
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

std::optional<int> Elaborator::line_axis(const CallArgs& args, const Value& x) {
  const auto along = axis(args, x);
  if (!along || x.type.rank != 2 || *along >= 0) return along;
  reporter_.report<DiagKind::NeedsVector>(x.span, args.name, describe(x))
      .note("of a matrix: along `axis: 0` or `axis: 1`");
  return std::nullopt;
}

Value Elaborator::map_call(const CallArgs& args) {
  std::vector<Value> arrays;
  std::vector<Type> params;
  std::vector<ExprId> operands;
  for (std::size_t i = 0; i + 1 < args.positional.size(); ++i) {
    arrays.push_back(operand(args.positional[i]));
    if (arrays.back().is_error()) return error(args.span);
    params.push_back(scalar(arrays.back().type.dtype));
  }
  const auto shape = broadcast(arrays, args.span, "map");
  if (!shape) return error(args.span);
  operands.reserve(arrays.size() + 1);
  for (const Value& array : arrays) operands.push_back(as_row(array, *shape).expr);
  const Value body = lambda(args.positional.back(), params, args.name,
                            [&](const Value& value) { return unmet(value); });
  if (body.is_error()) return error(args.span);
  operands.push_back(body.expr);
  Type type = *shape;
  type.dtype = body.type.dtype;
  return builtin(BuiltinId::map, type, std::move(operands), args.span);
}

Value Elaborator::fill_call(const CallArgs& args) {
  const Value value = expr(args.positional[0]);
  if (value.is_error()) return error(args.span);
  const bool takes_shape = args.positional.size() == 1 && wanted_ != nullptr;
  if (args.positional.size() == 1 && !takes_shape) {
    reporter_.report<DiagKind::MissingArgument>(args.span, "fill", "a size");
    return error(args.span);
  }
  Value v = takes_shape ? coerce(value, wanted_->dtype) : unmet(value);
  if (v.is_error()) return v;
  if (!v.is_typed() || v.type.rank != 0) {
    reporter_.report<DiagKind::BadType>(value.span, "a number to repeat", describe(value));
    return error(args.span);
  }
  if (takes_shape) return builtin(BuiltinId::fill, *wanted_, {v.expr}, args.span);
  const auto size = size_arg(args.positional[1], args.name);
  if (!size) return error(args.span);
  return builtin(BuiltinId::fill, vector(v.type.dtype, *size), {v.expr}, args.span,
                 [&](Expr& e) { e.size = *size; });
}

// A number: elements of a vector, rows of a matrix.
Value Elaborator::len_call(const CallArgs& args) {
  Value x = expr(args.positional[0]);
  if (x.is_error()) return x;
  const Type type = value_type(x);
  const bool is_array = (x.is_typed() || x.kind == ValueKind::Table) && type.rank > 0;
  if (!is_array) {
    reporter_.report<DiagKind::CannotApply>(x.span, "len", describe(x)).note("it takes an array");
    return error(args.span);
  }
  // The number is used without the array, which has to be made for it.
  if (holds_filter(x)) shared(x, "counted");
  return host(type.dims[0], args.span);
}

}  // namespace cinch::sema
