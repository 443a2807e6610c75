// KernelBuilder: makes one kernel of a KernelProgram, section by section, with result types
// inferred from buffers and operands. Assumes that the program's buffers exist before the kernel
// that uses them. Gives a Kernel appended to the program; what the builder cannot see (levels,
// dominance) the verifier checks (verifier.h).
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

  /// Declares what the kernel finds in a buffer, and what it leaves there.
  void reads(BufferIndex buffer, Version version);
  void writes(BufferIndex buffer, Version version);
  /// Appends the kernel to the program and returns its index. The builder is then spent.
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
  /// N group values; of a region combiner N + 1, the last a Bool `has`: whether any element took
  /// part.
  std::vector<ValueId> reduce(const std::vector<ValueId>& values, std::uint32_t combiner,
                              ValueId pred = {});
  struct RunningSum {
    ValueId value;  // element level
    ValueId total;  // group level
  };
  RunningSum running_sum(ValueId value, bool exclusive);
  /// `total` is U32 or U64, and so is the result. Marks the kernel as ordered.
  ValueId look_back(ValueId total, BufferIndex state);
  /// As many results as buffers: N, for a region combiner N + 1, the last of either being `has`.
  std::vector<ValueId> finish_reduce(ValueId count, std::vector<BufferIndex> partials,
                                     std::uint32_t combiner);
  void finish_scan(ValueId rows, ValueId len, std::vector<BufferIndex> buffers,
                   std::uint32_t combiner);

  // ---- local arrays ----
  std::uint32_t add_local(ComputeType type);
  void local_store(std::uint32_t local, ValueId value);
  ValueId local_load(std::uint32_t local);
  /// Scans locals first … first + N - 1, which must be consecutive.
  void local_scan(std::uint32_t first, std::uint32_t combiner);
  void local_butterflies(std::uint32_t local);
  void local_largest(std::uint32_t local, ValueId k);
  /// Local `from` times a matrix, into local from + 1.
  void local_product(std::uint32_t from, BufferIndex matrix);
  ValueId local_last(std::uint32_t local);
  ValueId local_previous(std::uint32_t local, ValueId before_first);

  // ---- the rest ----
  struct ArgsortBuffers {
    BufferIndex keys, order, scratch;
  };
  /// `front`, if it is not 0: nobody reads more places of the order.
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
