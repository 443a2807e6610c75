// Internal to plan_region: the planner of one region. Sinks are added in the order of the region,
// each gets its level as it is added (plan_levels.cpp), and at the end sinks become kernels.
#pragma once
#include "codegen/kernelize/plan_region.h"

namespace cinch::codegen {

// Sinks whose result can be computed on chip and yet be stored when others need it elsewhere.
bool is_store_of_barrier_possible(SinkKind kind);
// Sinks that are a kernel, or steps, of their own.
bool stands_alone(SinkKind kind);

class Planner {
 public:
  // `chosen`: values of the region worth a store of their own.
  Planner(FunctionContext& cx, ir::RegionId region, const std::vector<StoreRequest>& requests,
          const std::vector<ir::ValueId>& chosen);
  RegionPlan run(bool flag_nonfinite);

 private:
  using ValueId = ir::ValueId;

  // --- liveness and bookkeeping (plan_region.cpp) ---
  void mark_live(const std::vector<ir::OpId>& ops);
  void mark_op(ir::OpId op_id, std::vector<ValueId>& work);
  void mark_counts(HostExprId size, std::vector<ValueId>& work);
  void mark_count(std::uint64_t count, std::vector<ValueId>& work);
  bool has_checks(ir::OpId op_id) const;
  std::vector<ir::OpId> users_after(ValueId v, ir::OpId op_id) const;
  int add(Sink sink, const std::vector<std::pair<ValueId, Align>>& pulled);
  void collect(int id, const std::vector<std::pair<ValueId, Align>>& pulled);
  void add_requested_stores(ValueId v);
  // Stores a chosen value: in the destination of the scatter whose base it is, else in workspace.
  void add_chosen_store(ValueId v);

  // --- sinks (plan_sinks.cpp) ---
  void add_barrier(ir::OpId op_id);
  std::vector<std::pair<ValueId, Align>> operands(const ir::Op& op, Align align) const;
  // Workspace for the value, by its name or `otherwise`.
  rt::BufferIndex add_room(ValueId v, const char* otherwise);
  // A sink that stands alone and works on `v` in `buffer`: stored there first.
  void add_behind_store(ValueId v, rt::BufferIndex buffer, Sink sink);
  void add_reduce(ir::OpId op_id);
  void add_row_reduce(ir::OpId op_id);
  // A product of rows on chip: with a square matrix of a constant size.
  bool is_row_product(const ir::Op& op) const;
  void add_row_transform(ir::OpId op_id);
  // The buffer of a matrix; stored first where it is not in memory as it is. None for a table: its
  // buffer is made when kernels are emitted, as plans come and go.
  rt::BufferIndex stored_matrix(ValueId v);
  void add_scan(ir::OpId op_id);
  void add_nonzero(ir::OpId op_id);
  void add_scatter_add(ir::OpId op_id);
  void add_histogram(ir::OpId op_id);
  void add_argsort(ir::OpId op_id);
  void add_check(ir::OpId op_id, SinkKind kind);
  void add_check_unique(ir::OpId op_id);
  void add_check_host(ir::OpId op_id);
  void add_control(ir::OpId op_id);
  void add_collective(ir::OpId op_id);
  void add_kept(ir::OpId op_id);
  // Does the value of a matrix depend on row and column each by itself, so that a kernel over rows
  // spares each element a division? Of rows of constant length kernels over tiles do.
  bool wants_rows(ValueId v) const;
  // A scalar that is stored in less than a byte takes a kernel with elements.
  Domain store_domain(const StoreRequest& r) const;
  int add_store(const StoreRequest& r, bool is_read_later = true);
  void add_nonfinite();

