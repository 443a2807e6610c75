// What is known of arrays of indices: of results of arithmetic, and of mutable variables, where it
// follows the assignments through branches and loops.
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

  /// Of a mutable variable as of now; nullptr where nothing is known.
  const IndexFacts* of(VarId var) const {
    const auto known = variable_facts_.find(var.index());
    return known == variable_facts_.end() ? nullptr : &known->second;
  }
  /// The variable was assigned to.
  void note(VarId var, const IndexFacts& facts) { variable_facts_[var.index()] = facts; }
  /// By VarId, as of now.
  const std::map<std::uint32_t, IndexFacts>& of_variables() const { return variable_facts_; }
  /// Begins again from `facts`; gives those until now.
  std::map<std::uint32_t, IndexFacts> exchange(std::map<std::uint32_t, IndexFacts> facts) {
    return std::exchange(variable_facts_, std::move(facts));
  }
  /// Facts that hold of both.
  IndexFacts common_facts(const IndexFacts& a, const IndexFacts& b);
  /// After two ways through the program: keeps what is known on both.
  void join_variable_facts(const std::map<std::uint32_t, IndexFacts>& other);
  /// Elaborates the body of a loop, which may run many times or not at all.
  Value in_loop(const std::function<Value()>& body);
  /// What limits the results of integer arithmetic, whatever the values are.
  IndexFacts facts_of_op(ScalarOp op, const std::vector<Value>& args, DType type);
  /// Every value of an index is below this; invalid where nothing is known.
  HostExprId index_limit(const Value& value);
  /// Is the index proved to be below the size?
  bool is_in_bounds(const Value& index, HostExprId size);

 private:
  std::map<std::uint32_t, IndexFacts> variable_facts_;  // by VarId of a mutable one, as of now
};

}  // namespace cinch::sema
