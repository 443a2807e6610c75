// Lowering of one body. Environment: the current value of every variable, state and payload field.
// Inside a lambda over elements the environment holds "lanes": a value of the source that differs
// from element to element is an array over all elements at once. The member functions lie in
// lower_*.cpp by subject.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/lower/assigned.h"
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
// has one leading dimension more, the elements of the lambda ([L] for a scalar, [L, K] for a
// vector). With lanes 2 (a lambda over a matrix, or one inside another) a scalar of the source is a
// matrix [L, K] or broadcasts to it; vectors have no such form.
struct Lowered {
  ValueId id;
  std::uint8_t lanes = 0;
};

// The lambda over elements that is being lowered: 0, 1 or 2 dimensions of elements.
struct Lanes {
  std::uint8_t rank = 0;
  HostExprId dims[2] = {};
  std::optional<Lowered> active;  // bool: where the code at hand is reached; absent: everywhere
};

// What is lowered, and the texts that it came from, if known.
struct Input {
  const sema::CheckedProgram& checked;
  const dsl::SourceSet* sources;
};

class BodyLowering {
 public:
  // `out` owns host expressions and tables; `function` is filled.
  BodyLowering(const Input& input, ir::Program& out, ir::Function& function);

  void lower_encode(const sema::Body& body);
  void lower_decode(const sema::Body& body);
  void lower_update(const sema::Body& body);  // finish, sync
  void lower_state_init(ExprId init, const Type& type);

 private:
  // ---- lower_body.cpp: leaves and results
  void enter_gradient();
  void enter_states();
  Type output_type();
  void hand_out_states();
  void hand_out_counts(const std::vector<ValueId>& fields);
  ValueId length_under(std::uint32_t count, const Type& type, ValueId value);
  std::vector<ValueId> lower_payload(ExprId id);      // a Block ending in a WireLiteral: its fields
  ValueId host_scalar(HostExprId size, DType dtype);  // also of expressions with counts
  ValueId count_value(std::uint32_t count);

  // ---- lower_packing.cpp
  // Packed numbers (docs/payload.md): the first part of each code in unary, then fields of some
  // width for every number in turn, section after section.
  struct Section {
    ValueId value, width;  // u32; width: for each, or a scalar
  };
  struct Words;   // of a payload, while they are read
  struct Begins;  // of fields of codes
  ValueId pack_field(std::size_t field, ValueId values);
  ValueId unpack_field(std::size_t field, ValueId words);
  Begins begins_of(HostExprId len, ValueId width, ValueId from);
  ValueId pack_codes(ValueId zeros, const std::vector<Section>& sections,
                     const sema::CheckedField& field, const std::string& name);
  ValueId words_from(ValueId cells, ValueId begin);
  std::vector<Section> elias_sections(ValueId values, ValueId& zeros);
  ValueId gaps_of(ValueId index);
  ValueId rice_width(HostExprId num, HostExprId below);
  Words open_words(ValueId words, const sema::CheckedField& field, const std::string& name);
  ValueId element_or_zero(ValueId values, ValueId at);
  ValueId word_at(const Words& words, ValueId word);
  ValueId read_section(Words& words, ValueId width);
  ValueId unpack_rice(Words& words, const sema::CheckedField& field);
  ValueId unpack_elias(Words& words, const sema::CheckedField& field);
  ValueId accept_words(const Words& words, ValueId holds);

  // ---- lower_expression.cpp
  Lowered value(ExprId id);
  ValueId uniform(ExprId id);  // a value that must not differ from element to element
  Lowered lower_kind(const Expr& e);
  Lowered lower_table(const Expr& e);
  Lowered lower_var(const Expr& e);
  Lowered lower_block(const Expr& e);
  Lowered lower_elementwise(const Expr& e, OpKind kind);
  bool gives_value(ExprId id) const;

