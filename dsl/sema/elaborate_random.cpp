// Random draws and how they are numbered, matrix operators, and collectives.
#include <algorithm>

#include "dsl/sema/elaborator.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

// Numbers of call sites in one compressor: encode and decode count from 0, the others from where
// they cannot meet them.
constexpr std::uint32_t kFinishSites = 0x8000, kInitSites = 0xc000, kSitesOfOne = 0x2000;
constexpr std::uint32_t kStreams = 0x80000000u;

std::uint32_t first_site(BodyKind body) {
  if (body == BodyKind::Finish) return kFinishSites;
  return body == BodyKind::StateInit ? kInitSites : 0;
}

}  // namespace

void Elaborator::number_draw(Expr& made, const CallArgs& args) {
  // An encode in finish draws alike on all ranks; what it shares in any case has the numbers by
  // which its decode draws the same.
  const bool is_written_shared = flag(args, "shared");
  const bool is_owners = encodes_in_finish_ && !is_written_shared;
  made.shared = is_written_shared || is_owners;
  if (body_ == BodyKind::Decode && !made.shared) {
    reporter_.report<DiagKind::DrawNotShared>(args.span);
  }
  if (body_ == BodyKind::Decode) out_.info.decode_draws = true;
  const auto stream = args.named.find("stream");
  if (stream != args.named.end()) {
    const auto number = constant_int(stream->second->value);
    if (number && (*number < 0 || *number >= std::int64_t{kStreams})) {
      reporter_.report<DiagKind::OutOfRange>(stream->second->span,
                                             "stream " + std::to_string(*number), "0 to 2^31 - 1");
    }
    made.stream = kStreams + static_cast<std::uint32_t>(number.value_or(0));
    return;
  }
  Instance* const instance = env_->draw_instance;
  std::uint32_t unowned = 0;
  const bool counts_shared = is_written_shared && body_ != BodyKind::StateInit;
  std::uint32_t& next = counts_shared         ? env_->shared_draws
                        : instance != nullptr ? instance->own_draws
                                              : unowned;
  const bool is_early = body_ == BodyKind::Encode || body_ == BodyKind::Decode ||
                        body_ == BodyKind::Sync || (encodes_in_finish_ && is_written_shared);
  const std::uint32_t limit = is_early ? kFinishSites : kSitesOfOne;
  if (next >= limit) {
    reporter_.report<DiagKind::TooMany>(args.span, std::to_string(limit),
                                        "draws in one compressor");
  }
  const std::uint32_t number = instance == nullptr ? 0 : instance->number;
  const std::uint32_t first = is_early ? 0 : is_owners ? kOwnerSites : first_site(body_);
  made.site = (number << 16) + first + next++;
}

Value Elaborator::random_call(BuiltinId id, const CallArgs& args) {
  const bool is_index = id == BuiltinId::random_index;
  const DType dtype = is_index || id == BuiltinId::random_bits ? kU32 : kF32;
  Type type;
  HostExprId size;
  if (!args.positional.empty()) {
    const auto given = size_arg(args.positional[0], args.name);
    if (!given) return error(args.span);
    size = *given;
    type = vector(dtype, size);
    if (is_by_rows()) {
      type = matrix(dtype, env_->instance->rows, size);
      size = num_elems(type);
    }
  } else if (wanted_ != nullptr && wanted_->rank > 0) {
    type = *wanted_;
    type.dtype = dtype;
    size = num_elems(type);
  } else {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "a size");
    return error(args.span);
  }
  IndexFacts facts;
  if (is_index) {
    const auto below = named_size(args, "size");
    if (!below) return error(args.span);
    require_at_most(size, *below, "`random_index` draws at most " + size_text(*below), args.span);
    size = *below;
    facts = {true, false, *below};
  }
  if (lambda_depth_ > 0 && !all_constant_sizes(type)) {
    reporter_.report<DiagKind::ArrayInLambda>(args.span, type_text(type));
    return error(args.span);
  }
  Value result = builtin(id, type, {}, args.span, [&](Expr& e) {
    e.size = size;
    number_draw(e, args);
  });
  result.facts = facts;
  return result;
}

Value Elaborator::stochastic_round_call(const CallArgs& args) {
  Value value = expr(args.positional[0]);
  if (value.is_error()) return value;
  const Value x = as_float(value, args.name);
  if (x.is_error() || check_lambda_array(x).is_error()) return error(args.span);
  return builtin(BuiltinId::stochastic_round, x.type, {x.expr}, args.span,
                 [&](Expr& e) { number_draw(e, args); });
}

