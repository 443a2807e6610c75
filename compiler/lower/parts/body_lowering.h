// Lowers one body of a program: how expressions, statements and lanes of the source become values
// of the IR.
#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/lower/emitter.h"
#include "dsl/sema/checked.h"

namespace cinch::lower {

using sema::Expr;
using sema::ExprId;
using sema::ExprKind;
using sema::Stmt;
using sema::StmtId;
using sema::StmtKind;
using sema::VarId;

// A value of the source as IR. With lanes 0 its IR type is the source's. With lanes 1 the IR type
// has one more leading dimension, the elements of the lambda ([L] for a scalar, [L, K] for a
// vector). With lanes 2 (a lambda over a matrix, or one inside another) a scalar of the source is a
// matrix [L, K] or broadcasts to it; vectors cannot be represented.
struct Lowered {
  ValueId id;
  std::uint8_t lanes = 0;
};

// The lambda over elements that is being lowered: 0, 1 or 2 dimensions of elements.
struct Lanes {
  std::uint8_t rank = 0;
  HostExprId dims[2] = {};
  std::optional<Lowered> active;  // bool: the lanes that reach the current code; absent: all
};

// The program to lower, and its source texts, if known.
struct Input {
  const sema::CheckedProgram& checked;
  const dsl::SourceSet* sources;
};

// Lowers one body: sets up its inputs (gradient, states, fields), lowers its statements and
// expressions, and returns its results (fields, counts, states, an array).
class BodyLowering {
 public:
  // `to` owns host expressions and tables; `into` is filled.
  BodyLowering(const Input& input, ir::Program& to, ir::Function& into)
      : checked_(input.checked),
        sources_(input.sources),
        out_(to),
        function_(into),
        emit_(to, into),
        vars_(input.checked.vars.size()) {}
  BodyLowering(const BodyLowering&) = delete;
  BodyLowering& operator=(const BodyLowering&) = delete;

  void lower_encode(const sema::Body& body);
  void lower_decode(const sema::Body& body);
  void lower_update(const sema::Body& body);  // finish, sync
  void lower_state_init(ExprId init, const Type& type);

 protected:
  // Expressions, statements, and blocks that end in a payload.
  Lowered lower(const Expr& e);
  void lower(const Stmt& s);
  // A Block ending in a WireLiteral: its fields.
  std::vector<ValueId> lower_payload(ExprId id);

  // Control flow. A branch or loop body is a region. What it assigns becomes results of the if_else
  // or loop-carried values, so that the function is in SSA form. Inside a lambda over elements, a
  // condition that differs between lanes becomes a select, and a loop runs while any lane is
  // active.
  Lowered lower_if(const Expr& e);
  void lower_for(const Stmt& s);
  void lower_while(const Stmt& s);

  // Operators that select, pack or move elements, and those on matrices.
  Lowered lower_move(const Expr& e);
  /// Ascending places where the mask is true; `len` is their count, entry `count` of the program's.
  ValueId select_counted(ValueId mask, std::uint32_t count, HostExprId len, HostExprId limit);
  Lowered lower_builtin(const Expr& e);

  // Lambdas. A lambda over elements is lowered once, on arrays of all elements ("lanes", see
  // Lowered). A lambda over pairs becomes a Combiner.
  Lowered lower_map(const Expr& e);
  ir::CombinerId lower_combiner(ExprId lambda, DType dtype);

  Lowered lower_reduce(const Expr& e);

  // Scans and sorts. Inside a lambda they run along the rows of a matrix that has one row per
  // element.
  Lowered lower_scan(const Expr& e);
  Lowered lower_sort(const Expr& e);

  // Emits checks that sema could not prove, and converts indices for them.
  ValueId as_index(ValueId value);  // converts integers to u32; negative ones become too large
  // Checks only active lanes.
  void check_index(Lowered index, const Type& index_type, HostExprId size, const std::string& text);
  void check_condition(Lowered condition, const std::string& text);
  void check_all(ValueId mask, const std::string& text);

  // Reads and stores at indices.
  Lowered lower_index(const Expr& e);
  Lowered lower_slice(const Expr& e);
  void lower_assign_indexed(const Stmt& s);

