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
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "codegen/kir/value_builder.h"

namespace cinch::kir {

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
  /// If `front` is not 0, only the first `front` places of the order are read later.
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
