// What the parts of lowering share: the environment of the current body, and how values and lanes
// of the source become values of the IR. A part has no state of its own and is made where it is
// used.
#pragma once
#include <algorithm>
#include <cstdint>
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

// The state of one body: the current value of every variable, state and payload field.
struct BodyContext {
  // `to` owns host expressions and tables; `into` is filled.
  BodyContext(const Input& input, ir::Program& to, ir::Function& into)
      : checked(input.checked),
        sources(input.sources),
        out(to),
        function(into),
        emit(to, into),
        vars(input.checked.vars.size()) {}
  BodyContext(const BodyContext&) = delete;
  BodyContext& operator=(const BodyContext&) = delete;

  const sema::CheckedProgram& checked;
  const dsl::SourceSet* const sources;
  ir::Program& out;
  ir::Function& function;
  Emitter emit;
  std::vector<Lowered> vars;    // by VarId
  std::vector<ValueId> states;  // by state
  std::unordered_map<VarId, std::vector<ValueId>> payloads;
  ValueId gradient;
  std::unordered_map<std::uint32_t, ValueId> counts;  // second results of nonzero in open regions
  // What loops add to the numbers of draws: those before, and the rounds so far of those around
  // (i64).
  std::map<DrawSpace, HostExprId> draws_of_loops;
  std::map<DrawSpace, ValueId> draws_of_rounds;
  ValueId round;  // of the innermost `while` that counts its rounds
  Lanes lanes;
  bool in_combiner = false;
  bool is_prelude = false;  // a call of the prelude (prelude.h)
};

class BodyPart {
 public:
  explicit BodyPart(BodyContext& cx) : cx_(cx) {}

 protected:
  BodyContext& cx() const { return cx_; }
  Emitter& emit() const { return cx_.emit; }

  // ---- expressions
  const Expr& expr(ExprId id) const { return cx_.checked.exprs[id.index()]; }
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
  BodyContext& cx_;
};

}  // namespace cinch::lower
