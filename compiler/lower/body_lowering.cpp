// Bodies of body_lowering.h.
#include "compiler/lower/body_lowering.h"

#include <utility>

#include "compiler/lower/parts/expressions.h"
#include "compiler/lower/parts/packing.h"
#include "runtime/core/check.h"
#include "runtime/core/params.h"

namespace cinch::lower {

void BodyLowering::lower_encode(const sema::Body& body) {
  enter_gradient();
  enter_states();
  std::vector<ValueId> fields = StatementLowering(cx()).lower_payload(body.root);
  const rt::WireInfo& wire = cx().out.info.wire;
  CINCH_CHECK(fields.size() == wire.fields.size(), "one value per wire field");
  for (std::size_t i = 0; i < fields.size(); ++i) {
    // Of the field's type the sizes stand in the wire's counts; here the array's own stand.
    const Type& type = cx().checked.fields[i].type;
    const ValueId stored = emit().convert(fields[i], type.dtype);
    const bool is_repeated = emit().type(stored).rank == 0 && type.rank > 0;
    fields[i] = is_repeated ? emit().spread(stored, type) : stored;
    emit().name(stored, wire.fields[i].name);
  }
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const sema::CheckedField& field = cx().checked.fields[i];
    const bool is_packed = field.code != sema::FieldCode::Plain;
    cx().function.results.fields.push_back(
        is_packed ? PackingLowering(cx()).pack_field(i, fields[i]) : fields[i]);
  }
  hand_out_counts(fields);
  hand_out_states();
  emit().yield({});
}

void BodyLowering::lower_decode(const sema::Body& body) {
  std::vector<ValueId> fields;
  for (std::size_t i = 0; i < cx().out.info.wire.fields.size(); ++i) {
    fields.push_back(emit().field(static_cast<std::uint32_t>(i)));
    emit().name(fields.back(), cx().out.info.wire.fields[i].name);
    if (cx().checked.fields[i].code != sema::FieldCode::Plain) {
      fields.back() = PackingLowering(cx()).unpack_field(i, fields.back());
    }
  }
  cx().payloads[body.payload] = std::move(fields);
  cx().function.results.output = emit().fit(value(body.root).id, output_type());
  emit().yield({});
}

void BodyLowering::lower_update(const sema::Body& body) {
  enter_gradient();
  enter_states();
  cx().function.results.output = emit().fit(value(body.root).id, output_type());
  hand_out_states();
  emit().yield({});
}

void BodyLowering::lower_state_init(ExprId init, const Type& type) {
  cx().function.results.output = emit().fit(value(init).id, type);
  emit().yield({});
}

void BodyLowering::enter_gradient() {
  cx().gradient = emit().gradient();
  emit().name(cx().gradient, "g");
}

// The result of decode, finish and sync has the gradient's type.
Type BodyLowering::output_type() {
  HostExprPool& pool = emit().exprs();
  return cx().out.info.is_matrix ? matrix_type(kF32, pool.rows(), pool.cols())
                                 : vector_type(kF32, pool.n());
}

void BodyLowering::enter_states() {
  for (std::size_t i = 0; i < cx().out.info.states.size(); ++i) {
    cx().states.push_back(emit().state(static_cast<std::uint32_t>(i)));
    emit().name(cx().states.back(), cx().out.info.states[i].name);
  }
}

void BodyLowering::hand_out_states() {
  cx().function.results.states = cx().states;
}

// A wire count is the length of the arrays that are stored under it, or of the words from packing
// them.
void BodyLowering::hand_out_counts(const std::vector<ValueId>& fields) {
  const rt::WireInfo& wire = cx().out.info.wire;
  for (std::uint32_t count = 0; count < wire.counts.size(); ++count) {
    ValueId found;
    for (std::size_t i = 0; i < wire.fields.size() && !found; ++i) {
      found = length_under(count, cx().checked.fields[i].type, fields[i]);
      if (found) break;
      found = length_under(count, wire.fields[i].type, cx().function.results.fields[i]);
    }
    CINCH_CHECK(found.is_valid(), "no field has the wire count " + wire.counts[count].name);
    cx().function.results.counts.push_back(found);
  }
}

// The length of the dimension whose size in a field's type is `count`; invalid if there is none.
ValueId BodyLowering::length_under(std::uint32_t count, const Type& type, ValueId value) {
  for (int d = 0; d < type.rank; ++d) {
    const HostExprNode& node = emit().exprs().node(type.dims[d]);
    if (node.op != HostOp::Count || node.payload != count) continue;
    return host_scalar(emit().type(value).dims[d], kU32);
  }
  return {};
}

}  // namespace cinch::lower
