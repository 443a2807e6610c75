// What makes a program safe, and how: each access, store and loop with whether it is proved while
// compiling, checked before launch, checked on the device, or checked by the reader of a payload.
#pragma once

#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

enum class SafetyKind : std::uint8_t { InBounds, NoRepeats, Ends };
enum class SafetyWay : std::uint8_t { Proved, PayloadReader, BeforeLaunch, OnDevice };

struct SafetyFact {
  ir::FunctionKind function;
  SafetyKind kind;
  SafetyWay way;
  std::string what;  // "store into 'pending'", "loop of at most 20 turns"
  dsl::Span span;
};

/// "in bounds", "free of repeats", "ends"; "proved", "checked by the payload's reader", …
const char* safety_kind_name(SafetyKind kind);
const char* safety_way_name(SafetyWay way);

/// Facts of every gather, scatter, slice, selection and loop, in the order of the program, without
/// exact repeats. Best asked of a program as lowering left it: passes open operators up.
std::vector<SafetyFact> find_safety(const ir::Program& program);

}  // namespace cinch::analysis
