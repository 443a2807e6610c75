// Fusion. Every operator of a region is either *pulled* or a *sink*. A pulled operator is a
// function of its index (element-wise operators, generators, gathers, shape changes); it is
// computed where it is needed and never stored by itself. A sink needs a sweep over a domain (a
// store, a reduction, a scan, a selection, a scatter …). The planner lists the sinks, gives each a
// level at which everything it pulls is ready, and puts sinks of one level and domain into one
// kernel. Sinks of one kernel run in phases: a row reduction, a running sum or a selection can feed
// later phases of the same kernel, because its result lies on chip for the current group.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codegen/kir/kir.h"
#include "compiler/ir/ir.h"
#include "compiler/kernelize/kernelize.h"
#include "runtime/core/step_limit.h"

namespace cinch::codegen {
// What all kernels of a program share during kernelization: buffers, size slots, messages,
// constants.

class ProgramContext {
 public:
  explicit ProgramContext(const ir::Program& program);

  HostExprPool& exprs() { return *out.info.exprs; }
  // Adds a buffer for one call. Booleans take a byte each; other types whole 8, 16, 32 or 64 bits.
  rt::BufferIndex add_workspace(const std::string& name, DType dtype, HostExprId num_elems);
  rt::BufferIndex field(std::uint32_t index) const { return fields_.at(index); }
  rt::BufferIndex state(std::uint32_t index) const { return states_.at(index); }
  rt::BufferIndex state_next(std::uint32_t index) const { return states_next_.at(index); }
  rt::BufferIndex count(std::uint32_t index) const { return counts_.at(index); }
  rt::BufferIndex table(std::uint32_t index);
  rt::BufferIndex gradient() const { return gradient_; }
  rt::BufferIndex output() const { return output_; }
  const rt::BufferInfo& buffer(rt::BufferIndex index) const { return out.buffers.at(index); }
  bool is_packed(rt::BufferIndex index) const;

  // The number of a value's contents, wherever it lies (kir::Version).
  kir::Version version_of(const ir::Function& fn, ir::ValueId v);
  // Gives `v` the version of `other`.
  void set_version(const ir::Function& fn, ir::ValueId v, kir::Version version);
  // The version of a count: from its selection if the function has one, else from outside.
  kir::Version count_version(const ir::Function& fn, std::uint64_t index);
  kir::Version new_version() { return next_version_++; }

  std::uint32_t message(const std::string& text);
  HostExprId num_elems(const ir::Type& type);
  bool is_const(HostExprId id, std::int64_t value) const;
  std::optional<std::int64_t> const_int(HostExprId id) const;
  // Is the size a constant, or the minimum of a constant and something else?
  bool is_at_most_constant(HostExprId id) const;
  std::string unique_symbol(const std::string& stem);

  const ir::Program& program;
  kir::KernelProgram out;
  rt::StepLimit steps;
  std::vector<SweepsApart> apart;

