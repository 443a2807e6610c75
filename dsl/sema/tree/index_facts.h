// Facts about arrays of indices: about results of arithmetic, and about mutable variables, for
// which it follows assignments through branches and loops.
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
  /// Bounds of results of integer arithmetic that hold for all values.
  IndexFacts facts_of_op(ScalarOp op, const std::vector<Value>& args, DType type);
  /// A bound above every value of an index; invalid if nothing is known.
  HostExprId index_limit(const Value& value);
  /// Is the index proved to be below the size?
  bool is_in_bounds(const Value& index, HostExprId size);

 private:
  std::map<std::uint32_t, IndexFacts> variable_facts_;  // current facts, by VarId
};

}  // namespace cinch::sema
