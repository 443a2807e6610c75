// Emitter: the IR builder as lowering uses it. Adds ops whose result types come from the checked
// tree, regions that are opened and closed while expressions are walked, and the one rule by which
// values take a wanted type. Knows nothing of the checked tree.
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

  // One op with one result of a given type.
  ValueId emit(OpKind kind, std::vector<ValueId> operands, Type type, ir::Attrs attrs = {});
  // Any number of results and regions.
  std::vector<ValueId> emit_multi(OpKind kind, std::vector<ValueId> operands,
                                  std::vector<Type> types, ir::Attrs attrs = {},
                                  std::vector<RegionId> regions = {});

  // Regions nest; their arguments are added with add_arg before anything else.
  RegionId open_region();
  void close_region(std::vector<ValueId> yields);
  ir::CombinerId region_combiner(RegionId region);

  // Names a value for people, unless it has a name.
  void name(ValueId value, const std::string& name);

  // The value in that shape: scalars and the constant size 1 repeat, a vector enters a matrix as a
  // row. Sizes that differ otherwise were proved equal before. The dtype of `shape` is not read.
  ValueId spread(ValueId value, const Type& shape);
  // The value in that type: convert, then spread.
  ValueId fit(ValueId value, const Type& type);
  // The shape in which element-wise operands meet; its dtype means nothing.
  Type meet(const std::vector<ValueId>& operands);

  // x[i, order[i, j]] per row (axis 1), x[order[i, j], j] per column (axis 0), x[order[i]] of
  // vectors.
  ValueId along(ValueId array, ValueId order, int axis);
  // The values in the shape that the indices and the target give: one element, or one row, per
  // index.
  ValueId stored_at(ValueId values, ValueId index, const Type& target);

  HostExprId one() { return exprs().const_int(1); }
  bool is_one(HostExprId size);

 private:
  bool must_repeat(const Type& from, const Type& to);

  std::vector<RegionId> outer_;  // the regions around the open one
};

}  // namespace cinch::lower
