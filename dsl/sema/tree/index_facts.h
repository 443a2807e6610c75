// Facts about arrays of indices: about results of arithmetic, and about mutable variables, for
// which it follows assignments through branches and loops. At the beginning of a loop, what is
// known of a variable is an assumption: it holds in the first round, and in all others if the body
// keeps it. That is known at the end of the body. What fails until then is reported there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class IndexFactTracker : Part {
 public:
  using Part::Part;

  /// The current facts of a mutable variable; nullptr if nothing is known.
  const IndexFacts* of(VarId var) const {
    const auto known = variable_facts_.find(var.index());
    return known == variable_facts_.end() ? nullptr : &known->second;
  }
  /// Notes an assignment to the variable.
  void note(VarId var, const IndexFacts& facts) { variable_facts_[var.index()] = facts; }
  /// All current facts, by VarId.
  const std::map<std::uint32_t, IndexFacts>& of_variables() const { return variable_facts_; }
  /// Replaces all facts, and returns those until now.
  std::map<std::uint32_t, IndexFacts> exchange(std::map<std::uint32_t, IndexFacts> facts) {
    return std::exchange(variable_facts_, std::move(facts));
  }
  /// Facts that hold of both.
  IndexFacts common_facts(const IndexFacts& a, const IndexFacts& b);
  /// After two branches: keeps what is known on both.
  void join_variable_facts(const std::map<std::uint32_t, IndexFacts>& other);
  /// Elaborates the body of a loop, which may run many times or not at all.
  Value in_loop(const std::function<Value()>& body);
  /// Is `fact` known, which is one of `facts`? If not, or if an assumption fails on which it
  /// stands, `report` is called, perhaps later.
  bool holds(bool fact, const IndexFacts& facts, const std::function<void()>& report);
  /// Bounds of results of integer arithmetic that hold for all values.
  IndexFacts facts_of_op(ScalarOp op, const std::vector<Value>& args, DType type);
  /// A bound above every value of an index; invalid if nothing is known.
  HostExprId index_limit(const Value& value);
  /// Is the index proved to be below the size?
  bool is_in_bounds(const Value& index, HostExprId size);

 private:
  using VariableFacts = std::map<std::uint32_t, IndexFacts>;  // by VarId

  struct Assumption {
    std::uint32_t var = 0;
    std::uint64_t bit = 0;
  };

  // Something that was used in a loop, and what is told if its assumptions fail.
  struct Use {
    std::uint64_t assumed = 0;
    std::function<void()> report;
  };

  // What has become of a loop's assumptions.
  struct Outcome {
    std::uint64_t own = 0, kept = 0;  // all of them, and those that hold
    std::uint64_t outer = 0;          // assumptions of outer loops on which these stand
    bool keeps_limits = true, keeps_order = true;
  };

  std::vector<Assumption> assume(const VariableFacts& before);
  bool is_kept(const Assumption& made, const Outcome& outcome, const IndexFacts& before);
  Outcome outcome_of(const std::vector<Assumption>& made, const VariableFacts& before);
  void settle(const Outcome& outcome);

  VariableFacts variable_facts_;  // current facts
  std::uint64_t open_ = 0;        // assumptions of all loops around this place
  std::vector<Use> uses_;         // of open assumptions
};

}  // namespace cinch::sema
