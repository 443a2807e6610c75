// Emitter: appends IR operators to one function, at the end of the innermost open region. Computes result types of
// element-wise operators by broadcasting; all other result types are the caller's. Knows nothing of the checked tree.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::lower {

using ir::OpKind;
using ir::RegionId;
using ir::Type;
using ir::ValueId;

Type scalar_type(DType dtype);
Type vector_type(DType dtype, HostExprId len);
Type matrix_type(DType dtype, HostExprId rows, HostExprId cols);
Type with_dtype(Type type, DType dtype);
bool same_shape(const Type& a, const Type& b);

class Emitter {
 public:
  // Appends to `function`, which must be empty; `pool` holds the host expressions of its types. Opens the body.
  Emitter(ir::Function& function, HostExprPool& pool);
  // Ends the body; no emit may follow.
  void finish();

  Span span;  // of operators emitted from now on

  ValueId emit(OpKind kind, std::vector<ValueId> operands, Type type, ir::Attrs attrs = {});
  // Any number of results and regions.
  std::vector<ValueId> emit_multi(OpKind kind, std::vector<ValueId> operands, const std::vector<Type>& types,
                                  ir::Attrs attrs = {}, std::vector<RegionId> regions = {});
  // A check: no result.
  void emit_check(OpKind kind, std::vector<ValueId> operands, ir::Attrs attrs);

  // Regions nest: open, add arguments, emit, close with what it yields.
  RegionId open_region();
  ValueId add_region_arg(Type type);
  void close_region(std::vector<ValueId> yields);
  ir::CombinerId add_combiner(ir::Combiner combiner);

  const Type& type(ValueId value) const { return function_.values[value.index()].type; }
  DType dtype(ValueId value) const { return type(value).dtype; }
  HostExprPool& pool() { return pool_; }
  // Names a value for people, unless it has a name.
  void name(ValueId value, const std::string& name);

  // Constants of any scalar type. Integers count for floats too (constant(kF32, 1) is 1.0).
  ValueId constant(DType dtype, std::int64_t value);
  ValueId constant_f64(DType float_dtype, double value);
  ValueId host_size(HostExprId size, DType dtype);

  // Element-wise: the result has the broadcast shape and the dtype that the operation gives.
  Type broadcast_type(const std::vector<ValueId>& operands) const;  // its dtype means nothing
  ValueId map(ScalarOp op, ValueId a);
  ValueId map(ScalarOp op, ValueId a, ValueId b);
  ValueId map(ScalarOp op, ValueId a, ValueId b, ValueId c);
  ValueId map_to(ScalarOp op, std::vector<ValueId> operands, Type type);
  // The value itself where it has that dtype (shape) already.
  ValueId convert(ValueId value, DType dtype);
  ValueId reshape(ValueId value, Type shape);     // same number of elements; dtype is kept
  ValueId broadcast(ValueId value, Type shape);   // scalars and constant size 1; a vector enters a matrix as a row
  ValueId fit(ValueId value, const Type& type);   // convert, then broadcast
  ValueId gather(ValueId array, ValueId index, Type type);
  ValueId iota(HostExprId len);

  HostExprId one() { return pool_.const_int(1); }
  bool is_one(HostExprId size) const;


 private:
  bool must_repeat(const Type& from, const Type& to) const;
  ir::Function& function_;
  HostExprPool& pool_;
  std::vector<RegionId> open_;
};

}  // namespace cinch::lower
