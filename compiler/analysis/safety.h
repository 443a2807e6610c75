// Why a program is safe: for each access, store and loop, whether it is proved at compile time, or
// checked before launch, on the device, or by the reader of a payload.
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

/// Facts about every gather, scatter, slice, selection and loop, in program order, without exact
/// repeats. Use a program as lowering left it, since passes replace operators.
std::vector<SafetyFact> find_safety(const ir::Program& program);

}  // namespace cinch::analysis
