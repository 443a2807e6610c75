// The verifier's rules for reductions, scans, local arrays and sorts.
#include "codegen/kir/verifier_instr.h"

namespace cinch::kir {

void InstrVerifier::reduce(const Instr& instr) {
  const Combiner* c = combiner(instr);
  if (!c) return;
  const bool has_flag = !c->op;
  const std::size_t n = instr.results.size() - (has_flag ? 1 : 0);
  if (!need(instr.results.size() > (has_flag ? 1u : 0u), "no results")) return;
  if (!counts(instr, n, n + 1, instr.results.size())) return;
  std::vector<ComputeType> types;
  for (std::size_t i = 0; i < n; ++i) {
    if (!operand(instr, i, kAnySet)) return;
    types.push_back(type(instr.operands[i]));
    result(instr, i, types.back());
  }
  tuple(*c, types);
  if (has_flag) result(instr, n, ComputeType::Bool);
  if (instr.operands.size() == n + 1) operand(instr, n, kBoolSet);
}

void InstrVerifier::running_sum(const Instr& instr) {
  if (!counts(instr, 1, 1, 2) || !operand(instr, 0, kIntSet | kBoolSet)) return;
  const ComputeType of = type(instr.operands[0]);
  for (std::size_t i = 0; i < 2; ++i) {
    if (of != ComputeType::Bool) result(instr, i, of);
    need(kIntSet & compute_type_bit(type(instr.results[i])), "counts are integers");
  }
}

void InstrVerifier::look_back(const Instr& instr) {
  if (!counts(instr, 1, 1, 1) || !buffers(instr, 1)) return;
  operand(instr, 0, kTotalSet);
  result(instr, 0, type(instr.operands[0]));
  const rt::BufferInfo& buffer = program_.buffers[instr.buffers[0]];
  need(kernel_.info.is_ordered, "look_back in a kernel that is not ordered");
  need(buffer.dtype == kU64 && buffer.role == rt::BufferRole::Workspace,
       "the look-back state is not a u64 workspace");
}

void InstrVerifier::local(const Instr& instr) {
  if (!need(instr.index < kernel_.locals.size(), "no such local array")) return;
  const ComputeType element = kernel_.locals[instr.index].type;
  switch (instr.kind) {
    case InstrKind::local_store:
      if (counts(instr, 1, 1, 0)) operand(instr, 0, compute_type_bit(element));
      return;
    case InstrKind::local_previous:
      if (!counts(instr, 1, 1, 1)) return;
      operand(instr, 0, compute_type_bit(element), SectionKind::Group);
      break;
    default:
      if (!counts(instr, 0, 0, 1)) return;
  }
  result(instr, 0, element);
}

void InstrVerifier::local_scan(const Instr& instr) {
  const Combiner* c = combiner(instr);
  if (!c || !counts(instr, 0, 0, 0)) return;
  const std::size_t n = c->op ? 1 : c->results.size();
  if (!need(instr.index + n <= kernel_.locals.size(), "no such local arrays")) return;
  std::vector<ComputeType> types;
  types.reserve(n);
  for (std::size_t i = 0; i < n; ++i) types.push_back(kernel_.locals[instr.index + i].type);
  tuple(*c, types);
}

void InstrVerifier::local_transform(const Instr& instr) {
  const bool is_product = instr.kind == InstrKind::local_product;
  if (!counts(instr, 0, 0, 0) || !buffers(instr, is_product ? 1 : 0)) return;
  const std::size_t last = instr.index + (is_product ? 1 : 0);
  if (!need(last < kernel_.locals.size(), "no such local arrays")) return;
  const ComputeType element = kernel_.locals[instr.index].type;
  need(element == ComputeType::F32 || element == ComputeType::F64, "elements are not f32 or f64");
  need(kernel_.locals[last].type == element, "local arrays of different elements");
  if (is_product) {
    need(program_.buffers[instr.buffers[0]].dtype == dtype_of(element), "another type of elements");
  }
  if (!need(has_constant_rows(), "outside of rows of a constant length")) return;
  const std::int64_t len = program_.info.exprs.const_value(kernel_.group_len).as_int();
  need(is_product || (len > 0 && (len & (len - 1)) == 0), "a length that is not a power of two");
}

void InstrVerifier::local_largest(const Instr& instr) {
  if (!counts(instr, 1, 1, 0) || !buffers(instr, 0)) return;
  operand(instr, 0, kU32Set);
  if (!need(instr.index < kernel_.locals.size(), "no such local array")) return;
  need(kernel_.locals[instr.index].type == ComputeType::U32, "elements are not u32");
  need(has_constant_rows(), "outside of rows of a constant length");
}

bool InstrVerifier::has_constant_rows() const {
  return kernel_.group_kind == GroupKind::Row && program_.info.exprs.is_const(kernel_.group_len);
}

void InstrVerifier::finish(const Instr& instr) {
  const Combiner* c = combiner(instr);
  const bool is_reduce = instr.kind == InstrKind::finish_reduce;
  const std::size_t n = instr.buffers.size();
  if (!c || !buffers(instr, n) || !need(n > 0, "no buffers")) return;
  need(kernel_.info.role == rt::KernelRole::Finish && kernel_.group_kind == GroupKind::Single,
       "outside a Finish kernel of one group");
  if (!counts(instr, is_reduce ? 1 : 2, is_reduce ? 1 : 2, is_reduce ? n : 0)) return;
  for (std::size_t i = 0; i < instr.operands.size(); ++i) operand(instr, i, kI64Set);
  std::vector<ComputeType> types;
  for (BufferIndex buffer : instr.buffers) {
    types.push_back(compute_type(program_.buffers[buffer].dtype));
    need(program_.buffers[buffer].storage_bits % 8 == 0, "packed partials");
  }
  if (is_reduce && !c->op) types.back() = ComputeType::Bool;
  for (std::size_t i = 0; i < instr.results.size(); ++i) result(instr, i, types[i]);
  if (is_reduce && !c->op) types.pop_back();
  tuple(*c, types);
}

void InstrVerifier::argsort(const Instr& instr) {
  if (!buffers(instr, 3) || !counts(instr, 2, 2, 0)) return;
  operand(instr, 0, kI64Set);
  operand(instr, 1, kI64Set);
  for (std::size_t i = 0; i < 3; ++i) {
    const rt::BufferInfo& buffer = program_.buffers[instr.buffers[i]];
    need(i == 0 ? buffer.storage_bits % 8 == 0 : buffer.dtype == kU32 && buffer.storage_bits == 32,
         "order and scratch must be u32, keys whole elements");
  }
}

}  // namespace cinch::kir
