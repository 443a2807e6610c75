// Follows assignments in order. Repeats loops, and the whole body for its states, until no further
// value may differ. See methods.h.
#include "dsl/sema/bodies/methods.h"
#include "runtime/core/sizes/host_expr.h"

#include <algorithm>
#include <utility>

namespace cinch::sema {

namespace {

// What a value is made of, as far as ranks are concerned. The larger one holds for what is made of
// two.
enum class Made : std::uint8_t {
  Alike,    // the same on every rank
  OfOwn,    // of what this rank has: it may differ
  OfOthers  // also of what one rank sent to another: whether it differs, nobody knows
};

Made both(Made a, Made b) {
  return std::max(a, b);
}

bool differs(Made made) {
  return made != Made::Alike;
}

// What values are made of at one point of the body.
struct Facts {
  std::vector<Made> vars, states, counts;
  bool behind_own_loop = false;  // so shared draws do not have the same numbers
  friend bool operator==(const Facts&, const Facts&) = default;
};

void join(std::vector<Made>& into, const std::vector<Made>& other) {
  for (std::size_t i = 0; i < into.size(); ++i) into[i] = both(into[i], other[i]);
}

void join(Facts& into, const Facts& other) {
  join(into.vars, other.vars);
  join(into.states, other.states);
  join(into.counts, other.counts);
  into.behind_own_loop = into.behind_own_loop || other.behind_own_loop;
}

class Walker {
 public:
  explicit Walker(const CheckedProgram& program) : program_(program) {
    facts_.vars.resize(program.vars.size());
    facts_.states.resize(program.info.states.size());
    facts_.counts.resize(program.info.counts.size());
  }

  std::vector<Disagreement> run(const Body& encode, const Body& finish) {
    visit_initial_states();
    Made update = Made::Alike;
    repeat([&] {
      gradient_ = Made::OfOwn;
      visit(encode.root);
      gradient_ = Made::Alike;
      update = visit(finish.root);
    });
    note_update(update, finish);
    return std::move(found_);
  }

  std::vector<Disagreement> run(const Body& sync) {
    visit_initial_states();
    Made update = Made::Alike;
    repeat([&] { update = visit(sync.root); });
    for (const Receiver& each : receivers_) {
      if (!each.differs) note(each.same);
    }
    if (found_.empty()) note_update(update, sync);
    const auto is_before = [](const Disagreement& a, const Disagreement& b) {
      return a.collective.begin < b.collective.begin;
    };
    std::sort(found_.begin(), found_.end(), is_before);
    return std::move(found_);
  }

 private:
  void visit_initial_states() {
    for (std::size_t i = 0; i < facts_.states.size(); ++i) {
      facts_.states[i] = visit(program_.state_inits[i]);
    }
  }

  void note_update(Made update, const Body& body) {
    if (update != Made::OfOwn) return;
    const Span& span = program_.exprs[result_of(body.root).index()].span;
    note({span, {}, span, Disagreement::Kind::Update});
  }

  // The expression that gives a block its value.
  ExprId result_of(ExprId id) const {
    const Expr& e = program_.exprs[id.index()];
    if (e.kind != ExprKind::Block || e.args.empty() || !e.args[0].is_valid()) return id;
    return result_of(e.args[0]);
  }

  Made visit(ExprId id) {
    if (!id.is_valid()) return Made::Alike;
    const Expr& e = program_.exprs[id.index()];
    switch (e.kind) {
      case ExprKind::Gradient:
        return gradient_;
      case ExprKind::HostSize:
        return made_of(e.size);
      case ExprKind::Var:
      case ExprKind::Field:
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
        return both(visit_args(e), both(made_of(e.size), made_of(e.size2)));
    }
  }

  Made visit_args(const Expr& e) {
    Made made = Made::Alike;
    for (ExprId arg : e.args) made = both(made, visit(arg));
    return made;
  }

  Made visit_if(const Expr& e) {
    Made made = visit(e.args[0]);
    const Facts before = facts_;
    under(made, program_.exprs[e.args[0].index()].span, [&] {
      made = both(made, visit(e.args.at(1)));
      const Facts after_then = std::exchange(facts_, before);
      if (e.args.size() > 2) made = both(made, visit(e.args[2]));
      join(facts_, after_then);
    });
    return made;
  }

