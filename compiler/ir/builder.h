// Builder: appends ops to a region of a function and infers their result types. Callers name only
// what is not implied. It assumes that operands fit: the verifier reports those that do not, and a
// broken broadcast is an InternalError at once. Host sizes go to the program's own pool.
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/ir/ops.h"
#include "compiler/ir/types.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::ir {

using ValueIds = std::vector<ValueId>;

/// A function with an empty body region (no yield yet).
Function make_function(FunctionKind kind);

class Builder {
 public:
  /// Appends to the end of the body. `program` and `function` must not move while the builder
  /// lives.
  Builder(Program& program, Function& function);

  Program& program() { return program_; }
  Function& function() { return function_; }
  HostExprPool& exprs() { return *program_.info.exprs; }
  const Type& type(ValueId value) const { return function_.values[value.index()].type; }
  DType dtype(ValueId value) const { return type(value).dtype; }
  std::vector<Type> types_of(std::span<const ValueId> values) const;

  // The insertion point.
  RegionId region() const { return region_; }
  std::size_t position() const {
    return std::min(position_, function_.regions[region_.index()].ops.size());
  }
  RegionId new_region();
  /// Appends an `arg` op and lists it in the region; all args must come before other ops.
  ValueId add_arg(RegionId region, Type type, std::string name = {});
  ValueIds add_args(RegionId region, std::span<const Type> types);
  /// Inserts at the end of the region, or before the op at `position`.
  void set_insertion(RegionId region);
  void set_insertion(RegionId region, std::size_t position);
  /// Sets the span of all later ops.
  void set_span(Span span) { span_ = span; }
  Span span() const { return span_; }
  void set_name(ValueId value, std::string name);

  /// Adds any op with results of these types. The functions below are shorter forms.
  OpId add(OpKind kind, ValueIds operands, std::vector<Type> types, Attrs attrs = {},
           std::vector<RegionId> regions = {});
  /// Puts an op that is in no region at the insertion point.
  void place(OpId op) { insert(region_, op); }
  /// Copies the region's ops except its yield to the insertion point, with `args` for its args.
  /// Returns the values that it would have yielded.
  ValueIds inline_here(RegionId region, const ValueIds& args);
  /// Ends the region at the insertion point.
  void yield(ValueIds values);
  ValueId result(OpId op, std::size_t index = 0) const {
    return function_.ops[op.index()].results[index];
  }

  // Leaves.
  /// A constant of an integer type, bool (0, 1) or float. `value` is exact only as far as a
  /// double is; use the integer form for wide integers.
  ValueId constant(DType dtype, double value);
  ValueId constant_int(DType dtype, std::int64_t value);
  ValueId constant_bool(bool value) { return constant_int(kBool, value); }
  /// A constant from its bits, as Attrs::bits holds them (f64 bits of a float, i64 of an
  /// integer).
  ValueId constant_bits(DType dtype, std::uint64_t bits);
  /// Adds the table to the program (equal tables are shared).
  ValueId const_array(Table table);
  /// The parameter, in its own type.
  ValueId param(std::uint32_t index);
  ValueId host_size(HostExprId size, DType dtype);
  /// Values of a size that may hold counts, which only the device knows. `count_of` returns each
  /// count as a u32 scalar.
  using CountOf = std::function<ValueId(std::uint32_t count)>;
  ValueId size_scalar(HostExprId size, DType dtype, const CountOf& count_of);
  /// The gradient: [f32; n], or [f32; r, c] in a matrix program.
  ValueId gradient();
  ValueId state(std::uint32_t index);
  ValueId field(std::uint32_t index);
  ValueId count_value(std::uint32_t index);

  // Generators. `shape` gives rank and sizes; its dtype is ignored if the kind fixes the type.
  ValueId iota(HostExprId size);
  /// Repeats a scalar, [r, 1] or [1, c] to the shape. Returns the value itself if it has the
  /// shape.
  ValueId fill(ValueId value, Type shape);
  /// random (f32), random_bits (u32), normal (f32). `iteration`: see ops.def, may be absent.
  ValueId draw(OpKind kind, Type shape, DrawSite site, ValueId iteration = {});
  ValueId random_index(HostExprId num, HostExprId below, DrawSite site, ValueId iteration = {});

  // Element-wise operators. Operands broadcast and have one type (except select's condition).
  ValueId map(ScalarOp op, ValueId a);
  ValueId map(ScalarOp op, ValueId a, ValueId b);
  ValueId map(ScalarOp op, ValueId a, ValueId b, ValueId c);
  ValueId map(ScalarOp op, ValueIds operands);
  ValueId select(ValueId condition, ValueId a, ValueId b) {
    return map(ScalarOp::select, condition, a, b);
  }
  /// Returns the value itself if it has that type already.
  ValueId convert(ValueId value, DType dtype);
  ValueId bitcast(ValueId value, DType dtype);
  ValueId stochastic_round(ValueId value, DrawSite site, ValueId iteration = {});

  // Access.
  ValueId gather(ValueId x, ValueId index);
  ValueId gather_along(ValueId x, ValueId index, std::int8_t axis);
  ValueId slice(ValueId x, HostExprId begin, HostExprId length);
  ValueId concat(ValueIds parts, std::int8_t axis = kAll);
  /// Returns the value itself if it has the shape already. Ignores `shape`'s dtype.
  ValueId reshape(ValueId x, Type shape, bool proved = false);
  ValueId transpose(ValueId x);
  ValueId keep(ValueId x);
  ValueId chunk(ValueId x, HostExprId width);
  ValueId unchunk(ValueId x, HostExprId size);
  /// Packs to ceil(elements * bits / 8) bytes.
  ValueId pack(ValueId x, int bits);
  /// Unpacks `size` elements of u<bits>.
  ValueId unpack(ValueId bytes, int bits, HostExprId size);