  // Small arrays inside a lambda over elements, which each element makes, joins and stores into.
  // Their sizes are constants, so an array of K is a matrix [L, K] over the L elements, and a store
  // is a select over its columns.
  // Joins scalars and vectors, as `concat` and a table literal do.
  Lowered join_lanes(const Expr& e, const std::vector<Lowered>& parts);
  // target[index] = value, in each element's own row.
  void assign_lanes(const Stmt& s);

  // Packed fields of a payload: ascending indices as Rice codes of their gaps, numbers as Elias
  // delta codes. prelude/packing.cinch packs and unpacks them. docs/payload.md fixes the bits; sema
  // has the bounds (wire_items.cpp).
  ValueId pack_field(std::size_t field, std::span<const ValueId> fields);
  ValueId unpack_field(std::size_t field, std::span<const ValueId> fields);

  // ---- expressions
  const Expr& expr(ExprId id) const { return checked_.exprs[id.index()]; }
  Lowered value(ExprId id);
  ValueId uniform(ExprId id);  // a value that must be the same for all elements
  bool gives_value(ExprId id) const;
  ValueId host_scalar(HostExprId size, DType dtype);  // also of expressions with counts
  ValueId num_draws(HostExprId draws);                // of loops, as an i64
  // The axis of an operator on this array; a vector has only one.
  static std::int8_t axis_of(const Expr& e, const Type& type);

  // ---- lanes
  ValueId aligned(Lowered v, const Type& target, int lanes);
  int lane_rank(const Type& source, int lanes);
  ValueId full(Lowered v, const Type& source, int lanes);  // in the whole shape of the lanes
  Type lifted(const Type& source, int lanes);
  Lowered select_lanes(Lowered condition, Lowered a, Lowered b, const Type& source);
  static bool differ_in_lanes(const std::vector<Lowered>& values) {
    return std::any_of(values.begin(), values.end(), [](const Lowered& v) { return v.lanes != 0; });
  }

  // ---- messages
  std::string located(const dsl::Span& span, const std::string& text) const;
  // Throws a limitation: a feature of the language that this version lacks. Names the place.
  [[noreturn]] void limitation(const std::string& what) const;

 private:
  Lowered lower_table(const Expr& e);
  Lowered lower_var(const Expr& e);
  Lowered lower_block(const Expr& e);
  Lowered lower_elementwise(const Expr& e, OpKind kind);
  void lower_assert(const Stmt& s);
  void lower_let_payload(const Stmt& s);
  void assign(const Stmt& s);
  // What a branch or loop changes, in the order in which regions yield it.
  struct Carried {
    std::vector<VarId> vars;
    std::vector<std::uint32_t> states;
    std::map<DrawSpace, LoopDraws> draws;  // of a `while`, which then counts its rounds
  };
  Carried carried_of(const std::vector<ExprId>& roots);
  Carried carried_of_while(const Stmt& s);
  std::vector<ValueId> current(const Carried& carried);
  void set_current(const Carried& carried, const std::vector<ValueId>& values);
  std::vector<ValueId> enter_args(const Carried& carried, const std::vector<ValueId>& inits);
  // Every round has draws of its own.
  void number_round(const std::map<DrawSpace, LoopDraws>& draws, ValueId round);
  void number_after(const std::map<DrawSpace, LoopDraws>& draws,
                    const std::map<DrawSpace, HostExprId>& before);
  // Lowers one branch or loop body as a region, which yields the result of `body`. The environment
  // is restored afterwards.
  RegionId lower_region(const Carried& carried, const std::function<std::vector<ValueId>()>& body);
  std::vector<ValueId> branch_results(ExprId branch, const Carried& carried, const Type* type);
  std::vector<ValueId> loop_body_results(ExprId body, const Carried& carried);