  // --- scatters (plan_scatter.cpp) ---
  bool is_zero_fill(ValueId v) const;
  // The first request for a value that a scatter can meet by working in that very buffer.
  std::optional<StoreRequest> whole_request(ValueId v) const;
  std::optional<StoreRequest> adding_request(ValueId v) const;
  rt::BufferIndex scatter_destination(ir::OpId op_id);
  // May the scatter `op_id` change its base `v` where it lies? Not if anything that is computed by
  // it or later reads `v`, be it through operators that are pulled.
  bool is_last_use(ValueId v, ir::OpId op_id) const;
  // The first live scatter that changes a copy of `v`.
  std::optional<ir::OpId> scatter_onto(ValueId v) const;
  void add_scatter(ir::OpId op_id);
  // Brings the base of the scatter into `buffer`; returns the sinks that must run before it.
  std::vector<int> prepare_base(ir::OpId op_id, rt::BufferIndex buffer);
  std::vector<int> readers_of(int sink) const;

  // --- levels (plan_levels.cpp) ---
  void raise_level(int id, int level);
  // A Store sink that holds the result of a row reduction, running sum or selection (made now if
  // there is none).
  int stored_form(int sink, std::uint32_t result);
  bool can_share_kernel(const Sink& s, const Dep& d) const;
  bool can_feed_rows(const Sink& t) const;
  bool can_run_in_rows(const Sink& s, const Domain& rows) const;
  // A plain store over a vector may run in a kernel over its rows.
  bool can_join_rows(const Sink& s, const Domain& rows) const;
  // May sinks of a kernel over rows compute again what a store over a vector computes?
  bool can_repeat_in_rows(const Sink& stored, const Domain& rows) const;
  // Level, on-chip dependences and domain of a sink whose deps are known.
  void place(int id);
  void settle(int id, std::vector<Dep>& deps, int level);

  // --- kernels (plan_kernels.cpp) ---
  void group();
  KernelPlan* find_kernel(int level, const Domain& domain);
  // Are the elements of a vector of `extent` elements the first ones of the rows, in row-major
  // order?
  bool is_flat_view(HostExprId extent, const Domain& rows) const;
  // Plain stores over a vector join a kernel over its rows at the same level: one sweep instead of
  // two.
  void join_rows();
  // A kernel that only stores waits for the first one that reads what it stores, if that goes over
  // the same elements: one sweep instead of two.
  void delay_stores();
  bool only_stores_vectors(const KernelPlan& kernel) const;
  // The kernel that `stores` may join, or none.
  KernelPlan* first_reader(const KernelPlan& stores);
  // The non-finite check rides on the first kernel that sweeps the gradient; where ranks meet, on
  // one before they first do, so that none meets another with a result of such a gradient.
  void host_nonfinite(int id);
  bool can_feed_rows_kernel(const KernelPlan& k) const;

  const ir::Type& type(ValueId v) const { return cx_.value(v).type; }
  Domain tile(HostExprId extent) const { return {kir::GroupKind::Tile, extent, {}, {}}; }
  Domain row(HostExprId rows, HostExprId cols) const {
    return {kir::GroupKind::Row, {}, rows, cols};
  }
  Domain domain_of(const ir::Type& t) const {
    return t.rank == 0 ? Domain{} : tile(pc_.num_elems(t));
  }
  Domain kernel_domain(const Sink& s) const {
    return s.compaction >= 0 ? plan_.sinks[s.compaction].domain : s.domain;
  }
  std::string name(ValueId v, const char* otherwise) const {
    const auto& n = cx_.value(v).name;
    return n.empty() ? otherwise : n;
  }

  FunctionContext& cx_;
  ProgramContext& pc_;
  ir::RegionId region_;
  RegionPlan plan_;
  std::unordered_map<std::uint32_t, std::vector<StoreRequest>> requests_;
  std::set<std::pair<std::uint32_t, rt::BufferIndex>> satisfied_;
  std::set<std::uint32_t> live_;
  std::set<std::uint32_t> chosen_;
  std::unordered_map<std::uint32_t, int> base_stores_;  // scatter -> Store of its base, made early
  std::unordered_map<std::uint64_t, ir::OpId> finds_count_;  // count -> the nonzero of this region
  std::unordered_map<std::uint32_t, std::size_t> order_;
};

}  // namespace cinch::codegen
