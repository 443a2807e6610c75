// Packed fields of a payload: ascending indices as Rice codes of their gaps, numbers as Elias delta
// codes. A code is taken apart so that all of them are written and read side by side: first the
// unary parts of all codes (so many zeros, then a one), then sections of fields of known width.
// Where each begins is a running sum; the ones of the unary parts are found by a selection over
// bits. docs/payload.md fixes the bits; sema has the bounds (published_wire.cpp).
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
  // Fields of some width for every number in turn.
  struct Section {
    ValueId value, width;  // u32; width: for each, or a scalar
  };
  struct Words;   // of a payload, while they are read
  struct Begins;  // of fields of codes
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