 private:
  rt::BufferIndex add_buffer(rt::BufferInfo info);
  std::vector<rt::BufferIndex> fields_, states_, states_next_, counts_;
  std::map<std::uint32_t, rt::BufferIndex> tables_;
  std::map<std::pair<const ir::Function*, std::uint32_t>, kir::Version> versions_;
  std::map<std::pair<const ir::Function*, std::uint64_t>, kir::Version> count_versions_;
  // Counts that selections of the function find
  std::map<const ir::Function*, std::set<std::uint64_t>> found_counts_;
  kir::Version next_version_ = kir::kFirstMadeVersion;
  std::map<std::string, int> symbol_uses_;
  rt::BufferIndex gradient_ = 0, output_ = 0;
};

enum class SinkKind {
  Store,         // value to a buffer
  Reduce,        // the whole array to scalars (partials per tile, then a finishing kernel)
  RowReduce,     // along axis 1 or 0, or a matrix product: one result per row
  RowTransform,  // rows on chip: butterflies, products with a square matrix, marks
  RowPlaces,     // the columns of marked elements in each row
  RunningSum,    // integer sum scan of a vector, by look-back
  Scan,          // any other scan, by tiles of 1024
  Nonzero,       // selection: finds positions by look-back
  Scatter,
  ScatterAdd,  // adds in order of position
  ScatterSum,  // integers in any order: sums, or the maximum
  Histogram,
  Argsort,
  Check,
  CheckIndex,
  CheckHost,
  CheckUnique,
  NonFinite,   // flags a non-finite gradient
  Control,     // if, for, while
  Kept,        // no work of its own: its operand is stored in `results`
  Collective,  // with all ranks: `results` are what is sent and what is received
};

// The domain that a sink sweeps.
struct Domain {
  kir::GroupKind kind = kir::GroupKind::Single;
  HostExprId extent;      // Tile: elements
  HostExprId rows, cols;  // Row
  friend bool operator==(const Domain&, const Domain&) = default;
};

// How the elements of a pulled value align with those of the sink's domain.
enum class Align {
  Flat,      // element i belongs to element i of the domain (row-major)
  Row,       // element r belongs to row r of the domain
  Selected,  // element i belongs to the i-th position of this kernel's selection
  None,
  Few,  // a constant number of elements, anywhere: recomputed rather than waited for
};

// Why a sink comes after another. `from` comes first: in a kernel before, or in an earlier phase of
// the same kernel.
struct Edge {
  enum class Kind : std::uint8_t {
    Value,   // reads a result of `from`
    Count,   // reads the count of a selection, which is always in memory
    Change,  // works in place on the result of `from`
    Before,  // changes what `from` reads
    Check,   // may write only if the check `from` holds
  };
  int from = -1;
  Align align = Align::None;
  std::uint32_t result = 0;  // index of the result of `from`'s operator
  Kind kind = Kind::Value;
  bool is_on_chip = false;  // in the same kernel; else through memory, at a later level
};

struct Sink {
  SinkKind kind = SinkKind::Store;
  ir::OpId op;
  // Store: the value. Scatter, ScatterAdd, ScatterSum: if nothing is read of the result but its
  // first elements, the requested value that consists of them (of a Scatter perhaps converted); the
  // buffer holds only these.
  ir::ValueId value;
  // Store, Scatter, ScatterAdd, ScatterSum, Histogram, Argsort, RowPlaces, Nonzero (its count): the
  // buffer of the result. Set at once if the buffer is requested, else by give_places.
  rt::BufferIndex buffer = rt::kNoIndex;
  std::string room = {};        // Store: name of the buffer if it is not a requested one
  bool adds_to_buffer = false;  // Store, Scatter: adds to the buffer's contents (decode-add)
  bool zero_first = false;      // Scatter: the destination starts as zeros
  // Scatter: the sink whose buffer it changes, a Store of its base or the scatter that made it.
  // Argsort, Collective, Kept: the Store of their operand.
  int source = -1;
  std::vector<int> scalars = {};  // Collective: the Stores of its other operands
  int changed_by = -1;            // Store, Scatter: the scatter that changes its buffer
  Domain domain;
  bool is_row_level = false;  // Store: one value per row of a Row kernel
  int compaction = -1;        // Store: the Nonzero sink whose kernel stores it
  int level = 0, phase = 0;   // from the edges, once (plan_levels.cpp)
  std::vector<Edge> edges;
  std::vector<rt::BufferIndex> results;  // Reduce, Scan, Control …: buffer of each result
};

// Sinks of one level and domain: one kernel (and one that finishes it if there are reductions).
struct KernelPlan {
  Domain domain;
  int level = 0;
  std::vector<int> sinks;
};

struct FunctionContext;
// The value that the buffer of a Store or scatter holds.
ir::ValueId held_value(const FunctionContext& cx, const Sink& sink);

struct RegionPlan {
  // Does the value lie in memory, stored or made there?
  bool lies_in_memory(const FunctionContext& cx, ir::ValueId v) const;

  std::vector<Sink> sinks;
  std::vector<KernelPlan>
      kernels;  // in level order; CheckHost and Control sinks are entries of their own
  // The Store sink(s) that hold values of this region, for pulls.
  std::unordered_map<std::uint32_t, int> stored;                   // value index -> Store sink
  std::unordered_map<std::uint32_t, int> sink_of_op;               // barrier op index -> sink
  std::unordered_map<std::uint64_t, std::vector<int>> finders_of;  // count -> Nonzero sinks
  std::set<std::uint32_t> long_work;  // values, not of a few elements, that no kernel recomputes
};

// A value that must be stored in a buffer.
struct StoreRequest {
  ir::ValueId value;
  rt::BufferIndex buffer;
  bool adds_to_buffer = false;
  bool is_behind_checks = false;  // nothing is written where a check fails
};

struct FunctionContext {
  ProgramContext& program;
  const ir::Function& fn;
  // Buffers of region arguments, results of control operators and all other values in memory, by
  // value index. Values that are not listed may lie in a buffer of the enclosing region.
  std::unordered_map<std::uint32_t, rt::BufferIndex> in_buffer;
  const FunctionContext* outer = nullptr;

