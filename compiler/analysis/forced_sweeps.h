// The floor of a program: the sweeps over memory that no fusion can save, and what each must move.
// Two things force a sweep: a reduction over a whole array whose result a later sweep needs, and
// the check for non-finite gradients before a state changes. Exact selection counts as two such
// reductions: its threshold is made of two digits.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"

namespace cinch::analysis {

/// An array over which a sweep passes once.
struct Stream {
  enum class Use { Read, Update, Write };  // Update: read and written in place
  std::string
      name;  // "gradient", "output", name of a state or field, else of an intermediate value
  Use use = Use::Read;
  std::int64_t size_bytes = 0;
};

/// Bytes of all streams of a kind; an update counts as read and as written.
struct SweepBytes {
  std::int64_t read = 0, written = 0;
};

/// The end of a sweep: a reduction that forces it, or a value that it stores. `span`: the operation
/// in the program's text.
struct SweepEnd {
  dsl::Span span;
  std::size_t sweep = 0;  // index of the sweep if every loop runs once
  std::string stored;     // the written stream; empty for a reduction
  std::int64_t stored_bytes = 0;
};

struct ForcedSweeps {
  std::vector<std::vector<Stream>> sweeps;  // in order
  std::vector<SweepEnd> ends;
  std::int64_t random_words = 0;  // u32 draws of all sweeps together
  SweepBytes bytes() const;
};

struct FloorRequest {
  ir::FunctionKind function = ir::FunctionKind::Encode;
  bool adds_output = false;  // decode: the output is updated in place instead of written
  /// Sizes. counts: the actual lengths, by count index; if absent, their bounds.
  HostEnv env;
  /// How often the body of each loop of the function runs, in program order, outer loops before
  /// inner ones. If a loop has no entry, all bodies count once.
  std::vector<std::int64_t> loop_rounds;
};

/// Finds the sweeps of a program as lowering left it: selections are still single operators.
/// Errors: Overflow (a size beyond the range of numbers). Throws InternalError if the program has
/// no such function.
rt::Result<ForcedSweeps> find_forced_sweeps(const ir::Program& lowered,
                                            const FloorRequest& request);

}  // namespace cinch::analysis