  // Reductions and scans. They skip elements that the mask excludes. The mask has the same shape,
  // or broadcasts.
  CombinerId combiner(ScalarOp op);
  /// `body` gets a0…aN-1 and b0…bN-1 and returns N scalars of the same types.
  using CombineBody =
      std::function<ValueIds(std::span<const ValueId> a, std::span<const ValueId> b)>;
  CombinerId combiner(std::span<const DType> types, const CombineBody& body);
  ValueIds reduce(ValueIds values, ValueIds inits, CombinerId combiner, std::int8_t axis = kAll,
                  ValueId mask = {});
  /// Reduces by one operation, from its identity (see identity()).
  ValueId reduce(ScalarOp op, ValueId x, std::int8_t axis = kAll, ValueId mask = {});
  ValueIds scan(ValueIds values, ValueIds inits, CombinerId combiner, std::int8_t axis = kAll,
                bool exclusive = false);
  ValueId scan(ScalarOp op, ValueId x, std::int8_t axis = kAll, bool exclusive = false);
  /// The identity of `op`: for min +inf, for max -inf (integers: the end of the type), for
  /// bit_and all ones.
  ValueId identity(ScalarOp op, DType dtype);

  // Selection.
  struct Nonzero {
    ValueId index, count;
  };
  /// `count_index` names an entry of ProgramInfo::counts, whose bound is the result's bound.
  Nonzero nonzero(ValueId mask, std::uint32_t count_index, HostExprId limit = {});
  /// Adds an entry to ProgramInfo::counts and returns its number.
  std::uint32_t new_count(std::string name, HostExprId bound);
  ValueId top_k(ValueId x, HostExprId k, std::int8_t axis = kAll);
  ValueId kth_largest(ValueId x, HostExprId k, std::int8_t axis = kAll);
  ValueId argsort(ValueId x, bool descending = false, std::int8_t axis = kAll);

  // Stores. A scalar value goes to every index.
  ValueId scatter(ValueId base, ValueId index, ValueId values);
  // `ascends`: each index is at least the one before.
  ValueId scatter_add(ValueId index, ValueId values, HostExprId size, bool ascends = false);
  /// `op`: min or max.
  ValueId scatter_reduce(ScalarOp op, ValueId index, ValueId values, HostExprId size,
                         bool in_rows = false);
  ValueId histogram(ValueId values, HostExprId bins, ValueId mask = {});

  // Matrix.
  ValueId matmul(ValueId a, ValueId b);
  ValueId orthonormalize(ValueId x);
  ValueId butterflies(ValueId x);
  /// Returns 1 for the k largest keys of each row (the first of equal ones), else 0.
  ValueId mark_largest(ValueId keys, ValueId k);
  /// [rows, k]: the columns of the k ones in each row.
  ValueId list_marked(ValueId marks, HostExprId k);
  ValueId hadamard(ValueId x);

  // Checks.
  void check(ValueId condition, std::string message);
  void check_index(ValueId index, HostExprId below, std::string what);
  void check_unique(ValueId index, HostExprId cells, std::string what);
  void check_host(HostExprId condition, std::string message);

  // Control. Bodies run with the insertion point in their region and return what it yields.
  using Body = std::function<ValueIds()>;
  using CarriedBody = std::function<ValueIds(std::span<const ValueId> carried)>;
  using LoopBody = std::function<ValueIds(ValueId i, std::span<const ValueId> carried)>;
  using Condition = std::function<ValueId(std::span<const ValueId> carried)>;
  ValueIds if_else(ValueId condition, const Body& then_body, const Body& else_body);
  /// i counts from begin to end - 1, as i64.
  ValueIds for_loop(HostExprId begin, HostExprId end, ValueIds inits, const LoopBody& body);
  ValueIds while_loop(HostExprId at_most, ValueIds inits, const Condition& condition,
                      const CarriedBody& body);

  // Collectives (sync only).
  ValueId all_reduce(ValueId x, ScalarOp op, bool mean = false);
  ValueId all_gather(ValueId x);
  /// `group`, `stride`: of groups of ranks; invalid: all ranks.
  ValueId all_to_all(ValueId x, HostExprId group = {}, HostExprId stride = {});
  ValueId reduce_scatter(ValueId x, ScalarOp op);
  ValueId broadcast(ValueId x, std::uint32_t root);
  ValueId broadcast_from(ValueId x, ValueId root, std::string text);
  ValueId send_receive(ValueId x, ValueId to, std::string text);

 protected:
  ValueId add_one(OpKind kind, ValueIds operands, Type type, Attrs attrs = {},
                  std::vector<RegionId> regions = {});
  void insert(RegionId region, OpId op);
  /// Makes a region; `body` fills it. The insertion point is restored afterwards.
  RegionId filled_region(const std::function<ValueIds(RegionId)>& body);

 private:
  ValueId size_with_counts(HostExprId size, const CountOf& count_of,
                           std::map<HostExprId, ValueId>& made);
  ValueId size_of_operands(const HostExprNode& node, const CountOf& count_of,
                           std::map<HostExprId, ValueId>& made);
  ValueId spread(ValueId base, ValueId index, ValueId values);
  void check_all_uses(OpKind kind, ValueId index, HostExprId size, std::string text);

  Program& program_;
  Function& function_;
  RegionId region_;
  std::size_t position_ = kAtEnd;
  Span span_;
  static constexpr std::size_t kAtEnd = ~std::size_t{0};
};

}  // namespace cinch::ir
