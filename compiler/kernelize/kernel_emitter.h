// Emits one kernel: turns each sink into instructions, over the values that it pulls.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/kernelize/kernel_values.h"

namespace cinch::codegen {

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
  void emit_group_sinks(int phase);
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
// stores.
std::vector<rt::Step> emit_scan(FunctionContext& cx, const RegionPlan& plan, int sink);

// Counts how often each cell is named, and fails the call if one is named twice.
std::vector<rt::Step> emit_check_unique(FunctionContext& cx, const RegionPlan& plan, int sink);

// Sorts the indices of stored keys stably, row by row.
std::vector<rt::Step> emit_argsort(FunctionContext& cx, const RegionPlan& plan, int sink);

}  // namespace cinch::codegen
