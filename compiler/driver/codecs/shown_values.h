// The values of a program's names, computed by the interpreter: `cinch run --show`.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/driver/codecs/codec.h"
#include "compiler/interp/interp.h"

namespace cinch::driver {

struct ShownValue {
  std::string name;
  std::string body;  // "encode", "decode" or "sync"
  // None: the name was not computed, as in a branch that was not taken.
  std::optional<interp::Array> array;
};

/// Reads the program as it is written, before passes change it. Throws CommandError if it has no
/// value of one of these names, and says which names it has.
class ValueViewer {
 public:
  ValueViewer(const ProgramOptions& program, std::vector<std::string> names);

  /// Runs the steps and returns the values of the last one, in the order of the names: of `encode`
  /// and then `decode`, or of `sync` of one rank.
  std::vector<ShownValue> values(const RunOptions& options, std::span<const rt::NpyArray> steps,
                                 Shape shape) const;

 private:
  ir::Program program_;
  std::vector<std::string> names_;
};

}  // namespace cinch::driver
