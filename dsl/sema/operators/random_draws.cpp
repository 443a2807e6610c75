// The numbers of draws, random arrays and stochastic rounding.
#include "dsl/sema/operators/operators.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

namespace {

// Numbers of call sites within one compressor. encode and decode count from 0, the others from
// numbers that those do not reach.
constexpr std::uint32_t kFinishSites = 0x8000, kInitSites = 0xc000, kSitesOfOne = 0x2000;
constexpr std::uint32_t kStreams = 0x80000000u;

std::uint32_t first_site(BodyKind body) {
  if (body == BodyKind::Finish) return kFinishSites;
  return body == BodyKind::StateInit ? kInitSites : 0;
}

}  // namespace

void RandomDraws::number_draw(Expr& made, const CallArgs& args) {
  // An encode in finish draws the same numbers on all ranks. Draws that it shares anyway keep the
  // numbers with which its decode draws the same.
  const bool is_written_shared = all_.arguments.flag(args, "shared");
  const bool is_owners = mode_.encodes_in_finish && !is_written_shared;
  made.shared = is_written_shared || is_owners;
  if (mode_.body == BodyKind::Decode && !made.shared) {
    reporter_.report<DiagKind::DrawNotShared>(args.span);
  }
  if (mode_.body == BodyKind::Decode) out_.info.decode_draws = true;
  const auto stream = args.named.find("stream");
  if (stream != args.named.end()) {
    const auto number = all_.constants.constant_int(stream->second->value);
    if (number && (*number < 0 || *number >= std::int64_t{kStreams})) {
      reporter_.report<DiagKind::OutOfRange>(stream->second->span,
                                             "stream " + std::to_string(*number), "0 to 2^31 - 1");
    }
    made.stream = kStreams + static_cast<std::uint32_t>(number.value_or(0));
    return;
  }
  Instance* const instance = env_->draw_instance;
  std::uint32_t unowned = 0;
  const bool counts_shared = is_written_shared && mode_.body != BodyKind::StateInit;
  std::uint32_t& next = counts_shared         ? env_->shared_draws
                        : instance != nullptr ? instance->own_draws
                                              : unowned;
  const bool is_early = mode_.body == BodyKind::Encode || mode_.body == BodyKind::Decode ||
                        mode_.body == BodyKind::Sync ||
                        (mode_.encodes_in_finish && is_written_shared);
  const std::uint32_t limit = is_early ? kFinishSites : kSitesOfOne;
  if (next >= limit) {
    reporter_.report<DiagKind::TooMany>(args.span, std::to_string(limit),
                                        "draws in one compressor");
  }
  const std::uint32_t number = instance == nullptr ? 0 : instance->number;
  const std::uint32_t first = is_early ? 0 : is_owners ? kOwnerSites : first_site(mode_.body);
  made.site = (number << 16) + first + next++;
  if (counts_shared) made.index = env_->method;
}

Value RandomDraws::random_call(BuiltinId id, const CallArgs& args) {
  const bool is_index = id == BuiltinId::random_index;
  const DType dtype = is_index || id == BuiltinId::random_bits ? kU32 : kF32;
  Type type;
  HostExprId size;
  if (!args.positional.empty()) {
    const auto given = all_.arguments.size_arg(args.positional[0], args.name);
    if (!given) return error_value(args.span);
    size = *given;
    type = vector_type(dtype, size);
    if (is_by_rows()) {
      type = matrix_type(dtype, env_->instance->rows, size);
      size = sizes_.num_elems(type);
    }
  } else if (mode_.wanted != nullptr && mode_.wanted->rank > 0) {
    type = *mode_.wanted;
    type.dtype = dtype;
    size = sizes_.num_elems(type);
  } else {
    reporter_.report<DiagKind::MissingArgument>(args.span, args.name, "a size");
    return error_value(args.span);
  }
  IndexFacts facts;
  if (is_index) {
    const auto below = all_.arguments.named_size(args, "size");
    if (!below) return error_value(args.span);
    build_.require_at_most(size, *below, "`random_index` draws at most " + sizes_.size_text(*below),
                           args.span);
    size = *below;
    facts = {true, false, *below};
  }
  if (mode_.lambda_depth > 0 && !sizes_.all_constant_sizes(type)) {
    reporter_.report<DiagKind::ArrayInLambda>(args.span, sizes_.type_text(type));
    return error_value(args.span);
  }
  Value result = build_.builtin(id, type, {}, args.span, [&](Expr& e) {
    e.size = size;
    number_draw(e, args);
  });
  result.facts = facts;
  return result;
}

Value RandomDraws::stochastic_round_call(const CallArgs& args) {
  Value value = all_.exprs.expr(args.positional[0]);
  if (value.is_error()) return value;
  const Value x = conversions_.as_float(value, args.name);
  if (x.is_error() || all_.arguments.check_lambda_array(x).is_error())
    return error_value(args.span);
  return build_.builtin(BuiltinId::stochastic_round, x.type, {x.expr}, args.span,
                        [&](Expr& e) { number_draw(e, args); });
}

}  // namespace cinch::sema
