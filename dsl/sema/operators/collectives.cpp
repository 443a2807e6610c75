// allreduce, broadcast, sendrecv, and collectives that give one row per rank.
#include "dsl/sema/operators/operators.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Collectives::collective_call(BuiltinId id, const CallArgs& args) {
  if (mode_.body != BodyKind::Sync) {
    reporter_.report<DiagKind::OnlyInSync>(args.span, args.name);
    return error_value(args.span);
  }
  if (mode_.lambda_depth > 0) {
    reporter_.report<DiagKind::NotInLambda>(args.span, "`" + args.name + "`");
    return error_value(args.span);
  }
  if (id == BuiltinId::allreduce) return allreduce_call(args);
  if (id == BuiltinId::sendrecv) return sendrecv_call(args);
  if (id != BuiltinId::broadcast) return per_rank_call(id, args);
  Value x = all_.arguments.operand(args.positional[0]);
  std::int64_t root = 0;
  if (const auto at = args.named.find("root"); at != args.named.end()) {
    const auto given = all_.constants.constant_int(at->second->value);
    if (!given) return error_value(args.span);
    root = *given;
    const HostExprId rank = pool().const_int(root);
    build_.require_nonnegative(rank, "`root` is not negative", at->second->span);
    build_.require_at_most(
        pool().add(rank, pool().const_int(1)), pool().world(),
        "`root: " + std::to_string(root) + "` is below `world`, the number of ranks",
        at->second->span);
  }
  if (x.is_error()) return x;
  return build_.builtin(id, x.type, {x.expr}, args.span,
                        [&](Expr& e) { e.index = static_cast<std::uint32_t>(root); });
}

Value Collectives::allreduce_call(const CallArgs& args) {
  const Value x = all_.arguments.operand(args.positional[0]);
  const auto how = all_.arguments.word(args.positional[1], {"sum", "mean", "min", "max"});
  if (!how) return error_value(args.span);
  const bool is_mean = *how == "mean";
  const Value made = is_mean ? conversions_.as_float(x, args.name) : conversions_.arithmetic(x);
  if (made.is_error()) return error_value(args.span);
  return build_.builtin(BuiltinId::allreduce, made.type, {made.expr}, args.span, [&](Expr& e) {
    e.is_mean = is_mean;
    e.scalar_op = *how == "min" ? ScalarOp::min : *how == "max" ? ScalarOp::max : ScalarOp::add;
  });
}

Value Collectives::sendrecv_call(const CallArgs& args) {
  const Value x = all_.arguments.operand(args.positional[0]);
  const auto given = args.named.find("to");
  if (given == args.named.end()) {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "`to:`");
    return error_value(args.span);
  }
  const Value to = all_.indexing.as_index(all_.exprs.expr(given->second->value));
  if (x.is_error() || to.is_error()) return error_value(args.span);
  if (to.type.rank != 0) {
    reporter_.report<DiagKind::Mismatch>(to.span, "the number of a rank", text_.describe(to));
    return error_value(args.span);
  }
  Value received;
  if (is_counted_vector(x)) {
    received = counted_collective(BuiltinId::sendrecv, x, to.expr, args.span);
  } else {
    received = build_.builtin(BuiltinId::sendrecv, x.type, {x.expr, to.expr}, args.span);
  }
  // Received indices are checked at their use, because they came over a network.
  received.facts.unique = x.facts.unique;
  received.facts.ascending = x.facts.ascending;
  received.facts.unique_in_rows = x.facts.unique_in_rows;
  received.facts.assumed = x.facts.assumed;
  return received;
}

bool Collectives::is_counted_vector(const Value& x) {
  return x.type.rank == 1 && pool().has_count(x.type.dims[0]);
}

// A vector whose length is a count, which may differ between ranks. The received vector has a count
// of its own. Vectors that had the same length before and used the same collective share it.
Value Collectives::counted_collective(BuiltinId id, const Value& x, ExprId to, Span span) {
  const bool gathers = id == BuiltinId::allgather;
  HostExprId most = sizes_.without_counts(x.type.dims[0]);
  if (!most) {
    reporter_.report<DiagKind::NotKnownOnHost>(span, "the most that a rank sends");
    return error_value(span);
  }
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

// allgather, all_to_all and reduce_scatter: one row per rank.
Value Collectives::per_rank_call(BuiltinId id, const CallArgs& args) {
  if (id == BuiltinId::allgather) {
    Value x = all_.arguments.vector_operand(args.positional[0], args.name);
    if (x.is_error()) return x;
    if (is_counted_vector(x)) return counted_collective(id, x, ExprId(), args.span);
    Value rows = build_.builtin(id, matrix_type(x.type.dtype, pool().world(), x.type.dims[0]),
                                {x.expr}, args.span);
    // Received indices are checked at their use, because they came over a network.
    rows.facts.unique_in_rows = x.facts.unique;
    rows.facts.assumed = x.facts.assumed;
    return rows;
  }
  Value x = all_.arguments.matrix_operand(args.positional[0], args.name);
  if (x.is_error()) return x;
  if (!prover_.proves_equal(x.type.dims[0], pool().world())) {
    reporter_.report<DiagKind::Mismatch>(x.span, "one row per rank: [T; world, m]",
                                         text_.describe(x));
    return error_value(args.span);
  }
  if (id == BuiltinId::all_to_all) return build_.builtin(id, x.type, {x.expr}, args.span);
  const Value made = conversions_.arithmetic(x);
  return build_.builtin(id, vector_type(made.type.dtype, x.type.dims[1]), {made.expr}, args.span);
}

}  // namespace cinch::sema
