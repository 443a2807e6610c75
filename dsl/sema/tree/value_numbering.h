// Value numbering: which expressions have the same value. Reads of mutable names carry the number
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

  /// A name that is declared: its value, or first value.
  void note_let(const Stmt& let);
  /// A read of a mutable variable, as it is now.
  void note_read(ExprId read, VarId var);
  /// From now on it has another value.
  void note_assignment(VarId var) { ++var_versions_[var.index()]; }
  void note_state_read(ExprId read, std::uint32_t state) {
    read_versions_[read.index()] = {state_versions_[state], epoch_};
  }
  void note_state_assignment(std::uint32_t state) { ++state_versions_[state]; }
  /// Two expressions of one value, of which the first is made of the second.
  void note_same(ExprId made, ExprId of) { same_values_[made.index()] = of; }
  /// What the fields of a payload hold.
  void note_payload(VarId payload, ExprId literal) { payload_literals_[payload.index()] = literal; }
  /// How often the variable was assigned to.
  std::uint32_t version(VarId var) const;
  /// Reads from here on are equal to none before: where control flow splits or joins.
  void forget_masks() { ++epoch_; }
  /// Gives what leave_loop takes.
  std::uint32_t enter_loop() { return std::exchange(loop_, ++num_loops_); }
  void leave_loop(std::uint32_t outer) { loop_ = outer; }
  /// Equal numbers are equal values.
  std::uint32_t value_number(ExprId written);

 private:
  ExprId resolved(ExprId id) const;
  ExprId unwidened(ExprId id) const;
  std::string expression_key(ExprId id);

  using Version = std::pair<std::uint32_t, std::uint32_t>;  // of a name, and the epoch
  std::map<std::uint32_t, std::uint32_t> numbers_;          // by ExprId
  std::map<std::string, std::uint32_t> numbers_by_key_;
  std::map<std::uint32_t, std::string> lambda_params_;  // by VarId, of lambdas that were looked at
  int key_depth_ = 0;                                   // lambdas around what is looked at
  int key_levels_ = 0;
  std::map<std::uint32_t, ExprId> definitions_;  // by VarId of what does not change
  // By VarId of a `let mut`: its first value, and the loop that it stands in.
  std::map<std::uint32_t, std::pair<ExprId, std::uint32_t>> first_values_;
  // By ExprId, of what is another expression's value: reads of a first value, cut fields.
  std::map<std::uint32_t, ExprId> same_values_;
  std::uint32_t loop_ = 0, num_loops_ = 0;
  std::map<std::uint32_t, ExprId> payload_literals_;  // by VarId of a payload
  std::map<std::uint32_t, Version> read_versions_;    // by ExprId of a read
  std::map<std::uint32_t, std::uint32_t> var_versions_, state_versions_;
  std::uint32_t epoch_ = 0;
};

}  // namespace cinch::sema
