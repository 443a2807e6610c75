// Inlines methods of compressors, and elaborates the bodies of the program.
#include <algorithm>
#include <utility>

#include "dsl/sema/bodies/methods.h"
#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {
using dsl::DiagKind;

Type Bodies::gradient_type(const Instance& instance) {
  if (instance.rows) return matrix_type(kF32, instance.rows, instance.elements);
  return instance.is_matrix ? matrix_type(kF32, pool().rows(), pool().cols())
                            : vector_type(kF32, instance.elements);
}

// The program's input in the shape that the outermost compressor takes.
Value Bodies::gradient_value(Instance& instance, Span span) {
  Expr read{ExprKind::Gradient, vector_type(kF32, pool().n()), span};
  if (out_.info.is_matrix) read.type = matrix_type(kF32, pool().rows(), pool().cols());
  return all_.operators.reshaped(build_.typed(std::move(read)), gradient_type(instance), span);
}

// Reshapes a result of decode, finish or sync to the gradient.
Value Bodies::gradient_result(const Value& value, Instance& instance, std::string_view what) {
  if (value.is_error()) return value;
  const Type wanted = gradient_type(instance);
  const bool is_value = value.is_typed() || value.kind == ValueKind::Table;
  if (is_value && sizes_.same_shape(types_.value_type(value), wanted))
    return conversions_.coerce(value, kF32);
  auto& diag = reporter_.report<DiagKind::BadResult>(
      value.span, std::string(what), sizes_.type_text(wanted), text_.describe(value));
  text_.note_sizes(diag, {&value});
  return error_value(value.span);
}

// In a matrix program all bodies take and return matrices.
Value Bodies::program_result(const Value& value) {
  if (value.is_error() || !out_.info.is_matrix) return value;
  return all_.operators.reshaped(value, matrix_type(kF32, pool().rows(), pool().cols()),
                                 value.span);
}

const ast::Param* Bodies::method_param(Instance& instance, ast::MethodKind kind) {
  const ast::Method* method = instance.method(kind);
  if (method == nullptr || method->params.count != 1) return nullptr;
  const ast::Module& tree = instance.tree();
  return &tree[tree.params.pool[method->params.first]];
}

// Elaborates a method's body with its parameter bound. `finish` turns its value into the result.
Value Bodies::method_block(Instance& instance, ast::MethodKind kind, const Value& arg, Span span,
                           const std::function<Value(Value)>& finish) {
  const ast::Param* param = method_param(instance, kind);
  if (param == nullptr) return error_value(span);
  std::optional<GrowthLimits::Use> use;
  if (depth_ > 0) use.emplace(all_.growth, span);
  ++depth_;
  Environment env = all_.items.environment_of(instance);
  Value result;
  all_.exprs.with_environment(env, [&] {
    result = build_.in_block(instance.tree()[instance.method(kind)->body].span, [&] {
      all_.exprs.declare(
          param->name, Symbol{.value = arg.is_typed() ? build_.shared(arg, param->name.text) : arg,
                              .span = param->name.span,
                              .noun = "an argument"});
      if (arg.kind == ValueKind::Payload) {
        const Var& var = out_.vars[arg.var.index()];
        for (std::size_t i = 0; i < instance.counts.size(); ++i) {
          const std::size_t at = arg.first_count + i;
          if (at >= var.count_sizes.size()) break;
          Symbol count{.value = host_value(var.count_sizes[at], instance.counts[i].span),
                       .span = instance.counts[i].span,
                       .noun = "a count"};
          env_->scopes.back().try_emplace(instance.counts[i].name, count);
        }
        if (instance.has_worker_field) {
          const auto last = static_cast<std::uint32_t>(instance.fields.size() - 1);
          const Span named = instance.fields.back().span;
          env_->scopes.back().try_emplace(
              std::string(kWorker),
              Symbol{
                  .value = payload_field_at(arg, last, named), .span = named, .noun = "a field"});
        }
      }
      Value value = all_.exprs.block(instance.method(kind)->body);
      if (value.kind == ValueKind::Unit) {
        reporter_.report<DiagKind::NoValue>(instance.method_spans[static_cast<std::size_t>(kind)]);
        value = error_value(span);
      }
      return value.is_error() ? value : finish(value);
    });
  });
  --depth_;
  return result;
}

