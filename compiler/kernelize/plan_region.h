// Fusion. Every operator of a region is either *pulled* (a function of its index: element-wise
// operators, generators, gathers, shape changes; computed where it is needed, never stored by
// itself) or it *sinks*: it needs a sweep over a domain (a store, a reduction, a scan, a selection,
// a scatter …). The planner makes a list of sinks, gives each a level such that what it pulls is
// there, and puts sinks of one level and domain into one kernel. Sinks of one kernel run in phases:
// a row reduction, a running sum or a selection can feed later phases of the same kernel, because
// its result lies on chip for the group at hand.
#pragma once
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "compiler/kernelize/program_context.h"

namespace cinch::codegen {

enum class SinkKind {
  Store,         // value to a buffer
  Reduce,        // whole array to scalars (partials per tile, then a finishing kernel)
  RowReduce,     // along axis 1 or 0, or a matrix product: one result per row
  RowTransform,  // rows, on chip, become butterflies of theirs, products with a square matrix,
                 // marks
  RowPlaces,     // of marked elements of each row: their columns
  RunningSum,    // integer sum scan of a vector, by look-back
  Scan,          // any other scan, by tiles of 1024
  Nonzero,       // selection: positions by look-back
  Scatter,
  ScatterAdd,  // in order of position
  ScatterSum,  // of integers in any order: sums, or the greatest
  Histogram,
  Argsort,
  Check,
  CheckIndex,
  CheckHost,
  CheckUnique,
  NonFinite,   // flags a non-finite gradient
  Control,     // if, for, while
  Kept,        // nothing by itself: its operand is stored in `results`
  Collective,  // with all ranks: `results` are what is sent and what the operator gives
};

// What a sink sweeps over.
struct Domain {
  kir::GroupKind kind = kir::GroupKind::Single;
  HostExprId extent;      // Tile: elements
  HostExprId rows, cols;  // Row
  friend bool operator==(const Domain&, const Domain&) = default;
};

// How a pulled value is aligned with the elements of the sink's domain.
enum class Align {
  Flat,      // element i of the one is element i of the other (row-major)
  Row,       // element r belongs to row r of the domain
  Selected,  // element i belongs to the i-th position of the selection whose kernel this is
  None,
  Few,  // constantly many elements, anywhere: computed again rather than waited for
};

// Why a sink comes after another. `from` is first; a kernel of its own, or an earlier phase of the
// same kernel, is what "first" means.
struct Edge {
  enum class Kind : std::uint8_t {
    Value,   // it reads a result of `from`
    Count,   // it reads the count of a selection, which lies in memory whatever becomes of the rest
    Change,  // it works where the result of `from` lies
    Before,  // `from` reads what it changes
  };
  int from = -1;
  Align align = Align::None;
  std::uint32_t result = 0;  // which result of `from`'s operator
  Kind kind = Kind::Value;
  bool is_on_chip = false;  // the same kernel; else memory, and a level
};

struct Sink {
  SinkKind kind = SinkKind::Store;
  ir::OpId op;
  ir::ValueId value;  // Store: what is stored
  // Store, Scatter, ScatterAdd, ScatterSum, Histogram, Argsort, RowPlaces, Nonzero (its count):
  // where the result lies. Set at once where that is asked for, by give_places otherwise.
  rt::BufferIndex buffer = rt::kNoIndex;
  std::string room = {};        // Store: what the buffer is called if it is not asked for
  bool adds_to_buffer = false;  // Store, Scatter: add to what is there (decode-add)
  bool zero_first = false;      // Scatter: the destination starts as zeros
  // Scatter: the sink in whose place it works, a Store of its base or the scatter that made it.
  // Argsort, Collective, Kept: the Store of what it works on.
  int source = -1;
  std::vector<int> scalars = {};  // Collective: the Stores of its other operands
  int changed_by = -1;            // Store, Scatter: the scatter that works in its place
  Domain domain;
  bool is_row_level = false;  // Store: one value per row of a Row kernel
  int compaction = -1;        // Store: the Nonzero sink whose kernel stores it
  int level = 0, phase = 0;   // from the edges, once (plan_levels.cpp)
  std::vector<Edge> edges;
  std::vector<rt::BufferIndex> results;  // Reduce, Scan, Control …: buffer of each result
};

// Sinks of one level and domain: one kernel (and a finishing one if there are reductions).
struct KernelPlan {
  Domain domain;
  int level = 0;
  std::vector<int> sinks;
};

struct FunctionContext;
struct RegionPlan {
  // Does the value lie in memory, stored or made there?
  bool lies_in_memory(const FunctionContext& cx, ir::ValueId v) const;

  std::vector<Sink> sinks;
  std::vector<KernelPlan>
      kernels;  // CheckHost and Control sinks stand alone, in level order with the kernels
  // Where values of this region lie, for pulls: by value, the Store sink(s) that hold it.
  std::unordered_map<std::uint32_t, int> stored;                   // value index -> Store sink
  std::unordered_map<std::uint32_t, int> sink_of_op;               // barrier op index -> sink
  std::unordered_map<std::uint64_t, std::vector<int>> finders_of;  // count -> Nonzero sinks
  std::set<std::uint32_t> long_work;  // values that nobody computes again, not a few elements
};

// A value that must end in a buffer.
struct StoreRequest {
  ir::ValueId value;
  rt::BufferIndex buffer;
  bool adds_to_buffer = false;
};

struct FunctionContext {
  ProgramContext& program;
  const ir::Function& fn;
  // Buffers of region arguments, results of control operators and everything else that lies in
  // memory, by value index; what is not here may lie where the region around this one has it.
  std::unordered_map<std::uint32_t, rt::BufferIndex> in_buffer;
  const FunctionContext* outer = nullptr;

  std::optional<rt::BufferIndex> buffer_of(ir::ValueId v) const {
    for (const FunctionContext* cx = this; cx != nullptr; cx = cx->outer) {
      const auto at = cx->in_buffer.find(v.index());
      if (at != cx->in_buffer.end()) return at->second;
    }
    return std::nullopt;
  }
  /// That of a region in this one.
  FunctionContext inner() const { return {program, fn, {}, this}; }
  const ir::Op& op(ir::OpId id) const { return fn.ops[id.index()]; }
  const ir::Value& value(ir::ValueId id) const { return fn.values[id.index()]; }
  const ir::Op& def(ir::ValueId id) const { return op(value(id).def); }
};

// Is the operator a collective, or does one stand in its regions?
bool has_collective(const ir::Function& fn, ir::OpId op);

// Plans a region; `requests` are what must come out of it, `flag_nonfinite` adds the check of the
// gradient.
RegionPlan plan_region(FunctionContext& cx, ir::RegionId region,
                       const std::vector<StoreRequest>& requests, bool flag_nonfinite);

}  // namespace cinch::codegen
