// Filters and sorts: counts that filters by one mask share, and what is known of the indices.
#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

// A text that is equal for two expressions only if they have the same value: reads of mutable
// names carry the number of the assignment they see.
std::string Elaborator::expr_key(ExprId id) {
  const Expr& e = out_.exprs[id.index()];
  std::string key = std::to_string(static_cast<int>(e.kind)) + dtype_name(e.type.dtype) + ":";
  const auto add = [&](std::uint64_t number) { key += std::to_string(number) + ","; };
  add(e.bits);
  add(e.index);
  add(e.var.index());
  add(e.size.index());
  add(e.size2.index());
  add(static_cast<std::uint64_t>(e.scalar_op));
  add(static_cast<std::uint64_t>(e.builtin));
  add(static_cast<std::uint64_t>(e.axis + 1) * 8 + (e.exclusive ? 4 : 0) + (e.descending ? 2 : 0));
  if (const auto version = read_versions_.find(id.index()); version != read_versions_.end()) {
    add(version->second.first);
    add(version->second.second);
  }
  // Draws, lambdas and blocks are equal only to themselves.
  const bool is_alone =
      e.kind == ExprKind::Lambda || e.kind == ExprKind::Block ||
      (e.kind == ExprKind::Builtin && builtin_info(e.builtin).group == BuiltinGroup::Random);
  if (is_alone) add(id.index() + 1);
  key += "(";
  for (ExprId arg : e.args) key += arg ? expr_key(arg) + ";" : ";";
  return key + ")";
}

// The entry of ProgramInfo::counts for what this mask and limit keep.
std::optional<std::uint32_t> Elaborator::count_of_mask(const Value& mask, HostExprId limit,
                                                       HostExprId len, Span span) {
  const std::string key = expr_key(mask.expr) + "|" + std::to_string(limit.index());
  const auto known = counts_by_mask_.find(key);
  if (known != counts_by_mask_.end()) return known->second;
  HostExprId bound = without_counts(len);
  if (limit) {
    const HostExprId cap = without_counts(limit);
    bound = bound && cap ? pool().min(bound, cap) : bound ? bound : cap;
  }
  if (!bound) {
    reporter_.report<DiagKind::NotKnownOnHost>(span, "the most that this keeps");
    return std::nullopt;
  }
  const auto index = static_cast<std::uint32_t>(out_.info.counts.size());
  out_.info.counts.push_back({"count" + std::to_string(index), bound});
  counts_by_mask_.emplace(key, index);
  const HostExprId count = pool().count(index, bound);
  if (size_names_.try_emplace(count, out_.info.counts[index].name, span).second) {
    unnamed_counts_.insert(count);
  }
  return index;
}

Value Elaborator::filter_call(BuiltinId id, const CallArgs& args) {
  if (lambda_depth_ > 0) {
    reporter_.report<DiagKind::NotInLambda>(args.span, "`" + args.name + "`");
    return error(args.span);
  }
  Value x = vector_operand(args.positional[0], args.name);
  if (x.is_error()) return x;
  Value where = x;
  if (id == BuiltinId::filter) {
    if (!args.named.contains("where")) {
      reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "`where:`");
      return error(args.span);
    }
    const auto given = mask(args, x.type);
    if (!given) return error(args.span);
    where = *given;
  } else {
    where = bool_value(x, "bools in `nonzero`");
    if (where.is_error()) return where;
  }
  HostExprId limit;
  if (args.named.contains("limit")) {
    const auto given = named_size(args, "limit");
    if (!given) return error(args.span);
    limit = *given;
  }
  const HostExprId len = x.type.dims[0];
  const auto found = count_of_mask(where, limit, len, args.span);
  if (!found) return error(args.span);
  const std::uint32_t index = *found;
  const HostExprId count = pool().count(index, out_.info.counts[index].bound);
  const bool is_filter = id == BuiltinId::filter;
  std::vector<ExprId> operands{x.expr};
  if (is_filter) operands.push_back(where.expr);
  Value result = builtin(id, vector(is_filter ? x.type.dtype : kU32, count), std::move(operands),
                         args.span, [&](Expr& e) {
                           e.index = index;
                           e.size = limit;
                         });
  result.facts = is_filter ? x.facts : IndexFacts{true, true, len};
  return result;
}