Value Bodies::encode_value(Instance& instance, const Value& g, Span span) {
  instance.encodes_on_ranks |= mode_.body == BodyKind::Encode;
  if (instance.method(ast::MethodKind::Encode) == nullptr) {
    Instance* inner = instance.only_inner();
    if (inner == nullptr) return error_value(span);
    return encode_value(*inner, inner_argument(g, *inner, span), span);
  }
  return method_block(instance, ast::MethodKind::Encode, g, span,
                      [&](const Value& value) { return as_wire(value, instance, value.span); });
}

Value Bodies::decode_value(Instance& instance, const Value& payload, Span span) {
  if (instance.method(ast::MethodKind::Decode) == nullptr) {
    Instance* inner = instance.only_inner();
    if (inner == nullptr) return error_value(span);
    Value passed = payload;
    passed.owner = inner;
    return all_.operators.reshaped(decode_value(*inner, passed, span), gradient_type(instance),
                                   span);
  }
  // What a decode sees does not depend on where it is inlined.
  const ModeScope scope(mode_);
  mode_.body = BodyKind::Decode;
  const bool draws = out_.info.decode_draws;
  const Value value =
      method_block(instance, ast::MethodKind::Decode, payload, span,
                   [&](const Value& v) { return gradient_result(v, instance, "decode"); });
  if (scope.outer().body != BodyKind::Decode) out_.info.decode_draws = draws;
  return value;
}

bool Bodies::has_finish(const Instance& instance) const {
  if (instance.method(ast::MethodKind::Finish) != nullptr) return true;
  const Instance* inner = instance.only_inner();
  return inner != nullptr && has_finish(*inner);
}

Value Bodies::finish_value(Instance& instance, const Value& sum, Span span) {
  if (instance.method(ast::MethodKind::Finish) != nullptr) {
    return method_block(instance, ast::MethodKind::Finish, sum, span,
                        [&](const Value& v) { return gradient_result(v, instance, "finish"); });
  }
  if (has_finish(instance)) {
    Instance* inner = instance.only_inner();
    const Value made = finish_value(*inner, inner_argument(sum, *inner, span), span);
    return all_.operators.reshaped(made, gradient_type(instance), span);
  }
  return all_.operators.scalar_op(ScalarOp::div, {sum, host_value(pool().world(), span)}, span,
                                  "/");
}

Body Bodies::body_of(BodyKind kind, Instance& instance, const std::function<Value()>& make) {
  all_.counts.begin_body();
  all_.numbering.forget_masks();
  const ModeScope scope(mode_);
  mode_.body = kind;
  all_.items.restart_draws();
  Environment env = all_.items.environment_of(instance);
  std::vector<StmtId> stmts;
  build_.collect_into(&stmts);
  Value value;
  all_.exprs.with_environment(env, [&] { value = make(); });
  build_.collect_into(nullptr);
  Expr root{ExprKind::Block, value.type, instance.spec->node->name.span};
  root.stmts = std::move(stmts);
  root.args = {value.expr};
  return {.root = build_.typed(std::move(root)).expr};
}

void Bodies::elaborate_encode(Instance& instance) {
  const Span span = instance.gradient_span;
  Value wire;
  out_.encode = body_of(BodyKind::Encode, instance, [&] {
    all_.items.check_set_values();
    all_.items.check_wire_sizes(instance);
    wire = encode_value(instance, gradient_value(instance, span), span);
    return wire;
  });
  if (!wire.is_error()) {
    all_.counts.note_sent_counts(instance, wire);
    return note_field_facts(wire);
  }
  assume_field_facts(instance);
}

void Bodies::elaborate_decode(Instance& instance) {
  const Value payload = program_payload(instance);
  const ModeScope scope(mode_);
  mode_.in_decode_body = true;
  Body body = body_of(BodyKind::Decode, instance, [&] {
    all_.items.check_set_values();
    all_.items.check_wire_sizes(instance);
    all_.counts.check_twin_counts(payload.span);
    return program_result(decode_value(instance, payload, payload.span));
  });
  body.payload = payload.var;
  out_.decode = body;
}