  // ---- lower_access.cpp
  Lowered lower_index(const Expr& e);
  Lowered lower_index_of_lanes(const Expr& e, Lowered base, Lowered index);
  Lowered lower_slice(const Expr& e);
  void check_slice_end(const Expr& e, HostExprId size);
  ValueId as_index(ValueId value);  // any integers to u32; negative ones become too large
  Lowered guard_index(const Lowered& active, Lowered& base, const Type& base_type, Lowered index,
                      const Type& index_type);
  // The check holds for the lanes that are active.
  void check_index(Lowered index, const Type& index_type, HostExprId size, const std::string& text);
  void check_all(ValueId mask, const std::string& text);
  // What a check at this place says when it fails.
  std::string index_text(const Expr& e) const;
  std::string located(const dsl::Span& span, const std::string& text) const;
  std::string describe(ExprId array) const;
  void lower_assign_indexed(const Stmt& s);

  // ---- lower_statement.cpp
  void lower_statement(const Stmt& s);
  void lower_assert(const Stmt& s);
  void lower_let_payload(const Stmt& s);
  void assign(const Stmt& s);
  Lowered lower_if(const Expr& e);
  void lower_for(const Stmt& s);
  void lower_while(const Stmt& s);
  // What changes in a branch or loop, in the order in which regions hand it out.
  struct Carried {
    std::vector<VarId> vars;
    std::vector<std::uint32_t> states;
    std::map<std::uint32_t, std::int64_t> draws;  // sites inside, by draw space
  };
  Carried carried_of(const std::vector<ExprId>& roots, bool is_loop);
  std::vector<ValueId> current(const Carried& carried);
  void set_current(const Carried& carried, const std::vector<ValueId>& values);
  std::vector<ValueId> enter_args(const Carried& carried, const std::vector<ValueId>& inits);
  void leave_loop(const Carried& carried, const std::vector<ValueId>& results,
                  const std::vector<ExprId>& drawn_again);
  // One branch or loop body as a region; what `body` gives is yielded, and the environment is as
  // before.
  RegionId lower_region(const Carried& carried, const std::function<std::vector<ValueId>()>& body);
  std::vector<ValueId> branch_results(ExprId branch, const Carried& carried, const Type* type);
  std::vector<ValueId> loop_body_results(ExprId body, const Carried& carried);

  // ---- lower_lanes.cpp
  Lowered lower_map(const Expr& e);
  Lowered lower_map_in_lanes(const Expr& e, const Expr& lambda);
  Lowered lower_lane_if(const Expr& e);
  void lower_lane_while(const Stmt& s);
  ValueId aligned(Lowered v, const Type& target, int lanes);
  int lane_rank(const Type& source, int lanes);
  ValueId full(Lowered v, const Type& source, int lanes);  // in the whole shape of the lanes
  Type lifted(const Type& source, int lanes);
  Lowered select_lanes(Lowered condition, Lowered a, Lowered b, const Type& source);
  void activate(Lowered condition);
  ir::CombinerId lower_combiner(ExprId lambda, DType dtype);
  std::optional<ScalarOp> plain_combiner(const Expr& lambda) const;

  // ---- lower_lane_arrays.cpp
  ValueId lane_columns(HostExprId size);
  Lowered join_in_lanes(const Expr& e, const std::vector<Lowered>& parts);
  void assign_in_lanes(const Stmt& s);

  // ---- lower_builtin.cpp
  Lowered lower_builtin(const Expr& e);
  Lowered lower_fill(const Expr& e);
  Lowered lower_len(const Expr& e);
  Lowered lower_random(const Expr& e);
  Lowered lower_stochastic_round(const Expr& e);
  ir::Attrs draw_attrs(const Expr& e) const;
  std::vector<ValueId> draw_operands(const Expr& e, std::vector<ValueId> operands);
  Lowered lower_collective(const Expr& e);
  Lowered lower_counted_collective(const Expr& e);
  ValueId receiver(const Expr& e);                  // of a sendrecv, proved or checked to be a rank
  Lowered lower_plain(const Expr& e, OpKind kind);  // operands and type as they stand

