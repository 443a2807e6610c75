// The checked tree under construction: its nodes, value numbering, facts about arrays of indices,
// counts, texts about values, and limits on growth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {
/// The result of a block or a branch: its value, and statements that are not part of the value.
/// Several values, or a payload, have no expression that could hold them.
struct Branch {
  Value value;
  std::vector<StmtId> stmts;
};

class TreeBuilder : Part {
 public:
  using Part::Part;

  /// New statements go into this list; nullptr: nowhere.
  void collect_into(std::vector<StmtId>* stmts) { stmts_ = stmts; }
  /// Adds an expression to the tree and returns its value.
  Value typed(Expr expr);
  VarId add_var(std::string name, const Type& type, bool is_mutable, Span span);
  /// Reads a variable's current value.
  Value read_var(VarId var, Span span);
  /// Adds a statement to the current block.
  void push(Stmt stmt);
  /// Runs `body` with a statement list of its own. The result is a Block if `body` adds statements.
  Value in_block(Span span, const std::function<Value()>& body);
  /// The same, but returns the statements before several values or a payload.
  Branch in_branch(Span span, const std::function<Value()>& body);
  /// Adds the statements that `body` pushes to the end of the branch.
  void into_branch(Branch& branch, const std::function<void()>& body);
  /// Adds the branch's statements to the current block.
  void push_all(const Branch& branch);
  /// Makes a read-only variable for a value that is used more than once.
  Value shared(const Value& value, std::string name);
  /// Does the array's length come from a filter in the current statement? The count is known only
  /// after that filter has run.
  bool holds_filter(const Value& value);
  /// Runs `use`, which checks the length of an operand, after the filters in the operand.
  Value behind_filter(const Value& operand, Span span,
                      const std::function<Value(const Value&)>& use);
  /// Requires a host condition: proves it, reports a mistake, or adds a check before launch.
  bool require(HostExprId condition, const std::string& what, Span span,
               const std::string& found = "");
  /// Requires `a <= b`.
  bool require_at_most(HostExprId a, HostExprId b, const std::string& what, Span span);
  /// Requires `size >= 0`.
  bool require_nonnegative(HostExprId size, const std::string& what, Span span);
  /// Adds an expression of a named operator. `set` fills in its attributes.
  Value builtin(BuiltinId id, Type type, std::vector<ExprId> args, Span span,
                const std::function<void(Expr&)>& set = {});

 private:
  bool has_too_many(const Type& type);
  bool is_leaf(const Value& value) const;
  bool has_filter(ExprId id) const;

  std::vector<StmtId>* stmts_ = nullptr;  // of the current block
};

// Value numbering finds expressions with the same value. Reads of mutable names contain the number
// of the assignment that they see.

class ValueNumbering : Part {
 public:
  using Part::Part;

  /// Notes a declaration with its value or first value.
  void note_let(const Stmt& let);
  /// Notes a read of a mutable variable.
  void note_read(ExprId read, VarId var);
  /// Notes that the variable has a new value.
  void note_assignment(VarId var) { ++var_versions_[var.index()]; }
  void note_state_read(ExprId read, std::uint32_t state) {
    read_versions_[read.index()] = {state_versions_[state], epoch_};
  }
  void note_state_assignment(std::uint32_t state) { ++state_versions_[state]; }
  /// Notes that the first expression has the value of the second, from which it was made.
  void note_same(ExprId made, ExprId of) { same_values_[made.index()] = of; }
  /// Notes the values of a payload's fields.
  void note_payload(VarId payload, ExprId literal) { payload_literals_[payload.index()] = literal; }
  /// The number of assignments to the variable so far.
  std::uint32_t version(VarId var) const;
  /// Makes later reads differ from all earlier ones, where control flow splits or joins.
  void forget_masks() { ++epoch_; }
  /// Returns the argument for leave_loop.
  std::uint32_t enter_loop() { return std::exchange(loop_, ++num_loops_); }
  void leave_loop(std::uint32_t outer) { loop_ = outer; }
  /// Expressions with equal numbers have equal values.
  std::uint32_t value_number(ExprId written);

 private:
  ExprId resolved(ExprId id) const;
  ExprId unwidened(ExprId id) const;
  std::string expression_key(ExprId id);

  // Number of the assignment, and the epoch.
  using Version = std::pair<std::uint32_t, std::uint32_t>;
  std::map<std::uint32_t, std::uint32_t> numbers_;  // by ExprId
  std::map<std::string, std::uint32_t> numbers_by_key_;
  std::map<std::uint32_t, std::string> lambda_params_;  // by VarId, for lambdas seen so far
  int key_depth_ = 0;  // depth of lambdas around the current expression
  int key_levels_ = 0;
  std::map<std::uint32_t, ExprId> definitions_;  // by VarId of a name that does not change
  // By VarId of a `let mut`: its first value, and the loop in which it is declared.
  std::map<std::uint32_t, std::pair<ExprId, std::uint32_t>> first_values_;
  // By ExprId of an expression that has another one's value: reads of a first value, cut fields.
  std::map<std::uint32_t, ExprId> same_values_;
  std::uint32_t loop_ = 0, num_loops_ = 0;
  std::map<std::uint32_t, ExprId> payload_literals_;  // by VarId of a payload
  std::map<std::uint32_t, Version> read_versions_;    // by ExprId of a read
  std::map<std::uint32_t, std::uint32_t> var_versions_, state_versions_;
  std::uint32_t epoch_ = 0;
};

