// The IR: typed, sized array operators in SSA form, in flat vectors addressed by 32-bit ids. A
// Program holds one Function per body (encode, decode, finish, sync). Control flow is structured
// (regions). Wrappers, fns and lambdas are inlined before the IR: a lambda over elements becomes
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
#include "runtime/core/numbers/scalar_eval.h"
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
// The elements of an operand that one element of the result needs.
enum class Reads : std::uint8_t {
  Nothing,    // a scalar at most
  Pointwise,  // the element at the same place; operands broadcast
  SameIndex,  // the element with the same row-major index
  Swapped,    // the element with row and column exchanged
  Gathered,   // the element that the index at the same place names
  Index,      // the index itself (no column: reads_of)
  Shifted,    // the element a fixed number of places further on
  Moved,      // one or several, at places computed from the result's place
  Swept,      // all elements: the op is a sweep of its own
};
// How many sweeps over its operands an op needs before its result is known, however kernels are
// fused.
enum class Forces : std::uint8_t {
  Free,    // none: the result is known as soon as the operands are
  Whole,   // one
  Across,  // one; none along rows (axis 1)
  // One for each digit that an exact selection reads before it knows its threshold; none along rows
  Selection,
  Places,  // one; none if each place is complete before the end: places that ascend, or rows
  Terms,   // one; none if each element has a constant number of terms
};
// Facts about one kind. -1 operands or results: any number. `attrs` are flags of AttrUse (ops.h).
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

/// The most columns that `mark_largest` takes: those of a tile.
inline constexpr std::int64_t kMostMarkedColumns = 1024;

inline constexpr std::int8_t kAll = -1;  // Attrs::axis: the whole array as one vector

// Where the words of a random draw come from (docs/language_bits.md).
struct DrawSite {
  std::uint32_t site = 0;  // number of the call site or of the shared draw
  bool shared = false;
};

// Attributes. Each op kind reads only those that its row in ops.def names.
struct Attrs {
  ScalarOp scalar_op = ScalarOp::add;
  std::uint64_t bits = 0;   // const_scalar: value; pack and unpack: width
  std::uint32_t index = 0;  // table, param, state, field, count or argument number
  HostExprId size, size2;
  std::int8_t axis = kAll;
  bool exclusive = false, descending = false, mean = false, has_limit = false;
  // For reshape: a pass proved that the sizes agree, though their formulas differ. For scatter_add:
  // the indices ascend, perhaps with repeats.
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
  std::string name;  // the value's name in the source, for people; may be empty
};

struct Region {
  std::vector<ValueId> args;  // each defined by an `arg` op listed first in ops
  std::vector<OpId> ops;      // the last is a yield
};

// How a reduce or scan combines two elements of N values each. Either one commutative ScalarOp
// (add, mul, min, max, bit_and, bit_or, bit_xor), or a region with args a0..aN-1, b0..bN-1,
// scalars, which yields N scalars. A region may use scalar values of the enclosing function.
struct Combiner {
  std::optional<ScalarOp> op;
  RegionId region;
};

// The values that a function returns.
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
  RegionId body;  // yields nothing; the results are below
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
  // Initial values of states: functions without input, with one result each (Results::output).
  std::vector<Function> state_inits;
  const Function* find(FunctionKind kind) const;
};

}  // namespace cinch::ir
