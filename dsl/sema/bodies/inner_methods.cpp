// Calls of a wrapped compressor's methods: their arguments and results.
#include "dsl/sema/bodies/methods.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

using dsl::DiagKind;

Value Methods::inner_argument(const Value& value, Instance& inner, Span span) {
  if (value.is_error()) return value;
  const Type wanted = gradient_type(inner);
  const bool is_array = (value.is_typed() || value.kind == ValueKind::Table) &&
                        types_.value_type(value).rank > 0 && types_.can_coerce(value, kF32);
  if (is_array) {
    Value made = conversions_.coerce(value, kF32);
    if (made.is_error()) return made;
    if (prover_.proves_equal(sizes_.num_elems(made.type), sizes_.num_elems(wanted))) {
      return all_.shapes.reshaped(made, wanted, span);
    }
  }
  auto& diag = reporter_.report<DiagKind::InnerShape>(value.span, sizes_.type_text(wanted),
                                                      text_.describe(value));
  text_.note_sizes(diag, {&value});
  return error_value(span);
}

// All ranks compute the same: draws do not depend on the worker, and states that one rank's encode
// changes are not visible.
Value Methods::encode_in_finish(Instance& inner, const Value& g, Span span) {
  if (const Instance* stateful = rank_states(inner)) {
    reporter_.report<DiagKind::NotInFinish>(
        span, "the encode of `" + stateful->name() + "`, whose states are those of one rank");
    return error_value(span);
  }
  const ModeScope scope(mode_);
  mode_.encodes_in_finish = true;
  return encode_value(inner, g, span);
}

// The compressor, or one that it wraps, that has states and runs its encode in the program's
// encode.
const Instance* Methods::rank_states(const Instance& instance) const {
  if (instance.encodes_on_ranks && instance.has_states) return &instance;
  for (const auto& [slot, inner] : instance.inner) {
    if (const Instance* found = rank_states(*inner)) return found;
  }
  return nullptr;
}

Value Methods::outer_result(Value value, const Instance& inner, Span span) {
  if (value.is_error() || env_->instance == nullptr) return value;
  if (inner.has_set_elements) {
    value.span = span;
    return value;
  }
  return all_.shapes.reshaped(value, gradient_type(*env_->instance), value.span);
}

}  // namespace cinch::sema
