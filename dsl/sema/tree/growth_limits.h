// How large a program grows: what a text writes once is put in place wherever it is used, so a few
// lines may ask for any number of operations. Limits on that, and what is named when one is
// reached.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

class GrowthLimits : Part {
 public:
  using Part::Part;

  /// Holds an open level of expressions and blocks.
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
  /// Measures how many levels what is elaborated as long as it lives takes.
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
  /// Holds a use of what is put in place; the first one is all that is elaborated.
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
  /// As if so many levels were open now.
  void count_levels(int more) { deepest_ = std::max(deepest_, levels_ + more); }

  /// Counts an expression that was made; reports what is too large.
  void weigh(const Expr& expr);
  /// False, and reported once, where too much was elaborated or the stack would not hold more.
  bool may_go_on(Span span);
  /// Room for so many levels more, or reported.
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
  std::vector<std::size_t> weights_;  // by expression: operations, counted wherever it stands
  std::size_t num_operations_ = 0;
  int levels_ = 0;
  int deepest_ = 0;
};

}  // namespace cinch::sema
