// KernelBuilder makes one kernel of a KernelProgram, section by section. It infers result types
// from buffers and operands. The program's buffers must exist before the kernel that uses them. The
// verifier (verifier.h) checks what the builder cannot see: levels and dominance.
//
//   KernelBuilder b(program, "encode0", GroupKind::Tile);
//   b.set_extent(n, tiles);
//   b.elements();
//   ValueId x = b.load_linear(gradient, b.group_base());
//   std::vector<ValueId> sum = b.reduce({x}, b.combiner(ScalarOp::add));
//   b.group();
//   b.store_at(partials, b.group_index(), sum[0]);
//   std::uint32_t index = b.finish();
#pragma once

#include <map>
#include <span>
#include <utility>

#include "codegen/kir/compute_type.h"

namespace cinch::kir {
// ValueBuilder holds a kernel under construction: its sections, and the values that are computed
// from other values. It infers result types from operands. KernelBuilder (builder.h) adds memory
// accesses, reductions and draws.

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

class KernelBuilder : public ValueBuilder {
 public:
  using ValueBuilder::ValueBuilder;

  /// Declares the version that the kernel needs in a buffer, or leaves there.
  void reads(BufferIndex buffer, Version version);
  void writes(BufferIndex buffer, Version version);
  /// Appends the kernel to the program and returns its index. The builder cannot be used
  /// afterwards.
  std::uint32_t finish();

  // ---- memory ----
  ValueId load_linear(BufferIndex buffer, ValueId base = {}, ValueId limit = {});
  ValueId load_at(BufferIndex buffer, ValueId index, ValueId pred = {});
  void store_linear(BufferIndex buffer, ValueId value, ValueId base = {}, ValueId limit = {});
  void store_at(BufferIndex buffer, ValueId index, ValueId value, ValueId pred = {});
  void add_at(BufferIndex buffer, ValueId index, ValueId value, ValueId pred = {});
  void max_at(BufferIndex buffer, ValueId index, ValueId value, ValueId pred = {});
  void hist_add(BufferIndex buffer, ValueId bin, std::uint64_t num_bins, ValueId pred = {});

  // ---- reductions and scans ----
  /// One of add, mul, min, max, bit_and, bit_or, bit_xor.
  std::uint32_t combiner(ScalarOp op);
  using Join =
      std::function<std::vector<ValueId>(std::span<const ValueId> a, std::span<const ValueId> b)>;
  /// `join` emits into the combiner's body; it may use kernel-level values.
  std::uint32_t combiner(const std::vector<ComputeType>& types, const Join& join);
  /// Returns N group values. A region combiner returns one more, a Bool: did any element take part?
  std::vector<ValueId> reduce(const std::vector<ValueId>& values, std::uint32_t combiner,
                              ValueId pred = {});
  struct RunningSum {
    ValueId value;  // element level
    ValueId total;  // group level
  };
  RunningSum running_sum(ValueId value, bool exclusive);
  /// `total` and the result are both U32 or U64. Marks the kernel as ordered.
  ValueId look_back(ValueId total, BufferIndex state);
  /// Takes N buffers and returns N results. A region combiner has one more of each: did any element
  /// take part?
  std::vector<ValueId> finish_reduce(ValueId count, std::vector<BufferIndex> partials,
                                     std::uint32_t combiner);
  void finish_scan(ValueId rows, ValueId len, std::vector<BufferIndex> buffers,
                   std::uint32_t combiner);

  // ---- local arrays ----
  std::uint32_t add_local(ComputeType type);
  void local_store(std::uint32_t local, ValueId value);
  ValueId local_load(std::uint32_t local);
  /// Scans N consecutive locals together, from `first` on.
  void local_scan(std::uint32_t first, std::uint32_t combiner);
  void local_butterflies(std::uint32_t local);
  void local_largest(std::uint32_t local, ValueId k);
  /// Multiplies local `from` by a matrix. The product goes into local from + 1.
  void local_product(std::uint32_t from, BufferIndex matrix);
  ValueId local_last(std::uint32_t local);
  ValueId local_previous(std::uint32_t local, ValueId before_first);

  // ---- the rest ----
  struct ArgsortBuffers {
    BufferIndex keys, order, scratch;
  };
  /// `scratch` holds one word for each element, or four if a row may have more than 4096 elements
  /// of at most 32 bits. If `front` is not 0, only the first `front` places of the order are read
  /// later.
  void argsort_row(ValueId begin, ValueId len, ArgsortBuffers buffers, bool descending,
                   std::uint32_t front = 0);
  ValueId random(DrawSite draw, ValueId index, ValueId iteration = {});
  ValueId random_bits(DrawSite draw, ValueId index, ValueId iteration = {});
  ValueId normal(DrawSite draw, ValueId index, ValueId iteration = {});
  ValueId random_index(DrawSite draw, ValueId index, ValueId size, ValueId iteration = {});
  ValueId stochastic_round(DrawSite draw, ValueId x, ValueId index, ValueId iteration = {});
  void flag_nonfinite(ValueId x);
  void fail_if(ValueId pred, const std::string& message);

 private:
  ValueId draw_instr(InstrKind kind, DrawSite draw, std::vector<ValueId> operands,
                     ValueId iteration, ComputeType result);
};

}  // namespace cinch::kir
