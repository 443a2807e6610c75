// Facts about results of operators, and about mutable variables in branches and loops.
#include "dsl/sema/tree/index_facts.h"

#include "dsl/sema/elaboration/elaboration.h"

namespace cinch::sema {

IndexFacts IndexFactTracker::common_facts(const IndexFacts& a, const IndexFacts& b) {
  IndexFacts both;
  both.unique = a.unique && b.unique;
  both.ascending = a.ascending && b.ascending;
  both.unique_in_rows = a.unique_in_rows && b.unique_in_rows;
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

// A body may run again after its own assignments, or not run at all.
Value IndexFactTracker::in_loop(const std::function<Value()>& body) {
  const auto before = variable_facts_;
  std::map<std::uint32_t, std::uint32_t> versions;
  for (const auto& [var, facts] : before) versions[var] = all_.numbering.version(VarId(var));
  variable_facts_.clear();
  const std::uint32_t outer = all_.numbering.enter_loop();
  Value value = body();
  all_.numbering.leave_loop(outer);
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
  if (value.facts.limit) return value.facts.limit;
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
