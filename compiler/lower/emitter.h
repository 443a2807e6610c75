// Emitter: the IR builder as lowering uses it. It adds ops whose result types come from the checked
// tree, regions that open and close while expressions are walked, and the one rule by which values
// are converted to a wanted type. It does not know the checked tree.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/builder.h"

namespace cinch::lower {

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
