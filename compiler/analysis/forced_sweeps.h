// The floor of a program: the sweeps over memory that no fusion can save, and what each must move.
// A sweep is forced by every reduction over a whole array whose result a later sweep needs, by a
// mask whose selected elements are counted, and by the check for non-finite gradients before a
// state changes. Exact selection counts as two such reductions: its threshold is made of two
// digits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/ir/ir.h"
#include "compiler/ir/rewriter.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::analysis {
/// An array that a sweep passes over once.
struct Stream {
  enum class Use { Read, Update, Write };  // Update: read and written in place
  std::string
      name;  // "gradient", "output", name of a state or field, else of an intermediate value
  Use use = Use::Read;
  std::int64_t size_bytes = 0;
};

/// Bytes of all streams of a kind; an update counts on both sides.
struct SweepBytes {
  std::int64_t read = 0, written = 0;
};

/// What a sweep ends with: a reduction that forces it, or a value that it stores. `span`: the
/// operation in the program's text.
struct SweepEnd {
  dsl::Span span;
  std::size_t sweep = 0;  // of those that there are where loops run once
  std::string stored;     // the stream that is written; empty for a reduction
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
  /// Sizes. counts: the lengths known after looking, by count index; where absent, their bounds.
  HostEnv env;
  /// How often the body of each loop of the function runs, in the order in which they stand, outer
  /// ones before those in them. Where there is not one for each, bodies count once.
  std::vector<std::int64_t> loop_rounds;
};

/// Of a program as lowering left it: selections still stand in it as one operator. Errors: Overflow
/// (a size for which there are no numbers). Throws InternalError where the program has no such
/// function.
rt::Result<ForcedSweeps> find_forced_sweeps(const ir::Program& lowered,
                                            const FloorRequest& request);

}  // namespace cinch::analysis
