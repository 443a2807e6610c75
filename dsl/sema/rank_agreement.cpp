// Follows assignments in order. Repeats loops, and the whole body for its states, until no further
// value may differ. See rank_agreement.h.
#include "dsl/sema/rank_agreement.h"

#include <algorithm>
#include <utility>

namespace cinch::sema {

namespace {

// The values that may differ between ranks at one point of the body.
struct Facts {
  std::vector<bool> vars, states, counts;
  friend bool operator==(const Facts&, const Facts&) = default;
};

void join(std::vector<bool>& into, const std::vector<bool>& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = into[i] || other[i];
}

void join(Facts& into, const Facts& other) {
  join(into.vars, other.vars);
  join(into.states, other.states);
  join(into.counts, other.counts);
}

class Walker {
 public:
  explicit Walker(const CheckedProgram& program) : program_(program) {
    facts_.vars.resize(program.vars.size());
    facts_.states.resize(program.info.states.size());
    facts_.counts.resize(program.info.counts.size());
  }

  std::vector<Disagreement> run(const Body& sync) {
    for (std::size_t i = 0; i < facts_.states.size(); ++i) {
      facts_.states[i] = visit(program_.state_inits[i]);
    }
    repeat([&] { visit(sync.root); });
    for (const Receiver& each : receivers_) {
      if (!each.differs) note(each.same);
    }
    const auto is_before = [](const Disagreement& a, const Disagreement& b) {
      return a.collective.begin < b.collective.begin;
    };
    std::sort(found_.begin(), found_.end(), is_before);
    return std::move(found_);
  }

 private:
  // May the expression's value differ between ranks?
  bool visit(ExprId id) {
    if (!id.is_valid()) return false;
    const Expr& e = program_.exprs[id.index()];
    switch (e.kind) {
      case ExprKind::Gradient:
      case ExprKind::Field:
        return true;
      case ExprKind::HostSize:
        return may_differ(e.size);
      case ExprKind::Var:
        return facts_.vars[e.var.index()];
      case ExprKind::State:
        return facts_.states[e.index];
      case ExprKind::If:
        return visit_if(e);
      case ExprKind::Block:
        for (StmtId stmt : e.stmts) visit(program_.stmts[stmt.index()]);
        return visit_args(e);
      case ExprKind::Builtin:
        return visit_builtin(e);
      default:
        return visit_args(e) || may_differ(e.size) || may_differ(e.size2);
    }
  }

  // Visits both, because a visit also records facts.
  bool visit_both(ExprId a, ExprId b) {
    const bool a_differs = visit(a);
    return visit(b) || a_differs;
  }

  bool visit_args(const Expr& e) {
    bool differs = false;
    for (ExprId arg : e.args) differs |= visit(arg);
    return differs;
  }

  bool visit_if(const Expr& e) {
    const bool way_differs = visit(e.args[0]);
    const Facts before = facts_;
    bool differs = way_differs;
    under(way_differs, program_.exprs[e.args[0].index()].span, [&] {
      differs |= visit(e.args.at(1));
      const Facts after_then = std::exchange(facts_, before);
      if (e.args.size() > 2) differs |= visit(e.args[2]);
      join(facts_, after_then);
    });
    return differs;
  }

  bool visit_builtin(const Expr& e) {
    if (e.builtin == BuiltinId::sendrecv) return visit_sendrecv(e);
    const bool differs = visit_args(e) || may_differ(e.size);
    switch (e.builtin) {
      case BuiltinId::allreduce:
      case BuiltinId::allgather:
      case BuiltinId::broadcast:
        note_collective(e);
        if (has_own_count(e)) facts_.counts[e.index] = false;
        return false;
      case BuiltinId::all_to_all:
      case BuiltinId::reduce_scatter:
        note_collective(e);
        return true;
      case BuiltinId::filter:
      case BuiltinId::nonzero: {
        const ExprId mask = e.args.at(e.builtin == BuiltinId::filter ? 1 : 0);
        if (e.index < facts_.counts.size()) facts_.counts[e.index] = visit(mask);
        return differs;
      }
      case BuiltinId::random:
      case BuiltinId::random_bits:
      case BuiltinId::random_index:
      case BuiltinId::normal:
      case BuiltinId::stochastic_round:
        return differs || !e.shared;
      default:
        return differs;
    }
  }

  bool visit_sendrecv(const Expr& e) {
    visit(e.args.at(0));
    const bool receiver_differs = visit(e.args.at(1));
    note_collective(e);
    note_receiver(e, receiver_differs);
    if (has_own_count(e)) facts_.counts[e.index] = true;
    return true;
  }

