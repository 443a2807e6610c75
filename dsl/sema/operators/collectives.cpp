// allreduce, broadcast, sendrecv, and collectives that give one row per rank.
#include <algorithm>

#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/operators/operators.h"

namespace cinch::sema {
using dsl::DiagKind;

Value Operators::collective_call(const CallArgs& args) {
  if (mode_.body != BodyKind::Sync) return mistake<DiagKind::OnlyInSync>(args.span, args.name);
  if (mode_.lambda_depth > 0)
    return mistake<DiagKind::NotInLambda>(args.span, "`" + args.name + "`");
  if (args.id == BuiltinId::allreduce) return allreduce_call(args);
  if (args.id == BuiltinId::sendrecv) return sendrecv_call(args);
  return args.id == BuiltinId::broadcast ? broadcast_call(args) : per_rank_call(args);
}

namespace {

// Received indices are checked at their use, because they came over a network.
Value with_index_facts(Value received, const Value& sent) {
  received.facts.unique = sent.facts.unique;
  received.facts.ascending = sent.facts.ascending;
  received.facts.unique_in_rows = sent.facts.unique_in_rows;
  received.facts.assumed = sent.facts.assumed;
  return received;
}

}  // namespace

// A root that the compiler knows is checked before launch; the exchange checks any other.
Value Operators::broadcast_call(const CallArgs& args) {
  const Value x = all_.calls.operand(args.positional[0]);
  const auto at = args.named.find("root");
  Value given;
  if (at != args.named.end()) given = all_.exprs.expr(at->second->value);
  if (x.is_error() || (at != args.named.end() && given.is_error())) return error_value(args.span);
  std::int64_t root = 0;
  if (at != args.named.end()) {
    const bool is_constant = given.is_host() && pool().is_const(given.host);
    if (!is_constant) {
      const Value rank = FOUND(all_.exprs.as_index(given));
      if (rank.type.rank != 0)
        return mistake<DiagKind::Mismatch>(rank.span, "the number of a rank", text_.describe(rank));
      return with_index_facts(build_.builtin(args.id, x.type, {x.expr, rank.expr}, args.span), x);
    }
    root = FOUND(all_.numbers.constant_int(at->second->value));
    const HostExprId rank = pool().const_int(root);
    build_.require_nonnegative(rank, "`root` is not negative", at->second->span);
    build_.require_at_most(
        pool().add(rank, pool().const_int(1)), pool().world(),
        "`root: " + std::to_string(root) + "` is below `world`, the number of ranks",
        at->second->span);
  }
  const Value said = build_.builtin(args.id, x.type, {x.expr}, args.span,
                                    [&](Expr& e) { e.index = static_cast<std::uint32_t>(root); });
  return with_index_facts(said, x);
}

// Parts of an array are sizes, which no count is.
bool Operators::is_of_known_size(const Value& x, std::string_view name) {
  const auto* const end = x.type.dims + x.type.rank;
  if (std::none_of(x.type.dims, end, [this](HostExprId dim) { return pool().has_count(dim); }))
    return true;
  return mistake<DiagKind::NotKnownOnHost>(
      x.span, "the length of what `" + std::string(name) + "` cuts into parts");
}

// Sizes are the same on all ranks, so all of them find the same groups, and the same mistake before
// they launch anything.
std::optional<Operators::Groups> Operators::groups_of(const CallArgs& args) {
  const auto group = args.named.find("group"), stride = args.named.find("stride");
  if (group == args.named.end()) {
    if (stride == args.named.end()) return Groups{};
    return mistake<DiagKind::MissingArgument>(args.span, args.name, "`group:`");
  }
  const auto number = [&](const auto& at) -> std::optional<HostExprId> {
    const Span span = at->second->span;
    const auto size = all_.numbers.host_size(at->second->value, "`" + at->first + ":`");
    if (!size) return std::nullopt;
    if (pool().has_count(*size)) {
      return mistake<DiagKind::NotKnownOnHost>(span, "`" + at->first + ":`");
    }
    const bool is_possible = build_.require_at_most(pool().const_int(1), *size,
                                                    "`" + at->first + ":` is at least 1", span);
    return is_possible ? size : std::nullopt;
  };
  const auto size = number(group);
  const auto apart =
      stride == args.named.end() ? std::optional(pool().const_int(1)) : number(stride);
  if (!size || !apart) return std::nullopt;
  const HostExprId left = pool().mod(pool().world(), pool().mul(*size, *apart));
  const bool fits = build_.require_at_most(left, pool().const_int(0),
                                           "groups of " + sizes_.size_text(*size) + " ranks, " +
                                               sizes_.size_text(*apart) + " apart, have all ranks",
                                           group->second->span);
  return fits ? std::optional(Groups{*size, *apart}) : std::nullopt;
}

HostExprId Operators::size_of(const Groups& groups) {
  return groups.size.is_valid() ? groups.size : pool().world();
}

std::optional<std::optional<DType>> Operators::travels_in(const CallArgs& args) {
  const auto at = args.named.find("in");
  if (at == args.named.end()) return std::optional<DType>();
  const auto word = all_.calls.word(at->second->value, {"f16", "bf16", "f8e4m3", "f8e5m2"});
  if (!word) return std::nullopt;
  return parse_dtype(*word);
}

Value Operators::allreduce_call(const CallArgs& args) {
  const Value x = all_.calls.operand(args.positional[0]);
  const auto how = FOUND(all_.calls.word(args.positional[1], {"sum", "mean", "min", "max"}));
  const bool is_mean = how == "mean";
  const auto groups = FOUND(groups_of(args));
  const auto narrow = FOUND(travels_in(args));
  const Value made =
      is_mean || narrow ? conversions_.as_float(x, args.name) : conversions_.arithmetic(x);
  if (made.is_error()) return error_value(args.span);
  if ((groups.size.is_valid() || narrow) && !is_of_known_size(made, args.name))
    return error_value(args.span);
  Type type = made.type;
  if (narrow) type.dtype = *narrow;
  return build_.builtin(BuiltinId::allreduce, type, {made.expr}, args.span, [&](Expr& e) {
    e.is_mean = is_mean;
    e.group = groups.size;
    e.stride = groups.stride;
    e.travels_in = narrow;
    e.scalar_op = how == "min" ? ScalarOp::min : how == "max" ? ScalarOp::max : ScalarOp::add;
  });
}

Value Operators::sendrecv_call(const CallArgs& args) {
  const Value x = all_.calls.operand(args.positional[0]);
  const auto given = args.named.find("to");
  if (given == args.named.end())
    return mistake<DiagKind::MissingArgument>(args.span, args.name, "`to:`");
  const Value to = all_.exprs.as_index(all_.exprs.expr(given->second->value));
  if (x.is_error() || to.is_error()) return error_value(args.span);
  if (to.type.rank != 0)
    return mistake<DiagKind::Mismatch>(to.span, "the number of a rank", text_.describe(to));
  Value received;
  if (is_counted_vector(x)) {
    received = counted_collective(BuiltinId::sendrecv, x, to.expr, args.span);
  } else {
    received = build_.builtin(BuiltinId::sendrecv, x.type, {x.expr, to.expr}, args.span);
  }
  return with_index_facts(received, x);
}

bool Operators::is_counted_vector(const Value& x) {
  return x.type.rank == 1 && pool().has_count(x.type.dims[0]);
}

// A vector whose length is a count, which may differ between ranks. The received vector has a count
// of its own. Vectors that had the same length before and used the same collective share it.
Value Operators::counted_collective(BuiltinId id, const Value& x, ExprId to, Span span) {
  const bool gathers = id == BuiltinId::allgather;
  HostExprId most = sizes_.without_counts(x.type.dims[0]);
  if (!most) return mistake<DiagKind::NotKnownOnHost>(span, "the most that a rank sends");
  if (gathers) most = pool().mul(pool().world(), most);
  const std::string key = std::string(builtin_info(id).name) + "|" +
                          std::to_string(x.type.dims[0].index()) + "|" +
                          (to ? std::to_string(all_.numbering.value_number(to)) : "");
  const std::uint32_t index = all_.counts.received(key, most);
  std::vector<ExprId> operands{x.expr};
  if (to) operands.push_back(to);
  return build_.builtin(id, vector_type(x.type.dtype, pool().count(index, most)),
                        std::move(operands), span, [&](Expr& e) {
                          e.index = index;
                          e.size = most;
                        });
}

// allgather, all_to_all and reduce_scatter: one row per rank, or per rank of a group.
Value Operators::per_rank_call(const CallArgs& args) {
  const auto groups = FOUND(groups_of(args));
  const HostExprId size = size_of(groups);
  const auto set_groups = [&](Expr& e) {
    e.group = groups.size;
    e.stride = groups.stride;
  };
  if (args.id == BuiltinId::allgather) {
    Value x = FOUND(all_.calls.vector_operand(args.positional[0], args.name));
    if (is_counted_vector(x)) {
      if (groups.size.is_valid())
        return mistake<DiagKind::NotKnownOnHost>(x.span, "the length of what a group gathers");
      return counted_collective(args.id, x, ExprId(), args.span);
    }
    Value rows = build_.builtin(args.id, matrix_type(x.type.dtype, size, x.type.dims[0]), {x.expr},
                                args.span, set_groups);
    // Received indices are checked at their use, because they came over a network.
    rows.facts.unique_in_rows = x.facts.unique;
    rows.facts.assumed = x.facts.assumed;
    return rows;
  }
  Value x = FOUND(all_.calls.matrix_operand(args.positional[0], args.name));
  if (!prover_.proves_equal(x.type.dims[0], size))
    return mistake<DiagKind::Mismatch>(
        x.span,
        groups.size.is_valid()
            ? "one row per rank of the group: [T; " + sizes_.size_text(size) + ", m]"
            : "one row per rank: [T; world, m]",
        text_.describe(x));
  if (groups.size.is_valid() && !is_of_known_size(x, args.name)) return error_value(args.span);
  if (args.id == BuiltinId::all_to_all)
    return build_.builtin(args.id, x.type, {x.expr}, args.span, set_groups);
  const auto narrow = FOUND(travels_in(args));
  if (narrow && !is_of_known_size(x, args.name)) return error_value(args.span);
  const Value made =
      FOUND(narrow ? conversions_.as_float(x, args.name) : conversions_.arithmetic(x));
  return build_.builtin(args.id, vector_type(made.type.dtype, x.type.dims[1]), {made.expr},
                        args.span, [&](Expr& e) {
                          set_groups(e);
                          e.travels_in = narrow;
                        });
}

}  // namespace cinch::sema
