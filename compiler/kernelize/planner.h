// Internal to plan_region: the planner of one region. Sinks are added in the order of the region,
// each with the edges to those that come before it, from which its level follows (plan_levels.cpp);
// at the end sinks become kernels (plan_kernels.cpp), and values get places (give_places.cpp).
#pragma once
#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

// Of a kernel: each computes again what it pulls, so that many together grow with their square.
inline constexpr int kMostPhases = 64;

// Sinks whose result can be computed on chip and yet be stored when others need it elsewhere.
bool is_store_of_barrier_possible(SinkKind kind);
// Sinks that are a kernel, or steps, of their own.
bool stands_alone(SinkKind kind);
// Are the elements of a vector of `extent` elements the first ones of the rows, in row-major order?
bool is_flat_view(ProgramContext& pc, HostExprId extent, const Domain& rows);
// Of the kernel in which the sink runs.
const Domain& kernel_domain(const RegionPlan& plan, const Sink& sink);

// Gives every value that lies in memory a buffer, once the schedule is known: what works in the
// place of another, the buffer of that. Sets FunctionContext::in_buffer.
void give_places(FunctionContext& cx, RegionPlan& plan);

class Planner {
 public:
  // `chosen`: values of the region worth a store of their own.
  // The first `num_long` of them are stored for the work that they are.
  Planner(FunctionContext& cx, ir::RegionId region, const std::vector<StoreRequest>& requests,
          const std::vector<ir::ValueId>& chosen, std::size_t num_long);
  RegionPlan run(bool flag_nonfinite);

 private:
  using ValueId = ir::ValueId;

  // --- liveness and bookkeeping (plan_region.cpp) ---
  void mark_live();
  void mark_op(ir::OpId op_id, std::vector<ValueId>& work);
  void mark_counts(HostExprId size, std::vector<ValueId>& work);
  void mark_count(std::uint64_t count, std::vector<ValueId>& work);
  bool has_checks(ir::OpId op_id) const;
  bool is_worth_a_store(ValueId v);
  int add(Sink sink, const std::vector<std::pair<ValueId, Align>>& pulled);
  void collect(int id, const std::vector<std::pair<ValueId, Align>>& pulled);
  void add_requested_stores(ValueId v);
  // Does the value end in the buffer without a store?
  bool lies_where_asked(const StoreRequest& request) const;

  // --- sinks (plan_sinks.cpp) ---
  void add_sink_of(ir::OpId op_id);
  std::vector<std::pair<ValueId, Align>> operands(const ir::Op& op, Align align) const;
  // A sink that stands alone and works on a stored `v`, in room of that name.
  void add_behind_store(ValueId v, std::string room, Sink sink);
  void add_collective(ir::OpId op);
  void add_swept(ir::OpId op_id, SinkKind kind);
  void add_row_reduce(ir::OpId op_id);
  // A product of rows on chip: with a square matrix of a constant size.
  bool is_row_product(const ir::Op& op) const;
  void add_row_transform(ir::OpId op_id);
  void add_row_places(ir::OpId op_id);
  void add_scan(ir::OpId op_id);
  void add_scatter_add(ir::OpId op_id);
  void add_check_unique(ir::OpId op_id);
  void add_control(ir::OpId op_id);
  // Does the value of a matrix depend on row and column each by itself, so that a kernel over rows
  // spares each element a division? Of rows of constant length kernels over tiles do.
  bool wants_rows(ValueId v) const;
  // A scalar that is stored in less than a byte takes a kernel with elements.
  Domain store_domain(ValueId v, bool is_packed) const;
  bool is_packed(rt::BufferIndex buffer) const {
    return buffer != rt::kNoIndex && pc_.is_packed(buffer);
  }
  int add_store(const StoreRequest& r, std::string room = {}, bool is_read_later = true);
  void add_nonfinite();

  // --- scatters (plan_scatter.cpp) ---
  bool is_zero_fill(ValueId v) const;
  // The first buffer that is asked for and in which the value may be made.
  rt::BufferIndex whole_request(ValueId v) const;
  // Where a scatter onto zeros whose result is only added to a buffer may add to it at once.
  rt::BufferIndex adding_request(ValueId v) const;
  void find_last_reads();
  void add_scatter(ir::OpId op_id);
  // The sink in whose place the scatter works: a Store of its base, or the scatter that made it.
  int source_of(ir::OpId op_id);
  // May `op_id` change its base where that lies? If all that reads it, be it through operators that
  // are pulled, comes before.
  bool is_last_use(ValueId base, ir::OpId op_id) const;

  // --- levels (plan_levels.cpp) ---
  // A Store sink that holds the result of a row reduction, running sum or selection (made now if
  // there is none).
  int stored_form(int sink, std::uint32_t result);
  bool can_share_kernel(const Sink& s, const Edge& e) const;
  bool can_feed_rows(const Sink& t) const;
  bool can_run_in_rows(const Sink& s, const Domain& rows) const;
  // A plain store over a vector may run in a kernel over its rows.
  bool can_join_rows(const Sink& s, const Domain& rows) const;
  // May sinks of a kernel over rows compute again what a store over a vector computes?
  bool can_repeat_in_rows(const Sink& stored, const Domain& rows) const;
  // Which edges stay on chip, and from them level, phase and domain of a sink whose edges are
  // known.
  void place(int id);
  // A store of what has no place but on chip, in the kernel that makes it.
  bool is_made_on_chip(int id) const;
  void find_on_chip(const Sink& s, std::vector<Edge>& edges) const;
  int level_behind(const std::vector<Edge>& edges) const;
  int phase_behind(const std::vector<Edge>& edges) const;
  bool leave_chip(std::vector<Edge>& edges, int level);

  // --- kernels (plan_kernels.cpp) ---
  void group();
  KernelPlan* find_kernel(int level, const Domain& domain);
  // Of each sink the first of those that share a kernel, since one takes on chip what another
  // makes.
  std::vector<int> units() const;
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
  bool is_flat_view(HostExprId extent, const Domain& rows) const {
    return codegen::is_flat_view(pc_, extent, rows);
  }
  const Domain& kernel_domain(const Sink& s) const { return codegen::kernel_domain(plan_, s); }
  Domain tile(HostExprId extent) const { return {kir::GroupKind::Tile, extent, {}, {}}; }
  Domain row(HostExprId rows, HostExprId cols) const {
    return {kir::GroupKind::Row, {}, rows, cols};
  }
  Domain domain_of(const ir::Type& t) const {
    return t.rank == 0 ? Domain{} : tile(pc_.num_elems(t));
  }
  std::string name(ValueId v, const char* otherwise) const {
    const auto& n = cx_.value(v).name;
    return n.empty() ? otherwise : n;
  }

  FunctionContext& cx_;
  ProgramContext& pc_;
  std::vector<ir::OpId> ops_;
  RegionPlan plan_;
  std::unordered_map<std::uint32_t, std::vector<StoreRequest>> requests_;
  std::set<std::uint32_t> live_;
  std::set<std::uint32_t> chosen_;
  std::unordered_map<std::uint64_t, ir::OpId> finds_count_;  // count -> its first nonzero
  std::unordered_map<std::uint32_t, std::size_t> order_;
  // Of each value, where in the order it is last read: as the base of a scatter, and otherwise.
  std::unordered_map<std::uint32_t, std::size_t> last_base_, last_read_;
  std::set<std::uint32_t> is_used_;  // by a live operator
};

}  // namespace cinch::codegen
