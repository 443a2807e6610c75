// What is proved of a program at compile time: how values depend on an input, and why it is safe.
#pragma once
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

/// What is known of one value; zero is both constant and linear.
struct Dependence {
  bool is_constant = false;  // the same for every input, and on every rank
  bool is_linear = false;    // homogeneous and linear in the input
};

/// For each value of the function, its dependence on the input: the fields (decode), or gradient
/// and states together (encode, finish, sync).
std::vector<Dependence> find_dependences(const ir::Program& program, const ir::Function& function);

/// Can payloads be added field by field (language.md, `by sum`)? Gather if some field does not say
/// so or has a counted length; SumProved if decode is linear in the fields or encode in the
/// gradient; else SumToTest.
rt::Aggregation find_aggregation(const ir::Program& program);

/// Does the program have a `finish` whose update and new states are linear in the sum and in the
/// old states, except for saturation near the ends of f32?
bool is_finish_linear(const ir::Program& program);
/// Do all fields add up, and are encode and decode linear, except for rounding and for values that
/// exceed a narrow float?
bool is_linear(const ir::Program& program);

// Why a program is safe: for each access, store and loop, whether it is proved at compile time, or
// checked before launch, on the device, or by the reader of a payload.

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
