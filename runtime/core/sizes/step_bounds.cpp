// Bodies of host_range.h: splits ranges of steps whose bound is loose, the worst first.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <queue>
#include <vector>

#include "runtime/core/sizes/host_expr_ops.h"
#include "runtime/core/sizes/host_range.h"

namespace cinch {
namespace {

constexpr int kMostCuts = 256;
// A bound that exceeds a found value by at most this share is near enough.
constexpr std::int64_t kNearShare = 16;

struct Steps {
  std::int64_t first = 0, last = 0;
};

// Splits the range at half of its binary digits: sizes that depend on steps change early, and over
// decades.
std::int64_t middle(const Steps& steps) {
  const auto width = [](std::int64_t x) { return std::bit_width(static_cast<std::uint64_t>(x)); };
  const int low = width(steps.first), high = width(steps.last);
  if (high - low < 2) return steps.first + (steps.last - steps.first) / 2;
  return (std::int64_t{1} << (low + high) / 2) - 1;
}

class RangesOverSteps {
 public:
  RangesOverSteps(const HostExprPool& pool, HostExprId id, const HostEnv& env)
      : pool_(pool), id_(id), env_(env), ranges_(id.index() + 1) {
    env_.memo = nullptr;
    std::vector<bool> is_used(ranges_.size());
    is_used[id.index()] = true;
    for (std::size_t i = ranges_.size(); i-- > 0;) {
      if (!is_used[i]) continue;
      note(HostExprId(i));
      if (!follows_step(HostExprId(i))) continue;
      for (HostExprId arg : pool.node(HostExprId(i)).args) {
        if (arg) is_used[arg.index()] = true;
      }
    }
    std::ranges::reverse(following_);
  }

  HostRange over(const Steps& steps) {
    for (HostExprId id : following_) {
      const HostExprNode& node = pool_.node(id);
      if (node.op == HostOp::Step) {
        ranges_[id.index()] = {HostValue::from_int(steps.first), HostValue::from_int(steps.last)};
        continue;
      }
      HostRange args[3];
      const int num_args = host_op_num_args(node.op);
      for (int i = 0; i < num_args; ++i) args[i] = ranges_[node.args[i].index()];
      ranges_[id.index()] =
          apply_to_ranges(node.op, node.type, {args, static_cast<std::size_t>(num_args)});
    }
    return ranges_[id_.index()];
  }

 private:
  // A count has the environment's value, though its bound may depend on the step.
  bool follows_step(HostExprId id) const {
    return pool_.depends_on(id, HostOp::Step) && pool_.node(id).op != HostOp::Count;
  }

  // A node that does not depend on the step has one value.
  void note(HostExprId id) {
    if (follows_step(id)) {
      following_.push_back(id);
      return;
    }
    const auto value = pool_.eval(id, env_);
    const bool is_number = value && !(value->to_double() != value->to_double());
    ranges_[id.index()] = !value      ? HostRange::none(pool_.type(id))
                          : is_number ? HostRange::point(*value)
                                      : HostRange::whole(pool_.type(id));
  }

  const HostExprPool& pool_;
  HostExprId id_;
  HostEnv env_;
  std::vector<HostRange> ranges_;      // by node
  std::vector<HostExprId> following_;  // nodes that depend on the step, arguments before users
};

// Searches the largest value, or with sign -1 the smallest, whose sign is flipped.
class StepSearch {
 public:
  StepSearch(RangesOverSteps& ranges, int sign, std::int64_t found)
      : ranges_(ranges), sign_(sign), found_(signed_of(found)) {}

  std::int64_t run(const Steps& all) {
    add(all);
    for (int cuts = 0; cuts < kMostCuts && !open_.empty(); ++cuts) {
      const Open worst = open_.top();
      if (worst.bound <= found_ || is_near(worst.bound)) break;
      open_.pop();
      const std::int64_t cut = middle(worst.steps);
      add({worst.steps.first, cut});
      add({cut + 1, worst.steps.last});
    }
    const std::int64_t bound = open_.empty() ? found_ : std::max(found_, open_.top().bound);
    return signed_of(bound);
  }

 private:
  struct Open {
    std::int64_t bound = 0;
    Steps steps;
    bool operator<(const Open& other) const { return bound < other.bound; }
  };

  // ~x: like -x, but defined for all values.
  std::int64_t signed_of(std::int64_t value) const { return sign_ < 0 ? ~value : value; }

  // Is the bound near to the found value?
  bool is_near(std::int64_t bound) const {
    const auto apart = static_cast<std::uint64_t>(bound) - static_cast<std::uint64_t>(found_);
    return apart <= static_cast<std::uint64_t>(std::abs(found_ / kNearShare));
  }

  void add(const Steps& steps) {
    const HostRange range = ranges_.over(steps);
    if (range.is_none) return;
    const std::int64_t bound = signed_of(sign_ < 0 ? range.low.as_int() : range.high.as_int());
    if (steps.first == steps.last) {
      found_ = std::max(found_, bound);
      return;
    }
    for (const std::int64_t step : {steps.first, steps.last}) {
      const HostRange one = ranges_.over({step, step});
      if (one.is_none) continue;
      found_ = std::max(found_, signed_of(sign_ < 0 ? one.high.as_int() : one.low.as_int()));
    }
    open_.push({bound, steps});
  }

  RangesOverSteps& ranges_;
  const int sign_;
  std::int64_t found_;
  std::priority_queue<Open> open_;
};

}  // namespace

rt::Result<StepBounds> bounds_over_steps(const HostExprPool& pool, HostExprId id,
                                         const HostEnv& env, std::int64_t from) {
  HostEnv first = env;
  first.step = from;
  first.memo = nullptr;
  const auto at_first = pool.eval_int(id, first);
  CINCH_TRY(at_first);
  if (!pool.depends_on(id, HostOp::Step)) return StepBounds{*at_first, *at_first};
  RangesOverSteps ranges(pool, id, first);
  const Steps all{from, kMostStep};
  return StepBounds{StepSearch(ranges, -1, *at_first).run(all),
                    StepSearch(ranges, 1, *at_first).run(all)};
}

}  // namespace cinch
