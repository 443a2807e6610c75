// Emits one kernel: turns each sink into instructions, over the values that it pulls.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "codegen/kir/builder.h"
#include "compiler/kernelize/plan_region.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::codegen {
// The values of a kernel: pulls them at places, from buffers, from what is on chip, or by computing
// them again.

// The index of an element in an array.
struct Index {
  enum class Kind : std::uint8_t {
    Linear,   // base + j: consecutive elements of the group
    Uniform,  // the same for all elements of the group (or of the kernel)
    Varying,  // any u32 per element
  };
  Kind kind = Kind::Linear;
  kir::ValueId value;           // Linear: base, i64 (invalid: 0); Uniform: i64; Varying: u32
  kir::ValueId limit;           // Linear: i64, elements j >= limit do not exist (and read as 0)
  kir::ValueId pred;            // Uniform, Varying: bool, false: the element does not exist
  bool is_group_level = false;  // the value is known per group, not per kernel
  friend auto operator<=>(const Index&, const Index&) = default;
};

// The place of an element in an array: its row-major index, or row and column, or both.
struct Place {
  std::optional<Index> flat, row, col;
  friend auto operator<=>(const Place&, const Place&) = default;
};

Place uniform_place(kir::ValueId i64, bool is_group_level);
bool is_element_level(const Place& place);
bool is_group_level(const Place& place);
// The type in whose bits sums of integers wrap around.
kir::ComputeType unsigned_of(kir::ComputeType type);

class KernelValues {
 public:
  // Begins the kernel: its name, domain and groups.
  KernelValues(FunctionContext& cx, const RegionPlan& plan, const KernelPlan& kernel);

 protected:
  // --- pulls (pull.cpp) ---
  kir::ValueId pull(ir::ValueId v, const Place& place);
  kir::ValueId pull_scalar(ir::ValueId v) { return pull(v, uniform_place(b_.const_i64(0), false)); }
  std::optional<kir::ValueId> pull_on_chip(ir::ValueId v, const Place& place);
  std::optional<kir::ValueId> pull_row_on_chip(int id, const Place& place);
  // The scan's value at the current element, in a phase after its look-back: recomputed from the
  // values.
  void place_running_sum(int id);
  std::optional<rt::BufferIndex> buffer_of(ir::ValueId v) const;
  kir::ValueId load(rt::BufferIndex buffer, const ir::Type& type, const Place& place);
  kir::ValueId pull_op(const ir::Op& op, ir::ValueId v, const Place& place);
  std::optional<DType> integer_type(const ir::Op& op) const;
  kir::ValueId pull_operand(const ir::Op& op, std::size_t i, const Place& place) {
    return pull(op.operands[i], place_of_operand(op, i, place));
  }
  kir::ValueId pull_map(const ir::Op& op, const Place& place);
  kir::ValueId pull_draw(const ir::Op& op, ir::ValueId v, const Place& place);
  kir::ValueId pull_const(const ir::Op& op, ir::ValueId v);
  kir::ValueId pull_host_size(const ir::Op& op, ir::ValueId v);
  kir::ValueId pull_gather_along(const ir::Op& op, ir::ValueId v, const Place& place);
  kir::ValueId pull_concat(const ir::Op& op, ir::ValueId v, const Place& place);
  kir::ValueId pull_chunk(const ir::Op& op, ir::ValueId v, const Place& place);
  kir::ValueId pull_pack(const ir::Op& op, ir::ValueId v, const Place& place);
  kir::ValueId pull_unpack(const ir::Op& op, ir::ValueId v, const Place& place);

  // --- places (places.cpp) ---
  Place domain_place();  // element j of the current group, in the kernel's domain
  // The same for a value of another shape that is swept in row-major order. Rows may have more
  // places than it has elements.
  Place domain_place(const ir::Type& type);
  // How many of `elems` elements in row-major order lie in the current row or after it. Invalid if
  // rows hold exactly these elements, and in kernels that do not sweep rows.
  kir::ValueId row_limit(HostExprId elems);
  bool is_domain_place(const Place& place);
  bool is_selected(const Place& place) const;
  Index flat_of(const Place& place, const ir::Type& type);
  // Which of row and column the caller needs; the other may be zero.
  struct Halves {
    bool row = true, col = true;
  };
  std::pair<Index, Index> row_col_of(const Place& place, const ir::Type& type, Halves halves);
  Place place_of_operand(const ir::Op& op, std::size_t i, const Place& place);
  Place broadcast_place(const Place& place, const ir::Type& operand, const ir::Type& result);
  Place shifted_place(const ir::Op& op, const Place& place);
  Place gathered_place(const ir::Op& op, const Place& place);
  Index computed_index(const Place& place, kir::ValueId element, kir::ValueId pred);
  kir::ValueId index_u32(const Index& index);
  // In a kernel's row or tile: does the current lane lie below the limit?
  kir::ValueId is_below_limit(const Index& linear);
  // Makes a value once per group, or once for the kernel.
  kir::ValueId once_for(bool is_group_level, const std::function<kir::ValueId()>& make);
  kir::ValueId at_level_of(const Place& place, const std::function<kir::ValueId()>& make);
  Index index_at(ir::ValueId idx, const Place& place, HostExprId extent);
  Index new_index_at(ir::ValueId idx, const Place& place, HostExprId extent);

