// What is known of arrays of indices that lie in mutable variables: it follows the assignments,
// through branches and loops.
#include "dsl/sema/elaborator.h"

namespace cinch::sema {

IndexFacts Elaborator::common_facts(const IndexFacts& a, const IndexFacts& b) {
  IndexFacts both;
  both.unique = a.unique && b.unique;
  both.ascending = a.ascending && b.ascending;
  both.unique_in_rows = a.unique_in_rows && b.unique_in_rows;
  if (!a.limit || !b.limit) return both;
  if (sizes_.proves_less_equal(a.limit, b.limit)) {
    both.limit = b.limit;
  } else if (sizes_.proves_less_equal(b.limit, a.limit)) {
    both.limit = a.limit;
  }
  return both;
}

// Of variables that both ways know: what is known of them whichever way was taken.
void Elaborator::join_variable_facts(const std::map<std::uint32_t, IndexFacts>& other) {
  for (auto& [var, facts] : variable_facts_) {
    const auto found = other.find(var);
    facts = found == other.end() ? IndexFacts() : common_facts(facts, found->second);
  }
}

// A body may run again after its own assignments, and may not run at all.
Value Elaborator::in_loop(const std::function<Value()>& body) {
  const auto before = variable_facts_;
  const auto versions = var_versions_;
  variable_facts_.clear();
  const std::uint32_t outer = std::exchange(loop_, ++num_loops_);
  Value value = body();
  loop_ = outer;
  join_variable_facts(before);
  for (const auto& [var, facts] : before) {
    const auto then = versions.find(var);
    const auto now = var_versions_.find(var);
    const bool is_same =
        now == var_versions_.end() || (then != versions.end() && then->second == now->second);
    if (is_same) variable_facts_[var] = facts;
  }
  return value;
}

}  // namespace cinch::sema
