// Bodies: what they start from (gradient, states, fields), what they hand out (fields, counts,
// states, an array), and host expressions as values.
#include <utility>

#include "compiler/lower/body_lowering.h"
#include "runtime/core/check.h"
#include "runtime/core/params/param_value.h"

namespace cinch::lower {

BodyLowering::BodyLowering(const Input& input, ir::Program& out, ir::Function& function)
    : checked_(input.checked),
      sources_(input.sources),
      out_(out),
      function_(function),
      emit_(out, function),
      vars_(input.checked.vars.size()) {}

void BodyLowering::lower_encode(const sema::Body& body) {
  enter_gradient();
  enter_states();
  std::vector<ValueId> fields = lower_payload(body.root);
  const rt::WireInfo& wire = out_.info.wire;
  CINCH_CHECK(fields.size() == wire.fields.size(), "one value per wire field");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    // Of the field's type the sizes stand in the wire's counts; here the array's own stand.
    const Type& type = checked_.fields[i].type;
    const ValueId stored = emit_.convert(fields[i], type.dtype);
    const bool is_repeated = emit_.type(stored).rank == 0 && type.rank > 0;
    fields[i] = is_repeated ? emit_.spread(stored, type) : stored;
    emit_.name(stored, wire.fields[i].name);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const sema::CheckedField& field = checked_.fields[i];
    const bool is_packed = field.code != sema::FieldCode::Plain;
    function_.results.fields.push_back(is_packed ? pack_field(i, fields[i]) : fields[i]);
  }
  hand_out_counts(fields);
  hand_out_states();
  emit_.yield({});
}

void BodyLowering::lower_decode(const sema::Body& body) {
  std::vector<ValueId> fields;
  for (std::size_t i = 0; i < out_.info.wire.fields.size(); ++i) {
    fields.push_back(emit_.field(static_cast<std::uint32_t>(i)));
    emit_.name(fields.back(), out_.info.wire.fields[i].name);
    if (checked_.fields[i].code != sema::FieldCode::Plain) {
      fields.back() = unpack_field(i, fields.back());
    }
  }
  payloads_[body.payload] = std::move(fields);
  function_.results.output = emit_.fit(value(body.root).id, output_type());
  emit_.yield({});
}

void BodyLowering::lower_update(const sema::Body& body) {
  enter_gradient();
  enter_states();
  function_.results.output = emit_.fit(value(body.root).id, output_type());
  hand_out_states();
  emit_.yield({});
}

void BodyLowering::lower_state_init(ExprId init, const Type& type) {
  function_.results.output = emit_.fit(value(init).id, type);
  emit_.yield({});
}

void BodyLowering::enter_gradient() {
  gradient_ = emit_.gradient();
  emit_.name(gradient_, "g");
}

// What decode, finish and sync hand out: like the gradient.
Type BodyLowering::output_type() {
  HostExprPool& pool = emit_.exprs();
  return out_.info.is_matrix ? matrix_type(kF32, pool.rows(), pool.cols())
                             : vector_type(kF32, pool.n());
}

void BodyLowering::enter_states() {
  for (std::size_t i = 0; i < out_.info.states.size(); ++i) {
    states_.push_back(emit_.state(static_cast<std::uint32_t>(i)));
    emit_.name(states_.back(), out_.info.states[i].name);
  }
}

void BodyLowering::hand_out_states() {
  function_.results.states = states_;
}

// A wire count is the length of the arrays that are stored under it, or of what packing them made.
void BodyLowering::hand_out_counts(const std::vector<ValueId>& fields) {
  const rt::WireInfo& wire = out_.info.wire;
  for (std::uint32_t count = 0; count < wire.counts.size(); ++count) {
    ValueId found;
    for (std::size_t i = 0; i < wire.fields.size() && !found; ++i) {
      found = length_under(count, checked_.fields[i].type, fields[i]);
      if (found) break;
      found = length_under(count, wire.fields[i].type, function_.results.fields[i]);
    }
    CINCH_CHECK(found.is_valid(), "no field has the wire count " + wire.counts[count].name);
    function_.results.counts.push_back(found);
  }
}

// The length of the dimension that a field's type says is `count`; invalid where none is.
ValueId BodyLowering::length_under(std::uint32_t count, const Type& type, ValueId value) {
  for (int d = 0; d < type.rank; ++d) {
    const HostExprNode& node = emit_.exprs().node(type.dims[d]);
    if (node.op != HostOp::Count || node.payload != count) continue;
    return host_scalar(emit_.type(value).dims[d], kU32);
  }
  return {};
}

std::vector<ValueId> BodyLowering::lower_payload(ExprId id) {
  const Expr& e = expr(id);
  emit_.set_span(e.span);
  if (e.kind == ExprKind::Var) return payloads_.at(e.var);
  if (e.kind == ExprKind::Block) {
    for (StmtId stmt : e.stmts) lower_statement(checked_.stmts[stmt.index()]);
    return lower_payload(e.args.at(0));
  }
  CINCH_CHECK(e.kind == ExprKind::WireLiteral, "encode must end in a wire literal");
  std::vector<ValueId> fields;
  fields.reserve(e.args.size());
  for (ExprId arg : e.args) fields.push_back(uniform(arg));
  return fields;
}

ValueId BodyLowering::host_scalar(HostExprId size, DType dtype) {
  return emit_.size_scalar(size, dtype, [this](std::uint32_t count) { return count_value(count); });
}

ValueId BodyLowering::count_value(std::uint32_t count) {
  if (const auto found = counts_.find(count); found != counts_.end()) return found->second;
  return emit_.count_value(count);
}

void BodyLowering::limitation(const std::string& what) const {
  CINCH_LIMITATION(located(
      emit_.span(),
      what + " inside a lambda over elements, on values that differ from element to element"));
}

}  // namespace cinch::lower
