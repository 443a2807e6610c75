// The IR: typed, sized array operators in SSA form, in flat vectors addressed by 32-bit ids.
// A Program holds one Function per body (encode, decode, finish, sync); control flow is structured
// (regions). Wrappers, fns and lambdas are inlined before the IR: a lambda over elements became
// `map`s, one over pairs a Combiner.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dsl/source/source.h"
#include "runtime/core/ids.h"
#include "runtime/core/numbers/scalar_op.h"
#include "runtime/core/program_info.h"

namespace cinch::ir {

using ValueId = Id<struct ValueTag>;
using OpId = Id<struct OpTag>;
using RegionId = Id<struct RegionTag>;
using CombinerId = Id<struct CombinerTag>;
using Type = rt::ArrayType;
using dsl::Span;

enum class OpKind : std::uint8_t {
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  name,
#include "compiler/ir/ops.def"
};
enum class Effect : std::uint8_t { Pure, Check, Control };
// Which elements of an operand an element of the result needs.
enum class Reads : std::uint8_t {
  Nothing,    // a scalar at most
  Pointwise,  // that of its own place; operands broadcast
  SameIndex,  // that of its own row-major index
  Swapped,    // that of row and column exchanged
  Gathered,   // that which the index at its place says
  Index,      // the index itself (no column: reads_of)
  Shifted,    // that so many places further on
  Moved,      // one or several, computed from its place
  Swept,      // all of them: a sweep of its own makes the result
};
// Sweeps over its operands after which the result is known, however kernels are fused.
enum class Forces : std::uint8_t {
  Free,       // none: as soon as its operands are
  Whole,      // one
  Across,     // one; along rows (axis 1) none
  Selection,  // the digits that an exact selection looks at before it knows its threshold; along
              // rows none
  Places,     // one, unless a place is complete before the end: places that ascend, or rows
  Terms,      // one, unless the terms of an element are constantly many
};
// Facts of one kind; -1 operands or results: any number. `attrs` are flags of AttrUse (ops.h).
struct OpInfo {
  std::string_view name;
  int min_operands, max_operands, num_results;
  Effect effect;
  Reads reads;
  Forces forces;
  int cost;
  std::uint32_t attrs;
  std::string_view meaning;
};
const OpInfo& op_info(OpKind kind);

/// Columns that `mark_largest` takes at most, which are those of a tile.
inline constexpr std::int64_t kMostMarkedColumns = 1024;

inline constexpr std::int8_t kAll = -1;  // Attrs::axis: the whole array as one vector

// A random draw: where its words come from (docs/language_bits.md).
struct DrawSite {
  std::uint32_t site = 0;  // number of the call site, or of the shared draw
  bool shared = false;
};

// Attributes; each op kind reads only those its row in ops.def names.
struct Attrs {
  ScalarOp scalar_op = ScalarOp::add;
  std::uint64_t bits = 0;   // const_scalar: value; pack and unpack: width
  std::uint32_t index = 0;  // table, param, state, field, count or argument number
  HostExprId size, size2;
  std::int8_t axis = kAll;
  bool exclusive = false, descending = false, mean = false, has_limit = false;
  // reshape: a pass knows that the sizes agree, though their formulas differ; scatter_add: the
  // indices ascend, perhaps with repeats
  bool proved = false;
  bool in_rows = false;  // scatter_add, scatter_reduce: each index stays in its place's row
  DrawSite draw;
  CombinerId combiner;
  std::string text;
};

struct Op {
  OpKind kind;
  std::vector<ValueId> operands;
  std::vector<ValueId> results;
  std::vector<RegionId> regions;
  Attrs attrs;
  Span span;
};

struct Value {
  Type type;
  OpId def;
  std::uint32_t result_index = 0;
  std::string name;  // the source's name for it, for people; may be empty
};

struct Region {
  std::vector<ValueId> args;  // each defined by an `arg` op listed first in ops
  std::vector<OpId> ops;      // the last is a yield
};

// How a reduce or scan joins two elements of N values each. A single commutative ScalarOp (add,
// mul, min, max, bit_and, bit_or, bit_xor) or a region: args a0..aN-1, b0..bN-1, scalars, yields N
// scalars. A region may use scalar values of the enclosing function.
struct Combiner {
  std::optional<ScalarOp> op;
  RegionId region;
};

// Which values a function hands out.
struct Results {
  ValueId output;               // decode, finish, sync: the array
  std::vector<ValueId> fields;  // encode: one per wire field
  std::vector<ValueId> counts;  // encode: one u32 scalar per wire count
  std::vector<ValueId> states;  // encode, finish, sync: the new value of every state of the program
                                // (its `state` op if unchanged)
};

enum class FunctionKind : std::uint8_t { Encode, Decode, Finish, Sync };

struct Function {
  FunctionKind kind;
  std::vector<Op> ops;
  std::vector<Value> values;
  std::vector<Region> regions;
  std::vector<Combiner> combiners;
  RegionId body;  // yields nothing; results below
  Results results;
};

// A constant table: elements as f64 for floats, i64 bits for integers.
struct Table {
  Type type;
  std::vector<std::uint64_t> bits;
};

struct Program {
  rt::ProgramInfo info;
  std::vector<Table> tables;
  std::vector<Function> functions;  // at most one of each kind
  // Initial values of states: functions of no input; one result each (Results::output).
  std::vector<Function> state_inits;
  const Function* find(FunctionKind kind) const;
};

}  // namespace cinch::ir