// Facts about arrays of indices: about results of arithmetic, and about mutable variables, for
// which it follows assignments through branches and loops. At the beginning of a loop, what is
// known of a variable is an assumption: it holds in the first round, and in all others if the body
// keeps it. That is known at the end of the body. What fails until then is reported there.

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
  Outcome outcome_of(const std::vector<Assumption>& made, const VariableFacts& before);
  void settle(const Outcome& outcome);

  VariableFacts variable_facts_;  // current facts
  std::uint64_t open_ = 0;        // assumptions of all loops around this place
  std::vector<Use> uses_;         // of open assumptions
};

// Counts are the numbers of elements that filters keep. Filters with the same mask share a count. A
// filter in decode keeps as many elements as encode sent, if encode used the same mask and decode
// can compute that mask from the payload.

class Counts : Part {
 public:
  using Part::Part;

  /// Forgets the counts of other bodies.
  void begin_body() { counts_by_mask_.clear(); }
  /// The wire literal that fills encode's payload; invalid before encode.
  ExprId sent_literal() const { return sent_literal_; }
  /// The entry of ProgramInfo::counts for a filter with this mask and limit. Reports a count
  /// without a bound.
  std::optional<std::uint32_t> count_of_mask(const Value& mask, HostExprId limit, HostExprId len,
                                             Span span);
  /// The count of an array from other ranks; one for each key.
  std::uint32_t received(const std::string& key, HostExprId most);
  /// Names the counts of a type after the first named array of that length.
  void name_counts(const Type& type, const ast::Name& name);
  /// Equal keys mean equal masks and equal limits.
  std::string count_key(const Value& mask, HostExprId limit);
  /// Remembers what encode sent: its counts by their filters' masks, and the values of its fields.
  void note_sent_counts(const Instance& instance, const Value& wire);
  /// Adds checks that counts of the wire are equal if the same mask filled them.
  void check_twin_counts(Span span);
  /// If the same mask filled two counts of the wire, fields with the second get the first.
  Value with_first_count(const Value& field, Span span);
  /// Adds a note why a filter in decode may keep another number of elements than encode sent.
  void note_masks(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);
  /// The wire's count that equals the count of this filter, if the payload is valid.
  std::optional<std::uint32_t> sent_count(const std::string& key) const;
  /// Checks that the filter kept as many elements as the wire says, and gives the result the wire's
  /// count.
  Value as_sent(const Value& result, std::uint32_t count, const CallArgs& args);

 private:
  std::map<std::string, std::uint32_t> counts_by_mask_;
  std::set<HostExprId> unnamed_counts_;  // named only by the compiler so far
  // The wire's counts by key, as encode filled them.
  std::map<std::string, std::uint32_t> sent_counts_;
  // By the second of two counts of the wire with the same mask: the first.
  std::map<std::uint32_t, std::uint32_t> twin_counts_;
  ExprId sent_literal_;
};

// Text about values: in diagnostics and their notes, and in the record of types that editors show.

class Descriptions : Part {
 public:
  using Part::Part;

  std::string number_text(const Value& value);
  /// A value in words, for "expected …, found …".
  std::string describe(const Value& value);
  /// Records for editors what is known of an expression or a declared name.
  void record_type(Span span, const Value& value);
  void record_type(Span span, const Symbol& symbol);
  /// Adds notes about the places where the sizes of these values come from.
  dsl::Diagnostic& note_sizes(dsl::Diagnostic& diag, std::initializer_list<const Value*> values);

 private:
  bool records_types(Span span) const;
  void record_text(Span span, std::string text) const;
};

// Limits the growth of programs. Functions and compressors are inlined at every use, so a few lines
// may ask for any number of operations. Also finds the use to name when a limit is reached.

class GrowthLimits : Part {
 public:
  using Part::Part;

  /// An open level of expressions and blocks.
  class Level {
   public:
    explicit Level(GrowthLimits& in) : in_(in) {
      ++in_.levels_;
      in_.count_levels(0);
    }
    ~Level() { --in_.levels_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    GrowthLimits& in_;
  };
  /// Measures the nesting of everything that is elaborated during its life.
  class Depth {
   public:
    explicit Depth(GrowthLimits& in) : in_(in), outer_(std::exchange(in.deepest_, in.levels_)) {}
    ~Depth() { in_.deepest_ = std::max(in_.deepest_, outer_); }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;
    int levels() const { return in_.deepest_ - in_.levels_; }

   private:
    GrowthLimits& in_;
    int outer_;
  };
  /// An open use of something that is inlined. The first one is the whole compressor or fn.
  class Use {
   public:
    Use(GrowthLimits& in, Span span) : in_(in) {
      in_.open_uses_.push_back({span, in_.growth_now()});
    }
    ~Use() { in_.open_uses_.pop_back(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    GrowthLimits& in_;
  };
  /// Counts this many levels as if they were open now.
  void count_levels(int more) { deepest_ = std::max(deepest_, levels_ + more); }

  /// Counts a new expression. Reports a program that is too large.
  void weigh(const Expr& expr);
  /// May elaboration go on? Reports once if too much was elaborated, or if the stack would
  /// overflow.
  bool may_go_on(Span span);
  /// Is there room for this many more levels? Reports if not.
  bool holds_levels(int more, Span span);

 private:
  std::size_t operations_of(const Expr& expr);
  void report_growth(Span reached, std::size_t most, std::size_t Growth::* measure);
  void report_too_large(Span span, std::size_t most);
  Growth growth_now() const;

  struct OpenUse {
    Span span;
    Growth before;
  };
  std::vector<OpenUse> open_uses_;
  std::vector<std::size_t> weights_;  // operations by expression, counted at every use
  std::size_t num_operations_ = 0;
  int levels_ = 0;
  int deepest_ = 0;
};

}  // namespace cinch::sema