  Lowered lower_lane_if(const Expr& e);
  void lower_lane_while(const Stmt& s);
  void activate(Lowered condition);
  Lowered lower_plain(const Expr& e, OpKind kind);  // keeps operands and type as they are
  Lowered lower_filter(const Expr& e);
  Lowered lower_concat(const Expr& e);
  Lowered lower_histogram(const Expr& e);
  Lowered lower_reshape(const Expr& e);
  Lowered lower_product(const Expr& e);
  Lowered lower_hadamard(const Expr& e);
  ValueId nonzero(const Expr& e, ValueId mask, HostExprId len);
  Lowered lower_pack(const Expr& e);
  Lowered lower_scatter(const Expr& e);
  Lowered lower_scatter_keep(const Expr& e);
  Lowered lower_scatter_join(const Expr& e);
  ValueId scatter_index(const Expr& e, bool must_be_unique);
  Lowered lower_fill(const Expr& e);
  Lowered lower_len(const Expr& e);
  Lowered lower_random(const Expr& e);
  Lowered lower_stochastic_round(const Expr& e);
  ir::Attrs draw_attrs(const Expr& e) const;
  std::vector<ValueId> draw_operands(const Expr& e, std::vector<ValueId> operands);
  Lowered lower_collective(const Expr& e);
  Lowered lower_counted_collective(const Expr& e);
  ValueId named_rank(const Expr& e);  // receiver of a sendrecv, root of a broadcast
  /// Row w goes to rank w of all, or of the group.
  ValueId exchange_rows(const Expr& e, ValueId rows);
  ValueId gather_rows(const Expr& e, ValueId x);
  ValueId join_rows(ValueId rows, ScalarOp op);
  ValueId parts_of_ranks(ValueId x, HostExprId size);
  ValueId reduce_in_parts(const Expr& e, ValueId x);
  Lowered lower_map_in_lanes(const Expr& e, const Expr& lambda);
  std::optional<ScalarOp> plain_combiner(const Expr& lambda) const;
  struct Reduction;
  Reduction prepare(const Expr& e, const std::vector<ExprId>& arrays, ExprId mask);
  std::vector<ValueId> emit_reduce(const Reduction& r, std::vector<ValueId> values,
                                   std::vector<ValueId> inits, ir::CombinerId combiner);
  ValueId reduce_op(const Reduction& r, ValueId value, ScalarOp op, ValueId init);
  ValueId reduce_count(const Reduction& r, DType dtype);
  ValueId reduce_variance(const Reduction& r, DType dtype);
  ValueId reduce_place(const Reduction& r, bool of_least);
  ir::CombinerId moments_combiner(DType dtype);
  ir::CombinerId place_combiner(DType dtype, bool of_least);
  ValueId positions_along(const Reduction& r);
  ValueId lowest(DType dtype);
  ValueId highest(DType dtype);
  ValueId reduced(const Expr& e, const Reduction& r);
  ValueId reduced_magnitudes(const Expr& e, const Reduction& r);
  Lowered lower_search(const Expr& e);
  Lowered lower_rank_of_some(const Expr& e);
  ValueId order_of(ValueId keys, const ir::Attrs& attrs);
  Lowered sorted_values(const Expr& e, ValueId order, std::uint8_t lanes, int axis);
  // True also for lanes that are not active.
  ValueId holds_or_inactive(Lowered holds, const Type& type);
  Lowered lower_index_of_lanes(const Expr& e, Lowered base, Lowered index);
  void check_slice_end(const Expr& e, HostExprId size);
  Lowered guard_index(const Lowered& active, Lowered& base, const Type& base_type, Lowered index,
                      const Type& index_type);
  // The message of a check at this place.
  std::string index_text(const Expr& e) const;
  std::string describe(ExprId array) const;
  ValueId lane_columns(HostExprId size);
  void enter_gradient();
  void enter_states();
  Type output_type();
  void hand_out_states();
  void hand_out_counts(const std::vector<ValueId>& fields);
  ValueId length_under(std::uint32_t count, const Type& type, ValueId value);

 protected:
  const sema::CheckedProgram& checked_;
  const dsl::SourceSet* const sources_;
  ir::Program& out_;
  ir::Function& function_;
  Emitter emit_;
  // The current value of every variable, state and payload field.
  std::vector<Lowered> vars_;    // by VarId
  std::vector<ValueId> states_;  // by state
  std::unordered_map<VarId, std::vector<ValueId>> payloads_;
  ValueId gradient_;
  std::unordered_map<std::uint32_t, ValueId> counts_;  // second results of nonzero in open regions
  // What loops add to the numbers of draws: those before, and the rounds so far of those around
  // (i64).
  std::map<DrawSpace, HostExprId> draws_of_loops_;
  std::map<DrawSpace, ValueId> draws_of_rounds_;
  ValueId round_;  // of the innermost `while` that counts its rounds
  Lanes lanes_;
  bool in_combiner_ = false;
  bool is_prelude_ = false;  // a call of the prelude (prelude.h)
};

}  // namespace cinch::lower
