// Named operators: labels, numbers of operands, and dispatch by group.
#include "dsl/sema/expressions/calls.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

namespace {

// The labels and the number of operands of an operator. `min` allows state inits to leave out
// sizes.
struct Form {
  std::vector<std::string_view> labels;
  std::size_t min, max;
};

constexpr std::size_t kAny = 64;

// A table.
Form form_of(BuiltinId id) {
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

Value Calls::call_builtin(const ast::Call& node, BuiltinId id, const ast::Name& name, Span span) {
  const Form form = form_of(id);
  const CallArgs args =
      all_.arguments.sort_args(node, name.text, span, form.labels, form.min, form.max);
  if (args.is_bad) return error_value(span);
  if (is_by_rows() && !mode_.in_host && !all_.rows.has_row_form(id)) {
    return all_.rows.not_by_rows("`" + name.text + "`", span);
  }
  switch (builtin_info(id).group) {
    case BuiltinGroup::Map:
      if (id == BuiltinId::map) return all_.maps.map_call(args);
      if (id == BuiltinId::floor_div) return all_.maps.floor_div_call(args);
      return id == BuiltinId::fill ? all_.maps.fill_call(args) : all_.maps.len_call(args);
    case BuiltinGroup::Reduce:
      return id == BuiltinId::reduce ? all_.reductions.reduce_lambda_call(args)
                                     : all_.reductions.reduce_call(id, args);
    case BuiltinGroup::Scan:
      return all_.reductions.scan_call(id, args);
    case BuiltinGroup::Filter:
      return all_.selections.filter_call(id, args);
    case BuiltinGroup::Sort:
      return id == BuiltinId::top_k || id == BuiltinId::kth_largest
                 ? all_.selections.top_k_call(id, args)
                 : all_.selections.sort_call(id, args);
    case BuiltinGroup::Pack:
    case BuiltinGroup::Move:
      return all_.moves.move_call(id, args);
    case BuiltinGroup::Random:
      return id == BuiltinId::stochastic_round ? all_.random.stochastic_round_call(args)
                                               : all_.random.random_call(id, args);
    case BuiltinGroup::Matrix:
      return all_.matrices.matrix_call(id, args);
    case BuiltinGroup::Collective:
      return all_.collectives.collective_call(id, args);
  }
  return error_value(span);
}

}  // namespace cinch::sema
