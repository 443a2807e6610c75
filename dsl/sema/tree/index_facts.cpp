// Facts about results of operators, and about mutable variables in branches and loops.
#include "dsl/sema/tree/index_facts.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

IndexFacts IndexFactTracker::common_facts(const IndexFacts& a, const IndexFacts& b) {
  IndexFacts both;
  both.unique = a.unique && b.unique;
  both.ascending = a.ascending && b.ascending;
  both.unique_in_rows = a.unique_in_rows && b.unique_in_rows;
  both.assumed = a.assumed | b.assumed;
  if (!a.limit || !b.limit) return both;
  if (prover_.proves_less_equal(a.limit, b.limit)) {
    both.limit = b.limit;
  } else if (prover_.proves_less_equal(b.limit, a.limit)) {
    both.limit = a.limit;
  }
  return both;
}

// Keeps the facts that hold after either branch.
void IndexFactTracker::join_variable_facts(const std::map<std::uint32_t, IndexFacts>& other) {
  for (auto& [var, facts] : variable_facts_) {
    const auto found = other.find(var);
    facts = found == other.end() ? IndexFacts() : common_facts(facts, found->second);
  }
}

bool IndexFactTracker::holds(bool fact, const IndexFacts& facts,
                             const std::function<void()>& report) {
  if (!fact) {
    report();
  } else if (facts.assumed != 0) {
    uses_.push_back({facts.assumed, report});
  }
  return fact;
}

// What is known before a loop, as assumptions at the beginning of its body.
std::vector<IndexFactTracker::Assumption> IndexFactTracker::assume(const VariableFacts& before) {
  std::vector<Assumption> made;
  variable_facts_.clear();
  for (const auto& [var, facts] : before) {
    const std::uint64_t bit = ~open_ & (open_ + 1);  // the lowest free one
    if (bit == 0) break;
    if (!facts.unique && !facts.ascending && !facts.unique_in_rows) continue;
    open_ |= bit;
    made.push_back({var, bit});
    variable_facts_[var] = facts;
    variable_facts_[var].assumed = bit;
  }
  return made;
}

// Is the variable free of repeats at the end of the body, too, by assumptions that hold?
bool IndexFactTracker::is_kept(const Assumption& made, const Outcome& outcome,
                               const IndexFacts& before) {
  const IndexFacts& after = variable_facts_[made.var];
  return (after.unique || !before.unique) && (after.unique_in_rows || !before.unique_in_rows) &&
         (after.assumed & outcome.own & ~outcome.kept) == 0;
}

IndexFactTracker::Outcome IndexFactTracker::outcome_of(const std::vector<Assumption>& made,
                                                       const VariableFacts& before) {
  Outcome result;
  for (const Assumption& one : made) result.own |= one.bit;
  result.kept = result.own;
  for (std::uint64_t last = 0; last != result.kept;) {
    last = result.kept;
    for (const Assumption& one : made) {
      const bool is_open = (result.kept & one.bit) != 0;
      if (is_open && !is_kept(one, result, before.at(one.var))) result.kept &= ~one.bit;
    }
  }
  for (const Assumption& one : made) {
    if ((result.kept & one.bit) == 0) continue;
    const IndexFacts &was = before.at(one.var), &is = variable_facts_[one.var];
    result.outer |= was.assumed | (is.assumed & ~result.own);
    const bool keeps_limit =
        !was.limit || (is.limit && prover_.proves_less_equal(is.limit, was.limit));
    result.keeps_limits = result.keeps_limits && keeps_limit;
    result.keeps_order = result.keeps_order && (is.ascending || !was.ascending);
  }
  return result;
}

// Ends a loop's assumptions: what stands on them is known, stands on those of outer loops, or
// fails.
void IndexFactTracker::settle(const Outcome& outcome) {
  const std::uint64_t failed = outcome.own & ~outcome.kept;
  const auto settled = [&](std::uint64_t assumed) {
    return (assumed & ~outcome.own) | ((assumed & outcome.own) != 0 ? outcome.outer : 0);
  };
  for (auto& [var, facts] : variable_facts_) {
    if ((facts.assumed & failed) != 0) facts = {};
    if ((facts.assumed & outcome.own) != 0) {
      if (!outcome.keeps_limits) facts.limit = {};
      facts.ascending = facts.ascending && outcome.keeps_order;
    }
    facts.assumed = settled(facts.assumed);
  }
  std::vector<Use> left;
  for (Use& use : uses_) {
    if ((use.assumed & failed) != 0) {
      use.report();
      continue;
    }
    use.assumed = settled(use.assumed);
    if (use.assumed != 0) left.push_back(std::move(use));
  }
  uses_ = std::move(left);
  open_ &= ~outcome.own;
}

// A body may run again after its own assignments, or not run at all.
Value IndexFactTracker::in_loop(const std::function<Value()>& body) {
  const auto before = variable_facts_;
  std::map<std::uint32_t, std::uint32_t> versions;
  for (const auto& [var, facts] : before) versions[var] = all_.numbering.version(VarId(var));
  const std::vector<Assumption> assumptions = assume(before);
  const std::uint32_t outer = all_.numbering.enter_loop();
  Value value = body();
  all_.numbering.leave_loop(outer);
  settle(outcome_of(assumptions, before));
  join_variable_facts(before);
  for (const auto& [var, facts] : before) {
    const bool is_same = all_.numbering.version(VarId(var)) == versions[var];
    if (is_same) variable_facts_[var] = facts;
  }
  return value;
}

IndexFacts IndexFactTracker::facts_of_op(ScalarOp op, const std::vector<Value>& args, DType type) {
  if (args.size() != 2 || !args[1].is_host() || pool().type(args[1].host) != HostType::Int)
    return {};
  if (!is_int(type) || type.bits > 32) return {};
  const HostExprId b = args[1].host, one = pool().const_int(1);
  const bool is_unsigned = is_unsigned_int(type);
  IndexFacts facts;
  switch (op) {
    case ScalarOp::mod:
      if (is_unsigned && prover_.proves_less_equal(one, b)) facts.limit = b;
      return facts;
    case ScalarOp::min:
      if (is_unsigned && prover_.proves_nonnegative(b)) facts.limit = pool().add(b, one);
      return facts;
    case ScalarOp::bit_and:
      if ((is_unsigned || prover_.constant(b)) && prover_.proves_nonnegative(b)) {
        facts.limit = pool().add(b, one);
      }
      return facts;
    case ScalarOp::shr: {
      const auto by = prover_.constant(b);
      const bool is_plain = is_unsigned && by && *by >= 0 && *by < type.bits;
      if (is_plain) facts.limit = pool().const_int(std::int64_t{1} << (type.bits - *by));
      return facts;
    }
    default:
      return facts;
  }
}

HostExprId IndexFactTracker::index_limit(const Value& value) {
  // An index is checked, or not, at once: an assumption would come too late.
  if (value.facts.limit && value.facts.assumed == 0) return value.facts.limit;
  if (value.is_typed() && is_unsigned_int(value.type.dtype) && value.type.dtype.bits <= 32) {
    return pool().const_int(std::int64_t{1} << value.type.dtype.bits);
  }
  return {};
}

bool IndexFactTracker::is_in_bounds(const Value& index, HostExprId size) {
  const HostExprId limit = index_limit(index);
  return limit && prover_.proves_less_equal(limit, size);
}

}  // namespace cinch::sema