// Every rank must reach every collective with arrays of the same size, and end with the same
// update.
void Bodies::check_agreement(const Instance& instance,
                             const std::function<std::vector<Disagreement>()>& find) {
  out_.info.is_local = std::ranges::any_of(
      instance.claims, [](const Claim& claim) { return claim.kind == ClaimKind::Local; });
  for (const Disagreement& found : find()) {
    const std::string name(builtin_info(found.operation).name);
    switch (found.kind) {
      case Disagreement::Kind::Way:
        reporter_.report<DiagKind::RanksDiffer>(found.collective, name)
            .note(found.cause, "this may differ from rank to rank");
        break;
      case Disagreement::Kind::Size:
        reporter_.report<DiagKind::RankSizesDiffer>(found.collective, name)
            .note(found.cause, "this array");
        break;
      case Disagreement::Kind::Receiver:
        reporter_.report<DiagKind::OneReceiver>(found.cause);
        break;
      case Disagreement::Kind::Root:
        reporter_.report<DiagKind::RootDiffers>(found.cause);
        break;
      case Disagreement::Kind::Update:
        if (!out_.info.is_local) reporter_.report<DiagKind::UpdateDiffers>(found.cause);
        break;
    }
  }
}

void Bodies::elaborate_bodies(Instance& instance) {
  // The tree is complete only without mistakes.
  const auto is_complete = [this, errors = reporter_.num_errors()] {
    return reporter_.num_errors() == errors;
  };
  const Span span = instance.gradient_span;
  if (instance.method(ast::MethodKind::Sync) != nullptr) {
    out_.info.has_sync = true;
    const Body sync = body_of(BodyKind::Sync, instance, [&] {
      return program_result(
          method_block(instance, ast::MethodKind::Sync, gradient_value(instance, span), span,
                       [&](const Value& v) { return gradient_result(v, instance, "sync"); }));
    });
    if (is_complete()) check_agreement(instance, [&] { return find_disagreements(out_, sync); });
    out_.sync = sync;
    return;
  }
  all_.items.publish_wire(instance);
  elaborate_encode(instance);
  elaborate_decode(instance);
  out_.info.has_finish = has_finish(instance);
  if (!out_.info.has_finish) return;
  out_.finish = body_of(BodyKind::Finish, instance, [&] {
    all_.items.check_set_values();
    return program_result(finish_value(instance, gradient_value(instance, span), span));
  });
  if (!is_complete()) return;
  check_agreement(instance, [&] { return find_disagreements(out_, *out_.encode, *out_.finish); });
}

// Calls of a wrapped compressor's methods: their arguments and results.

Value Bodies::inner_argument(const Value& value, Instance& inner, Span span) {
  if (value.is_error()) return value;
  const Type wanted = gradient_type(inner);
  const bool is_array = (value.is_typed() || value.kind == ValueKind::Table) &&
                        types_.value_type(value).rank > 0 && types_.can_coerce(value, kF32);
  if (is_array) {
    Value made = FOUND(conversions_.coerce(value, kF32));
    if (prover_.proves_equal(sizes_.num_elems(made.type), sizes_.num_elems(wanted))) {
      return all_.operators.reshaped(made, wanted, span);
    }
  }
  auto& diag = reporter_.report<DiagKind::InnerShape>(value.span, sizes_.type_text(wanted),
                                                      text_.describe(value));
  text_.note_sizes(diag, {&value});
  return error_value(span);
}

// All ranks compute the same: draws do not depend on the worker, and states that one rank's encode
// changes are not visible.
Value Bodies::encode_in_finish(Instance& inner, const Value& g, Span span) {
  if (const Instance* stateful = rank_states(inner))
    return mistake<DiagKind::NotInFinish>(
        span, "the encode of `" + stateful->name() + "`, whose states are those of one rank");
  const ModeScope scope(mode_);
  mode_.encodes_in_finish = true;
  return encode_value(inner, g, span);
}

// The compressor, or one that it wraps, that has states and runs its encode in the program's
// encode.
const Instance* Bodies::rank_states(const Instance& instance) const {
  if (instance.encodes_on_ranks && instance.has_states) return &instance;
  for (const auto& [slot, inner] : instance.inner) {
    if (const Instance* found = rank_states(*inner)) return found;
  }
  return nullptr;
}

Value Bodies::outer_result(Value value, const Instance& inner, Span span) {
  if (value.is_error() || env_->instance == nullptr) return value;
  if (inner.has_set_elements) {
    value.span = span;
    return value;
  }
  return all_.operators.reshaped(value, gradient_type(*env_->instance), value.span);
}

}  // namespace cinch::sema
