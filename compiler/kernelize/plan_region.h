// Fusion. Every operator of a region is either *pulled* or a *sink*. A pulled operator is a
// function of its index (element-wise operators, generators, gathers, shape changes); it is
// computed where it is needed and never stored by itself. A sink needs a sweep over a domain (a
// store, a reduction, a scan, a selection, a scatter …). The planner lists the sinks, gives each a
// level at which everything it pulls is ready, and puts sinks of one level and domain into one
// kernel. Sinks of one kernel run in phases: a row reduction, a running sum or a selection can feed
// later phases of the same kernel, because its result lies on chip for the current group.
#pragma once
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/kernelize/kernelize.h"
#include "compiler/kernelize/program_context.h"

namespace cinch::codegen {

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

}  // namespace cinch::codegen
