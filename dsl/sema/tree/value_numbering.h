// Value numbering finds expressions with the same value. Reads of mutable names contain the number
// of the assignment that they see.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class ValueNumbering : Part {
 public:
  using Part::Part;

  /// Notes a declaration with its value or first value.
  void note_let(const Stmt& let);
  /// Notes a read of a mutable variable.
  void note_read(ExprId read, VarId var);
  /// Notes that the variable has a new value.
  void note_assignment(VarId var) { ++var_versions_[var.index()]; }
  void note_state_read(ExprId read, std::uint32_t state) {
    read_versions_[read.index()] = {state_versions_[state], epoch_};
  }
  void note_state_assignment(std::uint32_t state) { ++state_versions_[state]; }
  /// Notes that the first expression has the value of the second, from which it was made.
  void note_same(ExprId made, ExprId of) { same_values_[made.index()] = of; }
  /// Notes the values of a payload's fields.
  void note_payload(VarId payload, ExprId literal) { payload_literals_[payload.index()] = literal; }
  /// The number of assignments to the variable so far.
  std::uint32_t version(VarId var) const;
  /// Makes later reads differ from all earlier ones, where control flow splits or joins.
  void forget_masks() { ++epoch_; }
  /// Returns the argument for leave_loop.
  std::uint32_t enter_loop() { return std::exchange(loop_, ++num_loops_); }
  void leave_loop(std::uint32_t outer) { loop_ = outer; }
  /// Expressions with equal numbers have equal values.
  std::uint32_t value_number(ExprId written);

 private:
  ExprId resolved(ExprId id) const;
  ExprId unwidened(ExprId id) const;
  std::string expression_key(ExprId id);

  // Number of the assignment, and the epoch.
  using Version = std::pair<std::uint32_t, std::uint32_t>;
  std::map<std::uint32_t, std::uint32_t> numbers_;  // by ExprId
  std::map<std::string, std::uint32_t> numbers_by_key_;
  std::map<std::uint32_t, std::string> lambda_params_;  // by VarId, for lambdas seen so far
  int key_depth_ = 0;  // depth of lambdas around the current expression
  int key_levels_ = 0;
  std::map<std::uint32_t, ExprId> definitions_;  // by VarId of a name that does not change
  // By VarId of a `let mut`: its first value, and the loop in which it is declared.
  std::map<std::uint32_t, std::pair<ExprId, std::uint32_t>> first_values_;
  // By ExprId of an expression that has another one's value: reads of a first value, cut fields.
  std::map<std::uint32_t, ExprId> same_values_;
  std::uint32_t loop_ = 0, num_loops_ = 0;
  std::map<std::uint32_t, ExprId> payload_literals_;  // by VarId of a payload
  std::map<std::uint32_t, Version> read_versions_;    // by ExprId of a read
  std::map<std::uint32_t, std::uint32_t> var_versions_, state_versions_;
  std::uint32_t epoch_ = 0;
};

}  // namespace cinch::sema