  // Does the collective's result have a count of its own, because the length of its array may
  // differ between ranks?
  static bool has_own_count(const Expr& e) {
    const bool may_be_counted =
        e.builtin == BuiltinId::allgather || e.builtin == BuiltinId::sendrecv;
    return may_be_counted && e.size.is_valid();
  }

  void note_collective(const Expr& e) {
    const Expr& array = program_.exprs[e.args.at(0).index()];
    bool size_differs = false;
    if (has_own_count(e)) {
      size_differs = may_differ(e.size);
    } else {
      for (int i = 0; i < array.type.rank; ++i) size_differs |= may_differ(array.type.dims[i]);
    }
    if (cause_ != nullptr) {
      note({e.span, e.builtin, *cause_, Disagreement::Kind::Way});
    } else if (size_differs) {
      note({e.span, e.builtin, array.span, Disagreement::Kind::Size});
    }
  }

  // Some rounds of `repeat` may pass before a difference shows, so receivers are collected first.
  void note_receiver(const Expr& e, bool differs) {
    const Span& to = program_.exprs[e.args.at(1).index()].span;
    const auto known = std::ranges::find_if(
        receivers_, [&](const Receiver& each) { return each.same.cause == to; });
    if (known == receivers_.end()) {
      receivers_.push_back({{e.span, e.builtin, to, Disagreement::Kind::Receiver}, differs});
    } else {
      known->differs |= differs;
    }
  }

  // Reports each collective only once.
  void note(const Disagreement& found) {
    const auto is_known = [&](const Disagreement& known) {
      return known.collective == found.collective;
    };
    if (std::none_of(found_.begin(), found_.end(), is_known)) found_.push_back(found);
  }

  void visit(const Stmt& s) {
    if (s.kind == StmtKind::For || s.kind == StmtKind::While) return visit_loop(s);
    const bool differs = visit_both(s.expr, s.expr2) || cause_ != nullptr;
    switch (s.kind) {
      case StmtKind::AssignState:
        facts_.states[s.index] = differs;
        return;
      case StmtKind::AssignIndexed:
        if (!differs) return;  // elements that are not overwritten keep their facts
        (s.is_state ? facts_.states[s.index] : facts_.vars[s.var.index()]) = true;
        return;
      case StmtKind::Let:
      case StmtKind::Assign:
        facts_.vars[s.var.index()] = differs;
        return;
      default:
        return;
    }
  }

  void visit_loop(const Stmt& s) {
    const bool is_while = s.kind == StmtKind::While;
    const Span cause = is_while ? program_.exprs[s.expr2.index()].span : s.span;
    const bool range_differs = may_differ(s.size) || may_differ(s.size2);
    repeat([&] {
      const bool differs = visit(s.expr2) || range_differs;
      if (!is_while) facts_.vars[s.var.index()] = differs || cause_ != nullptr;
      under(differs, cause, [&] { visit(s.expr); });
    });
  }

  // Runs `body` repeatedly, each time with the facts from before it and after its last run, until
  // these do not change.
  template <typename Body>
  void repeat(const Body& body) {
    for (;;) {
      const Facts before = facts_;
      body();
      join(facts_, before);
      if (facts_ == before) return;
    }
  }

  template <typename Body>
  void under(bool differs, const Span& cause, const Body& body) {
    const Span* const outer = cause_;
    if (differs && cause_ == nullptr) cause_ = &cause;
    body();
    cause_ = outer;
  }

  bool may_differ(HostExprId id) const {
    if (!id.is_valid()) return false;
    const HostExprNode& node = program_.info.exprs.node(id);
    if (node.op == HostOp::Worker) return true;
    if (node.op == HostOp::Count) {
      return node.payload >= facts_.counts.size() || facts_.counts[node.payload];
    }
    return std::any_of(std::begin(node.args), std::end(node.args),
                       [&](HostExprId arg) { return may_differ(arg); });
  }

  const CheckedProgram& program_;
  struct Receiver {
    Disagreement same;  // reported if the receiver is surely the same
    bool differs = false;
  };

  Facts facts_;
  std::vector<Receiver> receivers_;  // receivers of `sendrecv`
  const Span* cause_ = nullptr;      // the outermost condition that may differ
  std::vector<Disagreement> found_;
};

}  // namespace

std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& sync) {
  return Walker(program).run(sync);
}

}  // namespace cinch::sema
