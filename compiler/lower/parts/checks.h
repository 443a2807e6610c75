// Emits checks that sema could not prove, and converts indices for them.
#pragma once
#include <string>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

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

}  // namespace cinch::lower
