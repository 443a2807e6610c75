// ValueBuilder holds a kernel under construction: its sections, and the values that are computed
// from other values. It infers result types from operands. KernelBuilder (builder.h) adds memory
// accesses, reductions and draws.
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kir/compute_type.h"

namespace cinch::kir {

class ValueBuilder {
 public:
  /// `symbol` must be unique in the program and a C identifier.
  ValueBuilder(KernelProgram& program, std::string symbol, GroupKind group_kind,
               rt::KernelRole role = rt::KernelRole::Sweep);

  /// Tile: elements and tiles. Sets num_groups to ceil_div(extent, 1024).
  void set_extent(HostExprId extent);
  /// Row: rows of len elements each; extent is rows * len.
  void set_rows(HostExprId rows, HostExprId len);
  /// The actual elements (Tile) or rows (Row), at most the extent. Groups past it do not run and
  /// write nothing.
  void set_extent_value(ValueId kernel_level_i64) { kernel_.extent_value = kernel_level_i64; }
  /// The kernel under construction, for fields without a setter (info.fused, is_ordered, …).
  Kernel& kernel() { return kernel_; }
  KernelProgram& program() { return program_; }

  // ---- sections: what follows goes there ----
  /// A new group section, unless the last section is one already.
  void group();
  /// A new element section, always.
  void elements();
  /// Emits into the kernel section while `make` runs.
  ValueId in_kernel(const std::function<ValueId()>& make);
  /// Emits into the group section before the current element section (or the current group
  /// section).
  ValueId in_group(const std::function<ValueId()>& make);
  SectionKind current() const { return kernel_.sections[current_].kind; }

  // ---- uniform leaves: made once each, in the kernel section ----
  ValueId constant(ComputeType type, std::uint64_t bits);
  ValueId const_bool(bool value) { return constant(ComputeType::Bool, value); }
  ValueId const_i32(std::int32_t value);
  ValueId const_u32(std::uint32_t value) { return constant(ComputeType::U32, value); }
  ValueId const_i64(std::int64_t value);
  ValueId const_u64(std::uint64_t value) { return constant(ComputeType::U64, value); }
  ValueId const_f32(float value);
  ValueId const_f64(double value);
  /// The value 0 (false, +0).
  ValueId zero(ComputeType type) { return constant(type, 0); }
  /// The constant of identity_bits.
  ValueId identity(ScalarOp op, ComputeType type);
  ValueId param(std::uint32_t index);
  /// An Int, F32 or Bool host expression as I64, F32 or Bool.
  ValueId host_size(HostExprId expr);

  // ---- group leaves: made once each, in the first group section (which is made if there is none)
  // ----
  ValueId group_index();
  ValueId group_len();
  /// Index of the group's first element: group_index * 1024, or * group length.
  ValueId group_base();

  // ---- element leaves, once per element section ----
  ValueId column();
  ValueId element();

  // ---- scalar operations, in the current section ----
  /// The operation's rule gives the result type. `dtype` narrows an integer result; without it the
  /// result has the type's own width.
  ValueId scalar(ScalarOp op, std::vector<ValueId> operands, std::optional<DType> dtype = {});
  ValueId add(ValueId a, ValueId b) { return scalar(ScalarOp::add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return scalar(ScalarOp::sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return scalar(ScalarOp::mul, {a, b}); }
  ValueId min(ValueId a, ValueId b) { return scalar(ScalarOp::min, {a, b}); }
  ValueId max(ValueId a, ValueId b) { return scalar(ScalarOp::max, {a, b}); }
  ValueId lt(ValueId a, ValueId b) { return scalar(ScalarOp::lt, {a, b}); }
  ValueId eq(ValueId a, ValueId b) { return scalar(ScalarOp::eq, {a, b}); }
  ValueId select(ValueId c, ValueId a, ValueId b) { return scalar(ScalarOp::select, {c, a, b}); }
  ValueId logical_and(ValueId a, ValueId b) { return scalar(ScalarOp::bit_and, {a, b}); }
  ValueId logical_not(ValueId a) { return scalar(ScalarOp::bit_not, {a}); }
  /// `value` holds a value of dtype `from`. Returns `value` itself if the dtypes are equal.
  ValueId convert(ValueId value, DType from, DType to);
  /// Between compute types (index arithmetic). Returns `value` itself if the types are equal.
  ValueId convert(ValueId value, ComputeType to);
  ValueId bitcast(ValueId value, DType from, DType to);

  /// ProgramInfo::externs[index], over operands of its parameters' compute types.
  ValueId call_extern(std::uint32_t index, std::vector<ValueId> operands);

  ComputeType type(ValueId value) const { return kernel_.values[value.index()].type; }
  /// Names a value in printed text and emitted source.
  ValueId named(ValueId value, std::string name);

 protected:
  ValueId new_value(ComputeType type);
  ValueId emit(Instr instr, ComputeType result);
  void emit(Instr instr);

  KernelProgram& program_;
  Kernel kernel_;
  std::vector<Instr>* combiner_body_ = nullptr;  // receives instructions if it is not null

 private:
  ValueId memoised_group(InstrKind kind);
  ValueId memoised_element(InstrKind kind);

  std::size_t current_ = 0;
  std::map<std::pair<ComputeType, std::uint64_t>, ValueId> constants_;
  std::map<std::uint32_t, ValueId> params_, sizes_;
  std::map<InstrKind, ValueId> group_leaves_, element_leaves_;
  ValueId group_base_;
};

}  // namespace cinch::kir
