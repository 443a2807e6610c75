// Reading and storing at indices: gathers, slices, indexed assignment.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {
// Emits checks that sema could not prove, and converts indices for them.

class Checks : public BodyPart {
 public:
  using BodyPart::BodyPart;
  ValueId as_index(ValueId value);  // converts integers to u32; negative ones become too large
  // Checks only active lanes.
  void index(Lowered index, const Type& index_type, HostExprId size, const std::string& text);
  void condition(Lowered condition, const std::string& text);
  void all(ValueId mask, const std::string& text);

 private:
  // True also for lanes that are not active.
  ValueId holds_or_inactive(Lowered holds, const Type& type);
};

class AccessLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  Lowered lower_index(const Expr& e);
  Lowered lower_slice(const Expr& e);
  void lower_assign_indexed(const Stmt& s);

 private:
  Lowered lower_index_of_lanes(const Expr& e, Lowered base, Lowered index);
  void check_slice_end(const Expr& e, HostExprId size);
  Lowered guard_index(const Lowered& active, Lowered& base, const Type& base_type, Lowered index,
                      const Type& index_type);
  // The message of a check at this place.
  std::string index_text(const Expr& e) const;
  std::string describe(ExprId array) const;
};

// Small arrays inside a lambda over elements, which each element makes, joins and stores into.
// Their sizes are constants, so an array of K is a matrix [L, K] over the L elements, and a store
// is a select over its columns.

class LaneArrays : public BodyPart {
 public:
  using BodyPart::BodyPart;
  // Joins scalars and vectors, as `concat` and a table literal do.
  Lowered join(const Expr& e, const std::vector<Lowered>& parts);
  // target[index] = value, in each element's own row.
  void assign(const Stmt& s);

 private:
  ValueId columns(HostExprId size);
};

// Packed fields of a payload: ascending indices as Rice codes of their gaps, numbers as Elias delta
// codes. prelude/packing.cinch packs and unpacks them. docs/payload.md fixes the bits; sema has the
// bounds (wire_items.cpp).

class PackingLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  ValueId pack_field(std::size_t field, ValueId values);
  ValueId unpack_field(std::size_t field, ValueId words);
};

}  // namespace cinch::lower
