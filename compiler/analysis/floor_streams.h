// What the sweeps of a function read and write, from what each of them must end with.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compiler/analysis/floor_arrays.h"

namespace cinch::analysis {

/// What a sweep ends with: a value that is computed from arrays and, unless it is a reduction's,
/// stored.
struct Sink {
  ir::ValueId value;
  std::size_t sweep = 0;
  std::optional<Stream> store;
  std::optional<std::uint32_t> state;  // the state that it replaces
  bool is_awaited = false;             // a later sweep or another rank reads what is stored
  std::int64_t rounds = 1;             // how often it is met
  dsl::Span span = {};                 // of a reduction; else the value's
};

/// Was the value stored in a sweep before this one? Reading the copy costs one array; making the
/// value again may cost several.
bool was_stored(const std::vector<Sink>& sinks, ir::ValueId value, std::size_t sweep);

/// Walks backward from the sinks to the arrays that they are made of.
class FloorStreams {
 public:
  /// Rounds of loops count where they are known; else all of a loop is met once.
  FloorStreams(FloorArrays& arrays, const std::vector<Sink>& sinks, bool knows_rounds)
      : arrays_(arrays), sinks_(sinks), knows_rounds_(knows_rounds) {}

  /// The sweeps of all sinks as they are now; `ends` is left empty.
  ForcedSweeps gathered();
  /// Bytes read and written by them.
  std::int64_t total_bytes();

 private:
  struct Reads {
    std::map<ir::ValueId, std::int64_t> elements;    // of leaves and of stored values
    std::map<ir::ValueId, std::int64_t> was_walked;  // the most elements asked of each value
  };

  std::int64_t rounds_of(std::size_t sweep) const;
  std::vector<Stream> streams_of(std::size_t sweep, std::int64_t round);
  std::string leaf_name(const ir::Op& op, ir::ValueId value) const;
  void walk(ir::ValueId value, std::int64_t elements, std::size_t sweep, Reads& reads);
  void walk_operand(const ir::Op& op, std::size_t i, std::int64_t elements, std::size_t sweep,
                    Reads& reads);
  void walk_all(ir::ValueId value, std::size_t sweep, Reads& reads,
                std::optional<std::int64_t> of_result = {});
  void note_draws(const ir::Op& op, ir::ValueId value, std::int64_t elements);

  FloorArrays& arrays_;
  const std::vector<Sink>& sinks_;
  bool knows_rounds_;
  std::map<ir::ValueId, std::int64_t> drawn_;
};

}  // namespace cinch::analysis
