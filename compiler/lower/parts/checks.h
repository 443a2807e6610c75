// Checks that sema could not prove, and indices as checks take them.
#pragma once
#include <string>

#include "compiler/lower/parts/body_part.h"

namespace cinch::lower {

class Checks : public BodyPart {
 public:
  using BodyPart::BodyPart;
  ValueId as_index(ValueId value);  // any integers to u32; negative ones become too large
  // The check holds for the lanes that are active.
  void index(Lowered index, const Type& index_type, HostExprId size, const std::string& text);
  void condition(Lowered condition, const std::string& text);
  void all(ValueId mask, const std::string& text);

 private:
  // True also where a lane is not active.
  ValueId holds_or_inactive(Lowered holds, const Type& type);
};

}  // namespace cinch::lower