Value Elaborator::sort_call(BuiltinId id, const CallArgs& args) {
  Value x = array_operand(args.positional[0], args.name);
  if (x.is_error()) return x;
  const auto along = line_axis(args, x);
  if (!along || !is_known_line(x, *along, args.name)) return error(args.span);
  std::vector<ExprId> operands{x.expr};
  Type type = x.type;
  IndexFacts facts;
  if (id == BuiltinId::argsort) {
    type.dtype = kU32;
    if (type.rank == 1) facts = {true, false, x.type.dims[0]};
    if (type.rank == 2) facts.limit = x.type.dims[*along];
    facts.unique_in_rows = type.rank == 2 && *along == 1;
  } else if (id == BuiltinId::sort) {
    facts = x.facts;
    facts.unique_in_rows = facts.unique_in_rows && *along == 1;
  } else {
    Value values = array_operand(args.positional[1], args.name);
    if (values.is_error()) return values;
    if (!same_shape(values.type, x.type)) {
      return cannot_combine(args.name, x, values, args.span, false);
    }
    operands.push_back(values.expr);
    type = values.type;
    facts = values.facts;
    facts.ascending = false;
    facts.unique_in_rows = facts.unique_in_rows && *along == 1;
  }
  const bool is_descending = flag(args, "descending");
  if (id == BuiltinId::sort) facts.ascending = facts.unique && !is_descending;
  Value result = builtin(id, type, std::move(operands), args.span, [&](Expr& e) {
    e.axis = static_cast<std::int8_t>(*along);
    e.descending = is_descending;
  });
  result.facts = facts;
  return result;
}

Value Elaborator::top_k_call(BuiltinId id, const CallArgs& args) {
  const Value given = array_operand(args.positional[0], args.name);
  const auto k = size_arg(args.positional[1], args.name);
  if (given.is_error() || !k) return error(args.span);
  return behind_filter(given, args.span, [&](const Value& x) { return top_k_of(id, args, x, *k); });
}

Value Elaborator::top_k_of(BuiltinId id, const CallArgs& args, const Value& x, HostExprId k) {
  const auto along = axis(args, x);
  if (!along) return error(args.span);
  if (*along == 0) {
    reporter_
        .report<DiagKind::BadType>(args.named.find("axis")->second->span, "`axis: 1`, rows",
                                   "`axis: 0`")
        .note("of the columns of a matrix m: `" + args.name + "(transpose(m), k, axis: 1)`");
    return error(args.span);
  }
  if (!is_known_line(x, *along, args.name)) return error(args.span);
  if (x.type.rank == 2 && *along < 0) {
    reporter_.report<DiagKind::NeedsVector>(x.span, args.name, describe(x))
        .note("of a matrix: per row, with `axis: 1`");
    return error(args.span);
  }
  const HostExprId len = x.type.dims[x.type.rank - 1];
  const bool is_possible =
      require_at_most(k, len, "`" + args.name + "` takes at most " + size_text(len) + " of them",
                      tree()[args.positional[1]].span);
  if (!is_possible) return error(args.span);
  Type type = vector(kU32, k);
  if (x.type.rank == 2) type = matrix(kU32, x.type.dims[0], k);
  if (id == BuiltinId::kth_largest) {
    type = x.type.rank == 2 ? reduced_type(x.type, 1, x.type.dtype) : scalar(x.type.dtype);
  }
  Value result = builtin(id, type, {x.expr}, args.span, [&](Expr& e) {
    e.size = k;
    e.axis = static_cast<std::int8_t>(*along);
  });
  if (id == BuiltinId::top_k) {
    result.facts.limit = len;
    result.facts.unique = result.facts.ascending = x.type.rank == 1;
    result.facts.unique_in_rows = x.type.rank == 2;
  }
  return result;
}

}  // namespace cinch::sema