  Made visit_builtin(const Expr& e) {
    if (e.builtin == BuiltinId::sendrecv) return visit_sendrecv(e);
    if (e.builtin == BuiltinId::broadcast) return visit_broadcast(e);
    const Made made = both(visit_args(e), made_of(e.size));
    switch (e.builtin) {
      case BuiltinId::allreduce:
      case BuiltinId::allgather:
        note_collective(e);
        // Groups may end with different values.
        if (e.group.is_valid()) return Made::OfOthers;
        if (has_own_count(e)) facts_.counts[e.index] = Made::Alike;
        return Made::Alike;
      case BuiltinId::all_to_all:
      case BuiltinId::reduce_scatter:
        note_collective(e);
        return Made::OfOthers;
      case BuiltinId::filter:
      case BuiltinId::nonzero: {
        const ExprId mask = e.args.at(e.builtin == BuiltinId::filter ? 1 : 0);
        if (e.index < facts_.counts.size()) facts_.counts[e.index] = visit(mask);
        return made;
      }
      case BuiltinId::random:
      case BuiltinId::random_bits:
      case BuiltinId::random_index:
      case BuiltinId::normal:
      case BuiltinId::stochastic_round:
        ++num_draws_;
        return e.shared && (e.stream || !facts_.behind_own_loop) ? made : both(made, Made::OfOwn);
      default:
        return made;
    }
  }

  Made visit_broadcast(const Expr& e) {
    visit(e.args.at(0));
    const bool root_differs = e.args.size() > 1 && differs(visit(e.args[1]));
    note_collective(e);
    if (root_differs) {
      const Span& root = program_.exprs[e.args[1].index()].span;
      note({e.span, e.builtin, root, Disagreement::Kind::Root});
    }
    return Made::Alike;
  }

  Made visit_sendrecv(const Expr& e) {
    visit(e.args.at(0));
    const bool receiver_differs = differs(visit(e.args.at(1)));
    note_collective(e);
    note_receiver(e, receiver_differs);
    if (has_own_count(e)) facts_.counts[e.index] = Made::OfOthers;
    return Made::OfOthers;
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
      size_differs = differs(made_of(e.size));
    } else {
      for (int i = 0; i < array.type.rank; ++i)
        size_differs |= differs(made_of(array.type.dims[i]));
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
    const Made first = visit(s.expr);
    const Made made = both(both(first, visit(s.expr2)), way_);
    switch (s.kind) {
      case StmtKind::AssignState:
        facts_.states[s.index] = made;
        return;
      case StmtKind::AssignIndexed:
        // Elements that are not overwritten keep their facts.
        assigned_to(s) = both(assigned_to(s), made);
        return;
      case StmtKind::Let:
      case StmtKind::LetPayload:
      case StmtKind::Assign:
        facts_.vars[s.var.index()] = made;
        return;
      default:
        return;
    }
  }

  Made& assigned_to(const Stmt& s) {
    return s.is_state ? facts_.states[s.index] : facts_.vars[s.var.index()];
  }

  void visit_loop(const Stmt& s) {
    const bool is_while = s.kind == StmtKind::While;
    const Span cause = is_while ? program_.exprs[s.expr2.index()].span : s.span;
    const Made range = both(made_of(s.size), made_of(s.size2));
    const std::size_t draws_before = num_draws_;
    repeat([&] {
      const Made made = both(visit(s.expr2), range);
      if (!is_while) facts_.vars[s.var.index()] = both(made, way_);
      under(made, cause, [&] { visit(s.expr); });
    });
    if (differs(range) && num_draws_ != draws_before) facts_.behind_own_loop = true;
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
  void under(Made way, const Span& cause, const Body& body) {
    const Span* const outer = cause_;
    const Made outer_way = std::exchange(way_, both(way_, way));
    if (differs(way) && cause_ == nullptr) cause_ = &cause;
    body();
    cause_ = outer;
    way_ = outer_way;
  }

  Made made_of(HostExprId id) const {
    if (!id.is_valid()) return Made::Alike;
    const HostExprNode& node = program_.info.exprs->node(id);
    if (node.op == HostOp::Worker) return Made::OfOwn;
    if (node.op == HostOp::Count) {
      return node.payload < facts_.counts.size() ? facts_.counts[node.payload] : Made::OfOwn;
    }
    Made made = Made::Alike;
    for (HostExprId arg : node.args) made = both(made, made_of(arg));
    return made;
  }

  const CheckedProgram& program_;
  struct Receiver {
    Disagreement same;  // reported if the receiver is surely the same
    bool differs = false;
  };

  Made gradient_ = Made::OfOwn;
  Facts facts_;
  std::vector<Receiver> receivers_;  // receivers of `sendrecv`
  const Span* cause_ = nullptr;      // the outermost condition that may differ
  Made way_ = Made::Alike;           // what the conditions around are made of
  std::size_t num_draws_ = 0;        // that were visited
  std::vector<Disagreement> found_;
};

}  // namespace

std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& sync) {
  return Walker(program).run(sync);
}

std::vector<Disagreement> find_disagreements(const CheckedProgram& program, const Body& encode,
                                             const Body& finish) {
  return Walker(program).run(encode, finish);
}

}  // namespace cinch::sema
