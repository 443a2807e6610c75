// Emitter: the IR builder as lowering uses it. It adds ops whose result types come from the checked
// tree, regions that open and close while expressions are walked, and the one rule by which values
// are converted to a wanted type. It does not know the checked tree.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/ir/builder.h"
#include "dsl/sema/checked.h"

namespace cinch::lower {
// Finds what a part of the checked tree changes: variables from outside and states; and its draws.
// Control flow becomes SSA by passing exactly these through if_else results and loop-carried
// values.

// A random operator, and the loops inside the searched part around it, outermost first.
struct Draw {
  struct Loop {
    sema::StmtId stmt;
    bool is_condition = false;  // the draw is in the condition of a `while`
  };
  sema::ExprId expr;
  std::vector<Loop> loops;
};

struct Assigned {
  std::vector<sema::VarId> vars;      // ascending; declared outside
  std::vector<std::uint32_t> states;  // ascending
  std::vector<Draw> draws;
};

// For the expressions `roots` together; invalid ids are skipped.
Assigned find_assigned(const sema::CheckedProgram& program, const std::vector<sema::ExprId>& roots);

// True if `root` or an expression below it is an array or a lambda.
bool touches_arrays(const sema::CheckedProgram& program, sema::ExprId root);

// Numbers draws (docs/language_bits.md). A call site's number counts the sites before it in its
// space, each once. What loops add depends on their bounds alone, never on how often they ran, so a
// draw behind them has the same number on every rank and in `decode`.

// Draws that are numbered together: those of one compressor that are not shared, or the shared ones
// of one call of a method.
struct DrawSpace {
  std::uint32_t method = 0;  // 0: not shared
  std::uint32_t kind = 0;    // the compressor, and whether only `finish` shares the draw
  friend auto operator<=>(const DrawSpace&, const DrawSpace&) = default;
};

DrawSpace draw_space(const sema::Expr& draw);

// The draws of a loop in one space.
struct LoopDraws {
  HostExprId of_round;
  HostExprId beyond_sites;  // the draws of all rounds, less the sites, which later sites count
};

// For the spaces whose numbers the loop's rounds change. A method that is called within the loop
// numbers its shared draws from 0 in every round.
std::map<DrawSpace, LoopDraws> loop_draws(const sema::CheckedProgram& program,
                                          const sema::Stmt& loop, HostExprPool& pool);

using ir::matrix_type;
using ir::OpKind;
using ir::RegionId;
using ir::scalar_type;
using ir::Type;
using ir::ValueId;
using ir::vector_type;
using ir::with_dtype;

class Emitter : public ir::Builder {
 public:
  using ir::Builder::Builder;

  // Adds an op with one result of a given type.
  ValueId emit(OpKind kind, std::vector<ValueId> operands, Type type, ir::Attrs attrs = {});
  // Adds an op with any number of results and regions.
  std::vector<ValueId> emit_multi(OpKind kind, std::vector<ValueId> operands,
                                  std::vector<Type> types, ir::Attrs attrs = {},
                                  std::vector<RegionId> regions = {});

  // Opens a region; regions nest. Add its arguments with add_arg before anything else.
  RegionId open_region();
  void close_region(std::vector<ValueId> yields);
  ir::CombinerId region_combiner(RegionId region);

  // Names a value for people, unless it has a name.
  void name(ValueId value, const std::string& name);

  // Repeats the value to the shape: scalars and the constant size 1 repeat, a vector enters a
  // matrix as a row. Other sizes that differ as formulas were proved equal before. Ignores the
  // dtype of `shape`.
  ValueId spread(ValueId value, const Type& shape);
  // Converts the value to the type, then spreads it.
  ValueId fit(ValueId value, const Type& type);
  // The common shape of element-wise operands; its dtype is meaningless.
  Type meet(const std::vector<ValueId>& operands);

  // x[i, order[i, j]] per row (axis 1), x[order[i, j], j] per column (axis 0), x[order[i]] of
  // vectors.
  ValueId along(ValueId array, ValueId order, int axis);
  // Spreads the values to the shape of the indices and the target: one element, or one row, per
  // index.
  ValueId stored_at(ValueId values, ValueId index, const Type& target);

  HostExprId one() { return exprs().const_int(1); }
  bool is_one(HostExprId size);

 private:
  bool must_repeat(const Type& from, const Type& to);

  std::vector<RegionId> outer_;  // the enclosing regions
};

}  // namespace cinch::lower
