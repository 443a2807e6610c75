// Limits the growth of programs. Functions and compressors are inlined at every use, so a few lines
// may ask for any number of operations. Also finds the use to name when a limit is reached.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "dsl/sema/elaboration/part.h"

namespace cinch::sema {

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
