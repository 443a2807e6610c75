// Internal to plan_region: the planner of one region. It adds sinks in the order of the region,
// each with edges to earlier sinks, from which its level follows (plan_levels.cpp). At the end
// sinks become kernels (plan_kernels.cpp), and values get places (give_places.cpp).
#pragma once
#include "compiler/kernelize/plan_region.h"

namespace cinch::codegen {

// The most phases of a kernel. Each phase recomputes what it pulls, so that the work of many grows
// with their square.
inline constexpr int kMostPhases = 64;

// Can the result of such a sink be computed on chip and also be stored, if others need it
// elsewhere?
bool is_store_of_barrier_possible(SinkKind kind);
// Is such a sink a kernel, or steps, of its own?
bool stands_alone(SinkKind kind);
// Are the elements of a vector of `extent` elements the first elements of the rows, in row-major
// order?
bool is_flat_view(ProgramContext& pc, HostExprId extent, const Domain& rows);
// The domain of the kernel in which the sink runs.
const Domain& kernel_domain(const RegionPlan& plan, const Sink& sink);

// Gives every value in memory a buffer, once the schedule is known; a sink that works in place
// shares the buffer. Sets FunctionContext::in_buffer.
void give_places(FunctionContext& cx, RegionPlan& plan);

// The operators, by index, that must run so that the values `wanted` exist and all checks are made.
std::set<std::uint32_t> find_live(const FunctionContext& cx, const std::vector<ir::OpId>& ops,
                                  std::vector<ir::ValueId> wanted);

class Planner {
 public:
  // `chosen`: values of the region worth a store of their own. The first `num_long` of them are
  // stored because they are long work.
  Planner(FunctionContext& cx, ir::RegionId region, const std::vector<StoreRequest>& requests,
          const std::vector<ir::ValueId>& chosen, std::size_t num_long);
  RegionPlan run(bool flag_nonfinite);

 private:
  using ValueId = ir::ValueId;

  // --- bookkeeping (plan_region.cpp) ---
  bool is_worth_a_store(ValueId v);
  int add(Sink sink, const std::vector<std::pair<ValueId, Align>>& pulled);
  void collect(int id, const std::vector<std::pair<ValueId, Align>>& pulled);
  void add_requested_stores(ValueId v);
  // Is the value made in the requested buffer without a store?
  bool lies_where_asked(const StoreRequest& request) const;

  // --- sinks (plan_sinks.cpp) ---
  void add_sink_of(ir::OpId op_id);
  std::vector<std::pair<ValueId, Align>> operands(const ir::Op& op, Align align) const;
  // Adds a sink that stands alone and works on a stored `v`, in a buffer named `room`.
  void add_behind_store(ValueId v, std::string room, Sink sink);
  void add_collective(ir::OpId op);
  void add_swept(ir::OpId op_id, SinkKind kind);
  void add_row_reduce(ir::OpId op_id);
  // Is it a product of rows on chip with a square matrix of a constant size?
  bool is_row_product(const ir::Op& op) const;
  void add_row_transform(ir::OpId op_id);
  void add_row_places(ir::OpId op_id);
  void add_scan(ir::OpId op_id);
  void add_scatter_add(ir::OpId op_id);
  void add_check_unique(ir::OpId op_id);
  void add_control(ir::OpId op_id);
  // Does the value of a matrix depend on row and column separately? A kernel over rows then saves
  // each element a division. If rows have constant length, kernels over tiles do, too.
  bool wants_rows(ValueId v) const;
  // A scalar that is stored in less than a byte needs a kernel with elements.
  Domain store_domain(ValueId v, bool is_packed) const;
  bool is_packed(rt::BufferIndex buffer) const {
    return buffer != rt::kNoIndex && pc_.is_packed(buffer);
  }
  int add_store(const StoreRequest& r, std::string room = {}, bool is_read_later = true);
  void add_nonfinite();

  // --- scatters (plan_scatter.cpp) ---
  bool is_zero_fill(ValueId v) const;
  // The requested value that is the first elements of a scatter's result, perhaps converted, if
  // nothing else is read of that; otherwise the result itself.
  ValueId asked_part(const Sink& s) const;
  // Lets a scatter onto zeros work in the buffer in which (part of) its result is requested.
  void make_where_asked(Sink& s);
  // The first requested buffer in which the value may be made.
  rt::BufferIndex whole_request(ValueId v) const;
  // The requested buffer to which a scatter onto zeros may add directly, if its result is only
  // added to a buffer.
  rt::BufferIndex adding_request(ValueId v) const;
  void find_last_reads();
  void add_scatter(ir::OpId op_id);
  // The sink whose buffer the scatter changes: a Store of its base, or the scatter that made it.
  int source_of(ir::OpId op_id);
  // May `op_id` change its base in place? Yes if all readers of the base, also through pulled
  // operators, come before.
  bool is_last_use(ValueId base, ir::OpId op_id) const;

  // --- levels (plan_levels.cpp) ---
  // The Store sink with the result of a row reduction, running sum or selection (made now if there
  // is none).
  int stored_form(int sink, std::uint32_t result);
  bool can_share_kernel(const Sink& s, const Edge& e) const;
  bool can_feed_rows(const Sink& t) const;
  bool can_run_in_rows(const Sink& s, const Domain& rows) const;
  // May a plain store over a vector run in a kernel over its rows?
  bool can_join_rows(const Sink& s, const Domain& rows) const;
  // May sinks of a kernel over rows recompute what a store over a vector computes?
  bool can_repeat_in_rows(const Sink& stored, const Domain& rows) const;
  // Decides which edges of a sink stay on chip, and from them its level, phase and domain.
  void place(int id);
  // Does it store a value that exists only on chip, in the kernel that makes it?
  bool is_made_on_chip(int id) const;
  void find_on_chip(const Sink& s, std::vector<Edge>& edges) const;
  int level_behind(const Sink& s, const std::vector<Edge>& edges) const;
  int phase_behind(const std::vector<Edge>& edges) const;
  bool leave_chip(std::vector<Edge>& edges, int level);

  // --- kernels (plan_kernels.cpp) ---
  void group();
  KernelPlan* find_kernel(int level, const Domain& domain);
  // For each sink the first of those that share its kernel, since one takes on chip what another
  // makes.
  std::vector<int> units() const;
  // Moves plain stores over a vector to a kernel over its rows at the same level: one sweep instead
  // of two.
  void join_rows();
  // Delays a kernel that only stores to the first kernel that reads the stored value over the same
  // elements: one sweep instead of two.
  void delay_stores();
  bool only_stores_vectors(const KernelPlan& kernel) const;
  // The kernel that `stores` may join, or none.
  KernelPlan* first_reader(const KernelPlan& stores);
  // Puts the non-finite check in the first kernel that sweeps the gradient. If ranks meet, that is
  // a kernel before they first do, so that no rank sends results of such a gradient.
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
  std::unordered_map<std::uint32_t, std::size_t> order_;
  // For each value, its last reads: as the base of a scatter, and otherwise.
  std::unordered_map<std::uint32_t, std::size_t> last_base_, last_read_;
  // The live operators that use a value.
  std::unordered_map<std::uint32_t, std::vector<ir::OpId>> users_;
};

}  // namespace cinch::codegen
