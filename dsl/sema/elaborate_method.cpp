// Bodies: encode, decode, finish and sync of the outermost compressor, and those of wrapped ones
// inlined where `inner.encode(x)` and its like are called.
#include <algorithm>

#include "dsl/sema/elaborator.h"
#include "dsl/sema/rank_agreement.h"

namespace cinch::sema {

using dsl::DiagKind;

Environment Elaborator::environment_of(Instance& instance) {
  Environment env{&instance.unit(), &instance, {Scope{}}};
  env.draw_instance = &instance;
  return env;
}

Type Elaborator::gradient_type(const Instance& instance) {
  if (instance.rows) return matrix(kF32, instance.rows, instance.elements);
  return instance.is_matrix ? matrix(kF32, pool().rows(), pool().cols())
                            : vector(kF32, instance.elements);
}

// The input of the program as the outermost compressor takes it.
Value Elaborator::gradient_value(Instance& instance, Span span) {
  Expr read{ExprKind::Gradient, vector(kF32, pool().n()), span};
  if (out_.info.is_matrix) read.type = matrix(kF32, pool().rows(), pool().cols());
  return reshaped(typed(std::move(read)), gradient_type(instance), span);
}

// What decode, finish and sync give: as the gradient.
Value Elaborator::gradient_result(const Value& value, Instance& instance, std::string_view what) {
  if (value.is_error()) return value;
  const Type wanted = gradient_type(instance);
  const bool is_value = value.is_typed() || value.kind == ValueKind::Table;
  if (is_value && same_shape(value_type(value), wanted)) return coerce(value, kF32);
  auto& diag = reporter_.report<DiagKind::BadResult>(value.span, std::string(what),
                                                     type_text(wanted), describe(value));
  note_sizes(diag, {&value});
  return error(value.span);
}

// In a matrix program all bodies take and give matrices.
Value Elaborator::program_result(const Value& value) {
  if (value.is_error() || !out_.info.is_matrix) return value;
  return reshaped(value, matrix(kF32, pool().rows(), pool().cols()), value.span);
}

const ast::Param* Elaborator::method_param(Instance& instance, ast::MethodKind kind) {
  const ast::Method* method = instance.method(kind);
  if (method == nullptr || method->params.count != 1) return nullptr;
  const ast::Module& tree = instance.tree();
  return &tree[tree.params.pool[method->params.first]];
}

// A method's body with its parameter bound; `finish` turns its value into the result.
Value Elaborator::method_block(Instance& instance, ast::MethodKind kind, const Value& arg,
                               Span span, const std::function<Value(Value)>& finish) {
  const ast::Param* param = method_param(instance, kind);
  if (param == nullptr) return error(span);
  std::optional<Use> use;
  if (depth_ > 0) use.emplace(*this, span);
  ++depth_;
  Environment env = environment_of(instance);
  Value result;
  with_environment(env, [&] {
    result = in_block(instance.tree()[instance.method(kind)->body].span, [&] {
      Symbol symbol;
      symbol.value = arg.is_typed() ? shared(arg, param->name.text) : arg;
      symbol.span = param->name.span;
      symbol.noun = "an argument";
      declare(param->name, symbol);
      if (arg.kind == ValueKind::Payload) {
        const Var& var = out_.vars[arg.var.index()];
        for (std::size_t i = 0; i < instance.counts.size(); ++i) {
          const std::size_t at = arg.first_count + i;
          if (at >= var.count_sizes.size()) break;
          Symbol count;
          count.value = host(var.count_sizes[at], instance.counts[i].span);
          count.span = instance.counts[i].span;
          count.noun = "a count";
          env_->scopes.back().try_emplace(instance.counts[i].name, count);
        }
      }
      Value value = block(instance.method(kind)->body);
      if (value.kind == ValueKind::Unit) {
        reporter_.report<DiagKind::NoValue>(instance.method_spans[static_cast<std::size_t>(kind)]);
        value = error(span);
      }
      return value.is_error() ? value : finish(value);
    });
  });
  --depth_;
  return result;
}

Value Elaborator::encode_value(Instance& instance, const Value& g, Span span) {
  instance.encodes_on_ranks |= body_ == BodyKind::Encode;
  if (instance.method(ast::MethodKind::Encode) == nullptr) {
    Instance* inner = instance.only_inner();
    if (inner == nullptr) return error(span);
    return encode_value(*inner, inner_argument(g, *inner, span), span);
  }
  return method_block(instance, ast::MethodKind::Encode, g, span,
                      [&](const Value& value) { return as_wire(value, instance, value.span); });
}

Value Elaborator::decode_value(Instance& instance, const Value& payload, Span span) {
  if (instance.method(ast::MethodKind::Decode) == nullptr) {
    Instance* inner = instance.only_inner();
    if (inner == nullptr) return error(span);
    Value passed = payload;
    passed.owner = inner;
    return reshaped(decode_value(*inner, passed, span), gradient_type(instance), span);
  }
  // What a decode may see does not change with where it is inlined.
  const BodyKind outer = std::exchange(body_, BodyKind::Decode);
  const bool draws = out_.info.decode_draws;
  const Value value =
      method_block(instance, ast::MethodKind::Decode, payload, span,
                   [&](const Value& v) { return gradient_result(v, instance, "decode"); });
  body_ = outer;
  if (outer != BodyKind::Decode) out_.info.decode_draws = draws;
  return value;
}

bool Elaborator::has_finish(const Instance& instance) const {
  if (instance.method(ast::MethodKind::Finish) != nullptr) return true;
  const Instance* inner = instance.only_inner();
  return inner != nullptr && has_finish(*inner);
}

Value Elaborator::finish_value(Instance& instance, const Value& sum, Span span) {
  if (instance.method(ast::MethodKind::Finish) != nullptr) {
    return method_block(instance, ast::MethodKind::Finish, sum, span,
                        [&](const Value& v) { return gradient_result(v, instance, "finish"); });
  }
  if (has_finish(instance)) {
    Instance* inner = instance.only_inner();
    const Value made = finish_value(*inner, inner_argument(sum, *inner, span), span);
    return reshaped(made, gradient_type(instance), span);
  }
  return scalar_op(ScalarOp::div, {sum, host(pool().world(), span)}, span, "/");
}

Body Elaborator::body_of(BodyKind kind, Instance& instance, const std::function<Value()>& make) {
  counts_by_mask_.clear();
  ++epoch_;
  body_ = kind;
  for (auto& each : instances_) each->own_draws = 0;
  Environment env = environment_of(instance);
  std::vector<StmtId> stmts;
  stmts_ = &stmts;
  Value value;
  with_environment(env, [&] { value = make(); });
  stmts_ = nullptr;
  Expr root{ExprKind::Block, value.type, instance.spec->node->name.span};
  root.stmts = std::move(stmts);
  root.args = {value.expr};
  Body body;
  body.root = typed(std::move(root)).expr;
  return body;
}

void Elaborator::elaborate_encode(Instance& instance) {
  const Span span = instance.gradient_span;
  Value wire;
  out_.encode = body_of(BodyKind::Encode, instance, [&] {
    check_set_values();
    check_wire_sizes(instance);
    wire = encode_value(instance, gradient_value(instance, span), span);
    return wire;
  });
  if (!wire.is_error()) {
    note_sent_counts(instance, wire);
    return note_field_facts(wire);
  }
  // Nothing is known of the fields then; decode is read as if all were well.
  field_facts_.assign(instance.fields.size(), IndexFacts{true, true, pool().n()});
}

void Elaborator::elaborate_decode(Instance& instance) {
  const ast::Param* param = method_param(instance, ast::MethodKind::Decode);
  Var var;
  var.name = param == nullptr ? "w" : param->name.text;
  var.is_payload = true;
  var.span = param == nullptr ? instance.spec->node->name.span : param->name.span;
  for (const CheckedField& field : out_.fields) var.field_types.push_back(field.type);
  for (std::uint32_t i = 0; i < out_.info.wire.counts.size(); ++i) {
    var.field_counts.push_back(i);
    var.count_sizes.push_back(pool().count(i, out_.info.wire.counts[i].bound));
  }
  out_.vars.push_back(std::move(var));
  Value payload;
  payload.kind = ValueKind::Payload;
  payload.var = VarId(out_.vars.size() - 1);
  payload.owner = &instance;
  payload.span = out_.vars.back().span;
  payload_facts_[payload.var.index()] = field_facts_;
  if (sent_literal_) payload_literals_[payload.var.index()] = sent_literal_;
  in_decode_body_ = true;
  Body body = body_of(BodyKind::Decode, instance, [&] {
    check_set_values();
    check_wire_sizes(instance);
    check_twin_counts(payload.span);
    return program_result(decode_value(instance, payload, payload.span));
  });
  in_decode_body_ = false;
  body.payload = payload.var;
  out_.decode = body;
}

// Every rank must reach every collective, with arrays of one size.
void Elaborator::check_collectives(const Body& sync) {
  if (reporter_.num_errors() != 0) return;  // the tree is whole only without mistakes
  for (const Disagreement& found : find_disagreements(out_, sync)) {
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
    }
  }
}

void Elaborator::elaborate_bodies(Instance& instance) {
  const Span span = instance.gradient_span;
  if (instance.method(ast::MethodKind::Sync) != nullptr) {
    out_.info.has_sync = true;
    const Body sync = body_of(BodyKind::Sync, instance, [&] {
      return program_result(
          method_block(instance, ast::MethodKind::Sync, gradient_value(instance, span), span,
                       [&](const Value& v) { return gradient_result(v, instance, "sync"); }));
    });
    check_collectives(sync);
    out_.sync = sync;
    return;
  }
  publish_wire(instance);
  elaborate_encode(instance);
  elaborate_decode(instance);
  out_.info.has_finish = has_finish(instance);
  if (!out_.info.has_finish) return;
  out_.finish = body_of(BodyKind::Finish, instance, [&] {
    check_set_values();
    return program_result(finish_value(instance, gradient_value(instance, span), span));
  });
}

}  // namespace cinch::sema