  // ---- lower_move.cpp: filter, pack, move, matrix
  Lowered lower_move(const Expr& e);
  Lowered lower_filter(const Expr& e);
  Lowered lower_concat(const Expr& e);
  Lowered lower_histogram(const Expr& e);
  Lowered lower_reshape(const Expr& e);
  Lowered lower_product(const Expr& e);
  ValueId nonzero(const Expr& e, ValueId mask, HostExprId len);
  /// Ascending places where the mask holds; `len` is their count, entry `count` of the program's.
  ValueId select_counted(ValueId mask, std::uint32_t count, HostExprId len, HostExprId limit);
  Lowered lower_pack(const Expr& e);
  Lowered lower_scatter(const Expr& e);
  Lowered lower_scatter_keep(const Expr& e);
  Lowered lower_scatter_join(const Expr& e);
  ValueId elements_or_zeros(ValueId values, ValueId place, const Type& result);
  ValueId places_of_rows(ValueId row, HostExprId cols);
  ValueId scatter_index(const Expr& e, bool must_be_unique);
  ValueId stored_at(ValueId values, ValueId index, const Type& target);

  // ---- lower_reduce.cpp, lower_scan_sort.cpp
  struct Reduction;
  Lowered lower_reduce(const Expr& e);
  Reduction prepare(const Expr& e, const std::vector<ExprId>& arrays, ExprId mask);
  std::vector<ValueId> emit_reduce(const Reduction& r, std::vector<ValueId> values,
                                   std::vector<ValueId> inits, ir::CombinerId combiner);
  ValueId reduce_op(const Reduction& r, ValueId value, ScalarOp op, ValueId init);
  ValueId reduce_count(const Reduction& r, DType dtype);
  ValueId reduce_std(const Reduction& r, DType dtype);
  ValueId reduce_argmax(const Reduction& r);
  ir::CombinerId moments_combiner(DType dtype);
  ir::CombinerId argmax_combiner(DType dtype);
  ValueId positions_along(const Reduction& r);
  ValueId lowest(DType dtype);
  ValueId highest(DType dtype);
  ValueId reduced(const Expr& e, const Reduction& r);
  ValueId reduced_magnitudes(const Expr& e, const Reduction& r);
  Lowered lower_scan(const Expr& e);
  Lowered lower_sort(const Expr& e);
  ValueId order_of(ValueId keys, const ir::Attrs& attrs);
  Lowered sorted_values(const Expr& e, ValueId order, std::uint8_t lanes, int axis);
  std::int8_t axis_of(const Expr& e, const Type& type) const;
  ValueId along(ValueId array, ValueId order, int axis);

  const Expr& expr(ExprId id) const { return checked_.exprs[id.index()]; }
  static bool differ_in_lanes(const std::vector<Lowered>& values) {
    return std::any_of(values.begin(), values.end(), [](const Lowered& v) { return v.lanes != 0; });
  }
  // Of what the language has and this version does not; names the place.
  [[noreturn]] void limitation(const std::string& what) const;

  const sema::CheckedProgram& checked_;
  const dsl::SourceSet* const sources_;
  ir::Program& out_;
  ir::Function& function_;
  Emitter emit_;
  std::vector<Lowered> vars_;    // by VarId
  std::vector<ValueId> states_;  // by state
  std::unordered_map<VarId, std::vector<ValueId>> payloads_;
  ValueId gradient_;
  std::unordered_map<std::uint32_t, ValueId> counts_;  // second results of nonzero in open regions
  // What loops drew beyond their sites, by draw space: i64, added to the sites of later draws.
  std::map<std::uint32_t, ValueId> draw_offsets_;
  Lanes lanes_;
  bool in_combiner_ = false;
};

}  // namespace cinch::lower