Value Elaborator::matmul(const Value& a_in, const Value& b_in, Span span) {
  const std::vector<Value> sides = unmet_together({a_in, b_in});
  Value a = materialize(sides[0]), b = materialize(sides[1]);
  for (const Value* side : {&a, &b}) {
    if (side->is_error()) return error(span);
    if (!side->is_typed() || side->type.rank != 2) {
      reporter_.report<DiagKind::NeedsMatrix>(side->span, "@", describe(*side));
      return error(span);
    }
    if (check_lambda_array(*side).is_error()) return error(span);
  }
  const auto dtype = meet(a, b);
  if (!dtype || !sizes_.proves_equal(a.type.dims[1], b.type.dims[0])) {
    return cannot_combine("@", a, b, span);
  }
  if (!is_known_line(a, 1, "@")) return error(span);
  a = coerce(a, *dtype);
  b = coerce(b, *dtype);
  return builtin(BuiltinId::matmul, matrix(*dtype, a.type.dims[0], b.type.dims[1]),
                 {a.expr, b.expr}, span);
}

Value Elaborator::matrix_call(BuiltinId id, const CallArgs& args) {
  const bool is_hadamard = id == BuiltinId::hadamard;
  Value x = is_hadamard ? array_operand(args.positional[0], args.name)
                        : matrix_operand(args.positional[0], args.name);
  if (x.is_error()) return x;
  x = as_float(x, args.name);
  if (x.is_error()) return x;
  const Type type = x.type;
  if (!is_hadamard) {
    const bool is_known = is_known_line(x, 0, args.name) && is_known_line(x, 1, args.name);
    if (!is_known) return error(args.span);
    return builtin(id, type, {x.expr}, args.span);
  }
  if (!is_known_line(x, type.rank - 1, args.name)) return error(args.span);
  const HostExprId len = type.dims[type.rank - 1];
  const HostExprId one = pool().const_int(1), zero = pool().const_int(0);
  const HostExprId low_bits = pool().make(HostOp::BitAnd, len, pool().sub(len, one));
  const HostExprId is_power = pool().make(HostOp::And, pool().make(HostOp::Gt, len, zero),
                                          pool().make(HostOp::Eq, low_bits, zero));
  require(is_power, "the length " + size_text(len) + " of a row of `hadamard` is a power of two",
          args.span);
  if (type.rank == 1) x = reshaped(x, matrix(type.dtype, one, len), args.span);
  return reshaped(builtin(id, x.type, {x.expr}, args.span), type, args.span);
}

Value Elaborator::collective_call(BuiltinId id, const CallArgs& args) {
  if (body_ != BodyKind::Sync) {
    reporter_.report<DiagKind::OnlyInSync>(args.span, args.name);
    return error(args.span);
  }
  if (lambda_depth_ > 0) {
    reporter_.report<DiagKind::NotInLambda>(args.span, "`" + args.name + "`");
    return error(args.span);
  }
  if (id == BuiltinId::allreduce) return allreduce_call(args);
  if (id == BuiltinId::sendrecv) return sendrecv_call(args);
  if (id != BuiltinId::broadcast) return per_rank_call(id, args);
  Value x = operand(args.positional[0]);
  std::int64_t root = 0;
  if (const auto at = args.named.find("root"); at != args.named.end()) {
    const auto given = constant_int(at->second->value);
    if (!given) return error(args.span);
    root = *given;
    const HostExprId rank = pool().const_int(root);
    require_nonnegative(rank, "`root` is not negative", at->second->span);
    require_at_most(pool().add(rank, pool().const_int(1)), pool().world(),
                    "`root: " + std::to_string(root) + "` is below `world`, the number of ranks",
                    at->second->span);
  }
  if (x.is_error()) return x;
  return builtin(id, x.type, {x.expr}, args.span,
                 [&](Expr& e) { e.index = static_cast<std::uint32_t>(root); });
}

Value Elaborator::allreduce_call(const CallArgs& args) {
  const Value x = operand(args.positional[0]);
  const auto how = word(args.positional[1], {"sum", "mean", "min", "max"});
  if (!how) return error(args.span);
  const bool is_mean = *how == "mean";
  const Value made = is_mean ? as_float(x, args.name) : arithmetic(x);
  if (made.is_error()) return error(args.span);
  return builtin(BuiltinId::allreduce, made.type, {made.expr}, args.span, [&](Expr& e) {
    e.is_mean = is_mean;
    e.scalar_op = *how == "min" ? ScalarOp::min : *how == "max" ? ScalarOp::max : ScalarOp::add;
  });
}