  std::optional<rt::BufferIndex> buffer_of(ir::ValueId v) const {
    for (const FunctionContext* cx = this; cx != nullptr; cx = cx->outer) {
      const auto at = cx->in_buffer.find(v.index());
      if (at != cx->in_buffer.end()) return at->second;
    }
    return std::nullopt;
  }
  /// The context of a region in this one.
  FunctionContext inner() const { return {program, fn, {}, this}; }
  const ir::Op& op(ir::OpId id) const { return fn.ops[id.index()]; }
  const ir::Value& value(ir::ValueId id) const { return fn.values[id.index()]; }
  const ir::Op& def(ir::ValueId id) const { return op(value(id).def); }
};

// Is the operator a collective, or does one occur in its regions?
bool has_collective(const ir::Function& fn, ir::OpId op);

// Plans a region. `requests` are the values that it must store; `flag_nonfinite` adds the check of
// the gradient.
RegionPlan plan_region(FunctionContext& cx, ir::RegionId region,
                       const std::vector<StoreRequest>& requests, bool flag_nonfinite);

// Recompute or store: finds a pulled value that costs more to recompute in several kernels than to
// store once.

inline constexpr int kMaxChosenStores = 9;

// If computing a value reads L arrays per element and k kernels need it, recomputing costs k·L
// loads, and storing L + 1 + (k - 1). Returns the value that saves most, if any saves.
std::optional<ir::ValueId> choose_store(const FunctionContext& cx, ir::RegionId region,
                                        const RegionPlan& plan);

// Finds values that kernels would recompute so often that no cost model is needed: compiling alone
// would take too long.

/// Returns values of the region that need a store of their own, whatever else is stored:
/// - values that one kernel would compute at many places: each operator that moves elements (a
/// gather, a slice, `concat`) asks for its operand at a place of its own, and several such
/// operators in a row double the places each time;
/// - values that end a long chain of operators which several sinks would compute from its
/// beginning.
/// Linear in the number of operators.
std::vector<ir::ValueId> find_repeated_work(const FunctionContext& cx, ir::RegionId region,
                                            const std::vector<StoreRequest>& requests);

// Explains, in terms that an author can act on: the value that must be ready first, or the domains
// that differ. `first` runs before `second`. The caller sets the symbols of the kernels.
SweepsApart why_apart(const FunctionContext& cx, const RegionPlan& plan, const KernelPlan& first,
                      const KernelPlan& second);

// Internal to plan_region: the planner of one region. It adds sinks in the order of the region,
// each with edges to earlier sinks, from which its level follows (plan_levels.cpp). At the end
// sinks become kernels (plan_region.cpp), and values get places (plan_scatter.cpp).

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

class Planner {
 public:
  // `chosen`: values of the region worth a store of their own. The first `num_long` of them are
  // stored because they are long work.
  Planner(FunctionContext& cx, ir::RegionId region, const std::vector<StoreRequest>& requests,
          const std::vector<ir::ValueId>& chosen, std::size_t num_long);
  RegionPlan run(bool flag_nonfinite);

 private:
  using ValueId = ir::ValueId;

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
  void add_row_transform(ir::OpId op_id);
  void add_scan(ir::OpId op_id);
  void add_scatter_add(ir::OpId op_id);
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
  // Puts operators that checks need in front of all others. Without checks nothing stands behind
  // them.
  void put_checks_first();
  bool is_behind_checks(const Sink& s) const;
  bool holds_check(const Sink& s) const;
  void add_nonfinite();

  // The requested value that is the first elements of a scatter's result, perhaps converted, if
  // nothing else is read of that; otherwise the result itself.
  ValueId asked_part(const Sink& s) const;
  // Lets a scatter onto zeros work in the buffer in which (part of) its result is requested.
  void make_where_asked(Sink& s);
  // The first requested buffer in which the value may be made.
  rt::BufferIndex whole_request(ValueId v) const;
  void find_last_reads();
  void add_scatter(ir::OpId op_id);
  // The sink whose buffer the scatter changes: a Store of its base, or the scatter that made it.
  int source_of(ir::OpId op_id);

  bool can_share_kernel(const Sink& s, const Edge& e) const;
  bool can_feed_rows(const Sink& t) const;
  bool can_run_in_rows(const Sink& s, const Domain& rows) const;
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

  // --- kernels (plan_region.cpp) ---
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
  // The kernel that `stores` may join, or none.
  KernelPlan* first_reader(const KernelPlan& stores);
  // Puts the non-finite check in the first kernel that sweeps the gradient. If ranks meet, that is
  // a kernel before they first do, so that no rank sends results of such a gradient.
  void host_nonfinite(int id);

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
  std::set<rt::BufferIndex> behind_checks_;
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
