// Lowers the checked tree of one compressor to IR. It relies on sema (types final, names resolved,
// silent conversions explicit). It makes one ir::Function per body, with mutable variables and
// states in SSA form, lambdas over elements as `map`s, and every check that sema could not prove as
// a check op in the region where it belongs.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/lower/parts/body_part.h"
#include "dsl/sema/checked.h"
#include "dsl/source/source.h"

namespace cinch::lower {
// Lowers the whole program: its bodies, the initial values of its states, its constant tables. Host
// expressions keep their ids; lowering may add some. With `sources`, messages of failing checks
// begin with file (its last part, so that code is the same wherever a file lies), line and column.
// Throws InternalError (Bug: a tree that sema should have rejected; Limitation: an operator on
// arrays inside a lambda that cannot be lifted yet, named in the message).
ir::Program lower(const sema::CheckedProgram& checked, const dsl::SourceSet* sources = nullptr);

// Lowers one body: sets up its inputs (gradient, states, fields) and returns its results (fields,
// counts, states, an array). The classes of parts/ lower expressions and statements, one subject
// each.

class BodyLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  void lower_encode(const sema::Body& body);
  void lower_decode(const sema::Body& body);
  void lower_update(const sema::Body& body);  // finish, sync
  void lower_state_init(ExprId init, const Type& type);

 private:
  void enter_gradient();
  void enter_states();
  Type output_type();
  void hand_out_states();
  void hand_out_counts(const std::vector<ValueId>& fields);
  ValueId length_under(std::uint32_t count, const Type& type, ValueId value);
};

}  // namespace cinch::lower
