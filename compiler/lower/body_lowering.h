// Lowers one body: sets up its inputs (gradient, states, fields) and returns its results (fields,
// counts, states, an array). The classes of parts/ lower expressions and statements, one subject
// each.
#pragma once
#include <cstdint>
#include <vector>

#include "compiler/lower/parts/body_part.h"
#include "dsl/sema/checked.h"

namespace cinch::lower {

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