  // --- host values and combiners (kernel_values.cpp) ---
  kir::ValueId host_value(HostExprId expr);
  kir::ValueId host_value_now(HostExprId expr);
  std::uint32_t make_combiner(const ir::Op& op);
  std::vector<kir::ValueId> join(const ir::Op& op, const std::vector<kir::ValueId>& a,
                                 const std::vector<kir::ValueId>& c);
  std::vector<kir::ValueId> eval_region(ir::RegionId region, const std::vector<kir::ValueId>& args);
  void pull_region_scalars(ir::RegionId region);
  std::vector<kir::ValueId> with_init(const ir::Op& op, std::vector<kir::ValueId> results);
  HostExprId bound(HostExprId e) { return pc_.exprs().upper_bound(e); }
  const ir::Type& type(ir::ValueId v) const { return cx_.value(v).type; }

  FunctionContext& cx_;
  ProgramContext& pc_;
  const RegionPlan& plan_;
  const KernelPlan& kp_;
  kir::KernelBuilder b_;
  int current_ = -1;  // the sink being emitted; its edges tell what is loaded
  int phase_ = 0;
  std::map<std::pair<std::uint32_t, Place>, kir::ValueId> uniform_memo_, element_memo_;
  // Those that are uniform
  std::map<std::tuple<std::uint32_t, Place, std::uint32_t>, Index> index_memo_;
  std::map<std::uint32_t, kir::ValueId> host_memo_, region_values_, row_limits_;
  std::map<int, std::vector<kir::ValueId>> reduced_;  // RowReduce, Reduce: group results
  std::map<int, std::uint32_t> rows_on_chip_;         // RowTransform: local array
  struct Position {
    kir::ValueId prefix, total, rank, pred;  // rank and pred: of the current phase
    std::optional<rt::BufferIndex> state;    // of the look-back; none for a single group
    int rank_phase = -1;
  };
  std::map<int, Position> positions_;  // RunningSum, Nonzero
};

class KernelEmitter : private KernelValues {
 public:
  using KernelValues::KernelValues;
  // Appends the kernel (and the kernel that finishes it) to the program; returns its steps.
  std::vector<rt::Step> emit();

 private:
  friend class ScanEmitter;
  friend class UniqueEmitter;
  friend class SortEmitter;
  // --- sinks (emit_sinks.cpp) ---
  void emit_phase(int phase);
  void emit_element_sinks(int phase);
  void after_elements(int phase);
  void emit_single();
  void declare_store(const Sink& s);
  void emit_store(const Sink& s);
  void emit_compact_store(const Sink& s);
  void emit_row_store(const Sink& s);
  void emit_reduce(int id, const Place& place);
  void emit_row_reduce(int id);
  void emit_row_transform(int id);
  void emit_row_places(const Sink& s);
  void finish_row_transform(int id);
  // Notes a buffer that a step zeroes before the kernel, which then changes it.
  void change_zeros(rt::BufferIndex buffer, kir::Version made);
  // Begins the running sums that begin with zero. Returns whether the phase has other sinks of
  // elements.
  bool begin_positions(int phase);
  bool has_single_group() const;
  bool begins_with_zero(const Sink& s) const {
    return s.kind == SinkKind::RunningSum && has_single_group();
  }
  std::optional<rt::BufferIndex> look_back_state();
  kir::ValueId sum_before(const Position& p);
  void emit_running_sum(int id);
  void emit_nonzero(int id);
  HostExprId held_elems(const Sink& s);
  Index scatter_index(const Sink& s);
  kir::ValueId as_held(const Sink& s, kir::ValueId element, ir::ValueId held);
  void emit_scatter(const Sink& s);
  void emit_scatter_add(const Sink& s);
  void emit_histogram(const Sink& s);
  void emit_check(const Sink& s, kir::ValueId value);
  void emit_nonfinite(const Sink& s);
  void store_partials(int id);
  void keep_row_results(int id);
  void place_nonzero(int id);
  std::optional<std::uint32_t> finish_reductions(std::uint32_t sweep);
  void describe();
  std::string fused_name(const Sink& s) const;

  std::vector<rt::Step> before_;                     // zeroing steps
  std::map<int, std::vector<kir::Touch>> partials_;  // Reduce
};

// Everything that a region stores, as requested, and its checks. `flag_nonfinite`: also finds out
// whether the gradient has a value that is not finite.
std::vector<rt::Step> emit_region(FunctionContext& cx, ir::RegionId region,
                                  const std::vector<StoreRequest>& requests, bool flag_nonfinite);

// A scan in the language's float order: tiles of 1024, whose ends are scanned by the same rule and
// joined on the left. Two sweeps: the first stores the tile ends, the second scans again, joins and
// stores. Rows that are known to be one tile take the second alone.
std::vector<rt::Step> emit_scan(FunctionContext& cx, const RegionPlan& plan, int sink);

// Counts how often each cell is named, and fails the call if one is named twice.
std::vector<rt::Step> emit_check_unique(FunctionContext& cx, const RegionPlan& plan, int sink);

// Sorts the indices of stored keys stably, row by row.
std::vector<rt::Step> emit_argsort(FunctionContext& cx, const RegionPlan& plan, int sink);

}  // namespace cinch::codegen
