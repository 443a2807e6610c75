// Packed fields of a payload: ascending indices as Rice codes of their gaps, numbers as Elias delta
// codes. The parts of all codes are written and read side by side: first the unary parts (some
// zeros, then a one), then sections of fields of known width. Running sums tell where each begins;
// a selection over bits finds the ones of the unary parts. docs/payload.md fixes the bits; sema has
// the bounds (published_wire.cpp).
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

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
