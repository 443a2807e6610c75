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
// codes. The parts of all codes are written and read side by side: first the unary parts (some
// zeros, then a one), then sections of fields of known width. Running sums tell where each begins;
// a selection over bits finds the ones of the unary parts. docs/payload.md fixes the bits; sema has
// the bounds (items.cpp).

class PackingLowering : public BodyPart {
 public:
  using BodyPart::BodyPart;
  ValueId pack_field(std::size_t field, ValueId values);
  ValueId unpack_field(std::size_t field, ValueId words);

 private:
  // Fields of some width, one for every number.
  struct Section {
    ValueId value, width;  // u32; width: one for each value, or a scalar
  };
  struct Words;   // of a payload that is read
  struct Begins;  // begins of fields of codes
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
};

}  // namespace cinch::lower
