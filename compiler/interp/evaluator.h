// The interpreter itself: one function of one rank. Each family of ops has a file of its own.
#pragma once
#include <vector>

#include "compiler/interp/interp.h"
#include "compiler/interp/observe.h"
#include "compiler/ir/ir.h"
#include "compiler/ir/ops.h"
#include "runtime/core/lang.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch::interp {

/// For each op, by number, the values that no op reads after it. An op also reads what the regions
/// that it holds read. Results of the function are in none of the lists.
std::vector<std::vector<ir::ValueId>> last_read_by(const ir::Function& function);

/// Thrown inside the interpreter, caught by its public functions.
struct RunFailure {
  rt::Error error;
};
[[noreturn]] void stop(rt::ErrorKind kind, std::string message);
// Stops if an array has more elements than memory can hold.
void require_room(std::int64_t rows, std::int64_t cols);

/// The environment of one call: sizes, parameters, draws.
class CallContext {
 public:
  CallContext(const ir::Program& program, const Inputs& inputs);

  const ir::Program& program;
  const Inputs& inputs;
  /// Counts seen so far, by index; grows as `nonzero` finds them.
  std::vector<std::int64_t> counts;

  HostValue eval(HostExprId id) const;
  /// Evaluates a size; a negative one is an error.
  std::int64_t size(HostExprId id) const;
  Array param(std::uint32_t index) const;
  /// An array of zeros of a type, with its sizes evaluated.
  Array make(const ir::Type& type) const;
  /// The eight words from which draws are made.
  std::vector<std::uint32_t> draw_words() const;

 private:
  std::vector<HostValue> host_params_;
};

class Evaluator {
 public:
  /// If `exchange` is null, world is 1.
  Evaluator(CallContext& context, const ir::Function& function, Meeting* exchange)
      : call_(context),
        function_(function),
        exchange_(exchange),
        values_(function.values.size()),
        last_read_by_(interp::last_read_by(function)) {}

  void run() { run_region(function_.body); }
  /// `observer` outlives the evaluator.
  void show_to(const Observer& observer) { observer_ = &observer; }
  /// A result of the function.
  const Array& value(ir::ValueId id) const { return values_[id.index()]; }

 private:
  using Op = ir::Op;
  using Element = std::uint64_t;
  using Elements = std::vector<Element>;

  // Operands and results of an op.
  const Array& in(const Op& op, std::size_t i) const { return values_[op.operands[i].index()]; }
  Array& out(const Op& op, std::size_t i = 0) { return values_[op.results[i].index()]; }
  const ir::Type& out_type(const Op& op, std::size_t i = 0) const {
    return function_.values[op.results[i].index()].type;
  }
  /// An array of zeros for a result of an op, with its sizes evaluated.
  Array make_out(const Op& op, std::size_t i = 0) const { return call_.make(out_type(op, i)); }

  // evaluator.cpp: regions and control.
  void show_results(const Op& op) const;
  /// Runs the region and returns the values that it yields.
  std::vector<Array> run_region(ir::RegionId region);
  std::vector<Array> run_region(ir::RegionId region, std::vector<Array> args);
  void run_op(const Op& op);
  /// Frees values that no later op reads.
  void release_after(ir::OpId op);
  void bind_results(const Op& op, std::vector<Array> values);

#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  void eval_##name(const Op& op);
#include "compiler/ir/ops.def"

  // eval_generate.cpp
  lang::DrawStream draws_of(const Op& op, std::size_t iteration_operand) const;
  void draw_each(const Op& op);

  // eval_matrix.cpp
  /// Combines two elements of N values by the op's combiner.
  Elements combine(const Op& op, const Elements& a, const Elements& b);
  /// Lines along the op's axis: how many there are, how many elements each has, and the index of
  /// element i of line `line`.
  struct Lines {
    std::int64_t num_lines, length, line_stride, stride;
    std::size_t at(std::int64_t line, std::int64_t i) const {
      return static_cast<std::size_t>(line * line_stride + i * stride);
    }
  };
  static Lines lines_of(const Array& array, std::int8_t axis);
  Elements values_at(const Op& op, std::size_t n, std::size_t i) const;
  Elements inits_of(const Op& op, std::size_t n) const;
  void reduce_line(const Op& op, const Lines& lines, std::int64_t line);
  void scan_line(const Op& op, const Lines& lines, std::int64_t line);

  // eval_selection.cpp
  std::int64_t checked_index(const Array& index, std::size_t i, std::int64_t limit) const;
  /// Joins values (operand 1) at places (operand 0) of `result`, which the op then gives.
  void scatter_joined(const Op& op, ScalarOp joins, Array result);

  // eval_collective.cpp
  std::vector<Array> meet(const Array& array);
  Array join_ranks(const Op& op, const std::vector<Array>& ranks) const;
  /// Each rank's number, by rank.
  std::vector<Element> tell_all(Element own);
  /// The rank whose operand 1 names this one.
  std::size_t find_sender(const Op& op);
  /// The root that every rank's operand 1 names.
  std::size_t find_root(const Op& op);
  /// For each rank, the counted elements of its operand 0.
  std::vector<Elements> meet_counted(const Op& op, Element own_length);
  /// Sets the first result to `received` followed by zeros, the second to the number of received
  /// elements.
  void give_counted(const Op& op, Elements received);

  CallContext& call_;
  const ir::Function& function_;
  Meeting* exchange_;
  std::vector<Array> values_;
  const Observer* observer_ = nullptr;
  std::vector<std::vector<ir::ValueId>> last_read_by_;  // by op
};

}  // namespace cinch::interp
