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

// The rules of forced_sweeps.cpp: what single operators demand of sweeps over memory.

/// Does the array lie in memory? Small arrays (tables, histograms) of constant size are finished on
/// chip.
bool lies_in_memory(const ir::Program& program, const ir::Type& type);

/// How many sweeps over its operands the op needs before its result is known; 0: none.
std::size_t sweeps_forced_by(const ir::Program& program, const ir::Function& function,
                             const ir::Op& op);

/// Does recomputing a part of the result cost as much as recomputing all of it? If so, a result
/// that a forced sweep made lies in memory for later ones.
bool is_made_whole(ir::OpKind kind);

// What the arrays of a function take at given sizes, and where they lie: what both walks of
// forced_sweeps.cpp ask.

class FloorArrays {
 public:
  /// The program has the function that is asked for. All three outlive this object.
  FloorArrays(const ir::Program& program, const ir::Function& function, const FloorRequest& request)
      : program_(program), function_(function), request_(request), exprs_(program.info.exprs) {}

  const ir::Program& program() const { return program_; }
  const ir::Function& function() const { return function_; }

  const ir::Op& maker(ir::ValueId value) const { return ir::defining_op(function_, value); }
  const std::vector<ir::ValueId>& yielded(ir::RegionId region) const;

  bool is_array(ir::ValueId value) const;
  /// At most; 0 where there is no such number, which `status` then tells.
  std::int64_t num_elems(ir::ValueId value);
  std::int64_t size_bytes(ir::ValueId value, std::int64_t elements) const;
  /// Of all its elements.
  std::int64_t size_bytes(ir::ValueId value) { return size_bytes(value, num_elems(value)); }
  /// The value travels between ranks in fewer bytes than its elements take.
  void set_travelling_bytes(ir::ValueId value, std::int64_t bytes) { travelling_[value] = bytes; }

  /// The stream that holds the value: its own, unless it lies where another does.
  std::string place_of(ir::ValueId value) const;
  void set_place(ir::ValueId value, const std::string& place) { places_[value] = place; }
  bool has_place(ir::ValueId value) const { return places_.contains(value); }

  /// Of the first size that has no number.
  const rt::Status& status() const { return status_; }

 private:
  std::int64_t evaluated(HostExprId expr);

  const ir::Program& program_;
  const ir::Function& function_;
  const FloorRequest& request_;
  HostExprPool exprs_;  // a copy: bounds are formulas of their own
  rt::Status status_ = rt::Ok{};
  std::map<ir::ValueId, std::string> places_;
  std::map<ir::ValueId, std::int64_t> travelling_;
};

// What the sweeps of a function read and write, from what each of them must end with.

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

  FloorArrays& arrays_;
  const std::vector<Sink>& sinks_;
  bool knows_rounds_;
  std::map<ir::ValueId, std::int64_t> drawn_;
};

}  // namespace cinch::analysis