Value Elaborator::sendrecv_call(const CallArgs& args) {
  const Value x = operand(args.positional[0]);
  const auto given = args.named.find("to");
  if (given == args.named.end()) {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "`to:`");
    return error(args.span);
  }
  const Value rank = expr(given->second->value);
  const Value to = as_index(rank);
  if (x.is_error() || to.is_error()) return error(args.span);
  if (to.type.rank != 0) {
    reporter_.report<DiagKind::Mismatch>(to.span, "the number of a rank", describe(to));
    return error(args.span);
  }
  Value received;
  if (is_counted_vector(x)) {
    received = counted_collective(BuiltinId::sendrecv, x, to.expr, args.span);
  } else {
    received = builtin(BuiltinId::sendrecv, x.type, {x.expr, to.expr}, args.span);
  }
  if (is_surely_a_rank(rank, to)) out_.exprs[received.expr.index()].proved_in_bounds = true;
  // Places are checked where they are used: they have come over a network.
  received.facts.unique = x.facts.unique;
  received.facts.ascending = x.facts.ascending;
  received.facts.unique_in_rows = x.facts.unique_in_rows;
  return received;
}

// As far as is seen at once: what is taken modulo `world`, and indices with such a limit.
bool Elaborator::is_surely_a_rank(const Value& given, const Value& index) {
  if (is_in_bounds(index, pool().world())) return true;
  if (!given.is_host() || given.is_big) return false;
  const HostExprNode node = pool().node(given.host);
  return node.op == HostOp::Mod && node.args[1] == pool().world() &&
         sizes_.proves_nonnegative(node.args[0]);
}

bool Elaborator::is_counted_vector(const Value& x) {
  return x.type.rank == 1 && pool().has_count(x.type.dims[0]);
}

// A vector whose length is a count, which may differ between ranks. What arrives has a count of its
// own: the same for all vectors that had one length before and went the same way.
Value Elaborator::counted_collective(BuiltinId id, const Value& x, ExprId to, Span span) {
  const bool gathers = id == BuiltinId::allgather;
  HostExprId most = without_counts(x.type.dims[0]);
  if (!most) {
    reporter_.report<DiagKind::NotKnownOnHost>(span, "the most that a rank sends");
    return error(span);
  }
  if (gathers) most = pool().mul(pool().world(), most);
  const std::string key = std::string(builtin_info(id).name) + "|" +
                          std::to_string(x.type.dims[0].index()) + "|" +
                          (to ? std::to_string(meaning_of(to)) : "");
  const auto [known, is_new] =
      counts_by_mask_.try_emplace(key, static_cast<std::uint32_t>(out_.info.counts.size()));
  const std::uint32_t index = known->second;
  if (is_new) out_.info.counts.push_back({"count" + std::to_string(index), most});
  std::vector<ExprId> operands{x.expr};
  if (to) operands.push_back(to);
  return builtin(id, vector(x.type.dtype, pool().count(index, most)), std::move(operands), span,
                 [&](Expr& e) {
                   e.index = index;
                   e.size = most;
                 });
}

// allgather, all_to_all, reduce_scatter: one row per rank.
Value Elaborator::per_rank_call(BuiltinId id, const CallArgs& args) {
  if (id == BuiltinId::allgather) {
    Value x = vector_operand(args.positional[0], args.name);
    if (x.is_error()) return x;
    if (is_counted_vector(x)) return counted_collective(id, x, ExprId(), args.span);
    Value rows =
        builtin(id, matrix(x.type.dtype, pool().world(), x.type.dims[0]), {x.expr}, args.span);
    // Places are checked where they are used: they have come over a network.
    rows.facts.unique_in_rows = x.facts.unique;
    return rows;
  }
  Value x = matrix_operand(args.positional[0], args.name);
  if (x.is_error()) return x;
  if (!sizes_.proves_equal(x.type.dims[0], pool().world())) {
    reporter_.report<DiagKind::Mismatch>(x.span, "one row per rank: [T; world, m]", describe(x));
    return error(args.span);
  }
  if (id == BuiltinId::all_to_all) return builtin(id, x.type, {x.expr}, args.span);
  const Value made = arithmetic(x);
  return builtin(id, vector(made.type.dtype, x.type.dims[1]), {made.expr}, args.span);
}

}  // namespace cinch::sema
