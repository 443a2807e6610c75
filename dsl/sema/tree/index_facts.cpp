// Facts about results of operators, and about mutable variables in branches and loops.
#include "dsl/sema/elaboration/elaboration.h"
#include "dsl/sema/tree/tree.h"

namespace cinch::sema {
IndexFacts IndexFactTracker::common_facts(const IndexFacts& a, const IndexFacts& b) {
  IndexFacts both{.unique = a.unique && b.unique,
                  .ascending = a.ascending && b.ascending,
                  .unique_in_rows = a.unique_in_rows && b.unique_in_rows,
                  .assumed = a.assumed | b.assumed};
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

IndexFactTracker::Outcome IndexFactTracker::outcome_of(const std::vector<Assumption>& made,
                                                       const VariableFacts& before) {
  Outcome result;
  for (const Assumption& one : made) result.own |= one.bit;
  result.kept = result.own;
  for (std::uint64_t last = 0; last != result.kept;) {
    last = result.kept;
    for (const Assumption& one : made) {
      if ((result.kept & one.bit) == 0) continue;
      const IndexFacts &was = before.at(one.var), &is = variable_facts_[one.var];
      const bool is_kept = (is.unique || !was.unique) &&
                           (is.unique_in_rows || !was.unique_in_rows) &&
                           (is.assumed & result.own & ~result.kept) == 0;
      if (!is_kept) result.kept &= ~one.bit;
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

// Counts of filters by mask, and the counts of the wire that encode fills by the same mask.

using dsl::DiagKind;

std::optional<std::uint32_t> Counts::count_of_mask(const Value& mask, HostExprId limit,
                                                   HostExprId len, Span span) {
  const std::string key = count_key(mask, limit);
  const auto known = counts_by_mask_.find(key);
  if (known != counts_by_mask_.end()) return known->second;
  HostExprId bound = sizes_.without_counts(len);
  if (limit) {
    const HostExprId cap = sizes_.without_counts(limit);
    bound = bound && cap ? pool().min(bound, cap) : bound ? bound : cap;
  }
  if (!bound) return mistake<DiagKind::NotKnownOnHost>(span, "the most that this keeps");
  const auto index = static_cast<std::uint32_t>(out_.info.counts.size());
  out_.info.counts.push_back({"count" + std::to_string(index), bound});
  counts_by_mask_.emplace(key, index);
  const HostExprId count = pool().count(index, bound);
  if (sizes_.name(count, out_.info.counts[index].name, span)) {
    unnamed_counts_.insert(count);
  }
  return index;
}

std::uint32_t Counts::received(const std::string& key, HostExprId most) {
  const auto [known, is_new] =
      counts_by_mask_.try_emplace(key, static_cast<std::uint32_t>(out_.info.counts.size()));
  if (is_new) out_.info.counts.push_back({"count" + std::to_string(known->second), most});
  return known->second;
}

void Counts::name_counts(const Type& type, const ast::Name& name) {
  for (int i = 0; i < type.rank; ++i) {
    const HostExprNode& node = pool().node(type.dims[i]);
    if (node.op != HostOp::Count || !unnamed_counts_.erase(type.dims[i])) continue;
    sizes_.rename(type.dims[i], "len(" + name.text + ")", name.span);
  }
}

std::string Counts::count_key(const Value& mask, HostExprId limit) {
  return std::to_string(all_.numbering.value_number(mask.expr)) + "|" +
         std::to_string(limit.index());
}

void Counts::note_sent_counts(const Instance& instance, const Value& wire) {
  const ExprId literal = all_.bodies.literal_of(wire);
  const std::vector<ExprId>& args = out_.exprs[literal.index()].args;
  std::map<std::uint32_t, std::uint32_t> sent;  // the wire's count by the filter's count
  for (std::uint32_t count = 0; count < instance.counts.size(); ++count) {
    for (std::size_t i = 0; i < args.size(); ++i) {
      const Type& declared = instance.fields[i].type;
      for (int d = 0; d < declared.rank; ++d) {
        if (declared.dims[d] != instance.counts[count].placeholder) continue;
        const HostExprNode& size = pool().node(out_.exprs[args[i].index()].type.dims[d]);
        if (size.op != HostOp::Count) continue;
        const auto filter = static_cast<std::uint32_t>(size.payload);
        const std::uint32_t first = sent.emplace(filter, count).first->second;
        if (first != count) twin_counts_[count] = first;
      }
    }
  }
  for (const auto& [key, found] : counts_by_mask_) {
    if (const auto at = sent.find(found); at != sent.end()) sent_counts_[key] = at->second;
  }
  sent_literal_ = literal;
}

void Counts::check_twin_counts(Span span) {
  const auto& counts = out_.info.wire.counts;
  const auto size = [&](std::uint32_t i) { return pool().count(i, counts[i].bound); };
  for (const auto& [twin, first] : twin_counts_) {
    build_.require(pool().make(HostOp::Eq, size(twin), size(first)),
                   "count " + counts[twin].name + ": the payload has another number for count " +
                       counts[first].name + ", which the same mask filled",
                   span);
  }
}

Value Counts::with_first_count(const Value& field, Span span) {
  if (!mode_.in_decode_body || twin_counts_.empty() || field.type.rank == 0) return field;
  const HostExprNode& size = pool().node(field.type.dims[0]);
  if (size.op != HostOp::Count) return field;
  const auto twin = twin_counts_.find(static_cast<std::uint32_t>(size.payload));
  if (twin == twin_counts_.end()) return field;
  Expr made{ExprKind::Slice, field.type, span};
  made.size = pool().const_int(0);
  made.size2 = pool().count(twin->second, out_.info.wire.counts[twin->second].bound);
  made.type.dims[0] = made.size2;
  made.args = {field.expr};
  Value value = build_.typed(std::move(made));
  value.facts = field.facts;
  all_.numbering.note_same(value.expr, field.expr);
  return value;
}

void Counts::note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values) {
  if (!mode_.in_decode_body) return;
  bool has_sent = false, has_found = false;
  for (const Value* value : values) {
    for (int i = 0; value->is_typed() && i < value->type.rank; ++i) {
      const HostExprNode& size = pool().node(value->type.dims[i]);
      if (size.op != HostOp::Count) continue;
      const bool is_sent = static_cast<std::size_t>(size.payload) < out_.info.wire.counts.size();
      has_sent |= is_sent;
      has_found |= !is_sent;
    }
  }
  if (!has_sent || !has_found) return;
  diag.note(
      "a filter in `decode` finds as many as `encode` sent if both make the mask the same way: by "
      "the same operators, of the same fields");
}

std::optional<std::uint32_t> Counts::sent_count(const std::string& key) const {
  if (mode_.body != BodyKind::Decode || !mode_.in_decode_body) return std::nullopt;
  const auto at = sent_counts_.find(key);
  return at == sent_counts_.end() ? std::nullopt : std::optional(at->second);
}

// Payloads are not trusted, so the program checks that both counts are equal. Then the array gets
// the wire's count.
Value Counts::as_sent(const Value& result, std::uint32_t count, const CallArgs& args) {
  const rt::CountInfo& info = out_.info.wire.counts[count];
  const HostExprId sent = pool().count(count, info.bound);
  return build_.behind_filter(result, args.span, [&](const Value& found) {
    const HostExprId own = found.type.dims[0];
    build_.require(
        pool().make(HostOp::Eq, own, sent),
        "count " + info.name + ": `" + args.name + "` finds another number in the payload",
        args.span);
    Expr made{ExprKind::Slice, found.type, args.span};
    made.size = pool().const_int(0);
    made.size2 = sent;
    made.type.dims[0] = sent;
    made.args = {found.expr};
    const HostExprId bound = sizes_.without_counts(own);
    made.proved_in_bounds = bound && prover_.proves_less_equal(info.bound, bound);
    Value value = build_.typed(std::move(made));
    value.facts = found.facts;
    return value;
  });
}

}  // namespace cinch::sema
