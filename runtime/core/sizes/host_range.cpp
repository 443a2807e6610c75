// Operations on ranges, by their monotonicity; see host_range.h. Rounding is monotonic, so an
// operation that is monotonic in each argument has its extremes at the ends of the arguments'
// ranges.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <queue>

#include "runtime/core/sizes/host_expr_ops.h"
#include "runtime/core/sizes/host_range.h"

namespace cinch {
namespace {

using Ranges = std::span<const HostRange>;

constexpr std::int64_t kLeast = INT64_MIN, kMost = INT64_MAX;

bool is_real(HostType type) {
  return type == HostType::F32 || type == HostType::F64;
}

HostValue number(HostType type, double value) {
  return type == HostType::F32 ? HostValue::from_f32(static_cast<float>(value))
                               : HostValue::from_f64(value);
}

HostRange integers(std::int64_t low, std::int64_t high) {
  return {HostValue::from_int(low), HostValue::from_int(high)};
}

bool is_before(const HostValue& a, const HostValue& b) {
  if (!is_real(a.type))
    return static_cast<std::int64_t>(a.bits) < static_cast<std::int64_t>(b.bits);
  return a.to_double() < b.to_double();
}

HostRange hull(const HostRange& a, const HostRange& b) {
  if (a.is_none) return b;
  if (b.is_none) return a;
  return {is_before(b.low, a.low) ? b.low : a.low, is_before(a.high, b.high) ? b.high : a.high};
}

bool may_be_nan(const HostRange& x) {
  return is_real(x.low.type) && (std::isinf(x.low.to_double()) || std::isinf(x.high.to_double()));
}

// The end of the integers beyond which the result lies.
HostValue saturated(HostOp op, std::span<const HostValue> args) {
  const double a = args[0].to_double(), b = args.size() > 1 ? args[1].to_double() : 0;
  const bool is_negative = op == HostOp::Add   ? a + b < 0
                           : op == HostOp::Sub ? a - b < 0
                           : op == HostOp::Mul ? (a < 0) != (b < 0)
                           : op == HostOp::Shl ? a < 0
                                               : false;
  return HostValue::from_int(is_negative ? kLeast : kMost);
}

// For an operation that is monotonic in each argument while the others are fixed.
HostRange at_corners(HostOp op, HostType result, Ranges args) {
  HostRange all = HostRange::none(result);
  for (unsigned corner = 0; corner < 1u << args.size(); ++corner) {
    HostValue values[3];
    for (std::size_t i = 0; i < args.size(); ++i) {
      values[i] = (corner >> i & 1) != 0 ? args[i].high : args[i].low;
    }
    const std::span<const HostValue> given(values, args.size());
    const auto value = apply_host_op(op, result, given);
    const HostValue found = value ? *value : saturated(op, given);
    if (is_real(result) && std::isnan(found.to_double())) return HostRange::whole(result);
    all = hull(all, HostRange::point(found));
  }
  return all;
}

// Errors of the language's own functions are below one unit in the last place.
HostValue moved(const HostValue& value, double towards) {
  constexpr int kUnits = 3;
  if (value.type == HostType::F32) {
    float x = value.as_f32();
    for (int i = 0; i < kUnits; ++i) x = std::nextafter(x, static_cast<float>(towards));
    return HostValue::from_f32(x);
  }
  double x = value.as_f64();
  for (int i = 0; i < kUnits; ++i) x = std::nextafter(x, towards);
  return HostValue::from_f64(x);
}

HostRange widened(const HostRange& x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (x.is_point()) return x;
  return {moved(x.low, -kInfinity), moved(x.high, kInfinity)};
}

// Treats the parts of the divisor's range on both sides of zero separately; an integer divided by
// zero is 0.
HostRange quotient(HostOp op, HostType result, Ranges args) {
  const HostRange& by = args[1];
  const HostValue zero = is_real(result) ? number(result, 0) : HostValue::from_int(0);
  const bool holds_zero = !is_before(zero, by.low) && !is_before(by.high, zero);
  if (!holds_zero) return at_corners(op, result, args);
  if (is_real(result)) return HostRange::whole(result);
  HostRange all = integers(0, 0);
  if (by.low.as_int() < 0) {
    const HostRange part[] = {args[0], integers(by.low.as_int(), -1)};
    all = hull(all, at_corners(op, result, part));
  }
  if (by.high.as_int() > 0) {
    const HostRange part[] = {args[0], integers(1, by.high.as_int())};
    all = hull(all, at_corners(op, result, part));
  }
  return all;
}

// A remainder is no farther from zero than the dividend, and nearer than the divisor.
HostRange rest(const HostRange& a, const HostRange& by) {
  const std::int64_t low = a.low.as_int(), high = a.high.as_int();
  const auto below = [](std::int64_t x) { return x == kLeast ? kMost : std::abs(x) - 1; };
  const bool is_whole = by.low.as_int() > 0 && low >= 0 && high < by.low.as_int();
  if (is_whole) return a;
  const std::int64_t most =
      std::max<std::int64_t>({0, below(by.low.as_int()), below(by.high.as_int())});
  return integers(low < 0 ? std::max(low, -most) : 0, high > 0 ? std::min(high, most) : 0);
}

HostRange aligned_up(const HostRange& a, const HostRange& to) {
  const HostRange args[] = {a, to};
  if (to.is_point()) return at_corners(HostOp::AlignUp, HostType::Int, args);
  std::int64_t most = 0;
  const std::int64_t step = std::max<std::int64_t>(to.high.as_int(), 1) - 1;
  if (__builtin_add_overflow(a.high.as_int(), step, &most)) most = kMost;
  return integers(a.low.as_int(), most);
}

HostRange shifted(HostOp op, const HostRange& a, const HostRange& by) {
  const bool is_plain = by.low.as_int() >= 0 && by.high.as_int() < 64;
  const HostRange args[] = {a, is_plain ? by : integers(0, 63)};
  return at_corners(op, HostType::Int, args);
}

HostRange joined_bits(HostOp op, const HostRange& a, const HostRange& b) {
  const std::int64_t a_high = a.high.as_int(), b_high = b.high.as_int();
  const bool a_counts = a.low.as_int() >= 0, b_counts = b.low.as_int() >= 0;
  if (op == HostOp::BitAnd && (a_counts || b_counts)) {
    return integers(0, std::min(a_counts ? a_high : kMost, b_counts ? b_high : kMost));
  }
  if (!a_counts || !b_counts) return HostRange::whole(HostType::Int);
  const int width = std::bit_width(static_cast<std::uint64_t>(std::max(a_high, b_high)));
  return integers(0, static_cast<std::int64_t>((std::uint64_t{1} << width) - 1));
}

HostRange magnitude(HostType result, Ranges args) {
  HostRange all = at_corners(HostOp::Abs, result, args);
  const HostValue zero = is_real(result) ? number(result, 0) : HostValue::from_int(0);
  if (is_before(args[0].low, zero) && is_before(zero, args[0].high)) all.low = zero;
  return all;
}

constexpr HostValue kFalse{HostType::Bool, 0}, kTrue{HostType::Bool, 1};

HostRange truth(bool may_be_false, bool may_be_true) {
  return {may_be_false ? kFalse : kTrue, may_be_true ? kTrue : kFalse};
}

HostRange compared(HostOp op, const HostRange& a, const HostRange& b) {
  if (may_be_nan(a) || may_be_nan(b)) return truth(true, true);
  const bool may_be_less = is_before(a.low, b.high), may_be_more = is_before(b.low, a.high);
  const bool may_be_same = !is_before(a.high, b.low) && !is_before(b.high, a.low);
  const bool takes_less = op == HostOp::Lt || op == HostOp::Le || op == HostOp::Ne;
  const bool takes_more = op == HostOp::Gt || op == HostOp::Ge || op == HostOp::Ne;
  const bool takes_same = op == HostOp::Le || op == HostOp::Ge || op == HostOp::Eq;
  const auto may_give = [&](bool result) {
    return (may_be_less && takes_less == result) || (may_be_more && takes_more == result) ||
           (may_be_same && takes_same == result);
  };
  return truth(may_give(false), may_give(true));
}

HostRange converted(HostType result, Ranges args) {
  if (result == HostType::Int && may_be_nan(args[0])) {
    return hull(at_corners(HostOp::Cast, result, args), integers(0, 0));  // NaN becomes 0
  }
  if (may_be_nan(args[0])) return HostRange::whole(result);
  if (result != HostType::Bool) return at_corners(HostOp::Cast, result, args);
  const double low = args[0].low.to_double(), high = args[0].high.to_double();
  return truth(low <= 0 && high >= 0, low != 0 || high != 0);
}

HostRange apply_to_unsure(HostOp op, HostType result, Ranges args) {
  switch (host_op_rule(op)) {
    case HostRule::Compare:
      return compared(op, args[0], args[1]);
    case HostRule::Cast:
      return converted(result, args);
    case HostRule::Logic:
      return at_corners(op, result, args);
    default:
      break;
  }
  switch (op) {
    case HostOp::Div:
    case HostOp::CeilDiv:
      return quotient(op, result, args);
    case HostOp::Mod:
      return rest(args[0], args[1]);
    case HostOp::AlignUp:
      return aligned_up(args[0], args[1]);
    case HostOp::Shl:
    case HostOp::Shr:
      return shifted(op, args[0], args[1]);
    case HostOp::BitAnd:
    case HostOp::BitOr:
    case HostOp::BitXor:
      return joined_bits(op, args[0], args[1]);
    case HostOp::Abs:
      return magnitude(result, args);
    case HostOp::Sin:
    case HostOp::Cos:
      return {number(result, -1), number(result, 1)};
    case HostOp::Pow:
      if (args[0].low.to_double() < 0) return HostRange::whole(result);
      return widened(at_corners(op, result, args));
    case HostOp::Exp:
    case HostOp::Exp2:
    case HostOp::Log:
    case HostOp::Log2:
      return widened(at_corners(op, result, args));
    default:
      return at_corners(op, result, args);
  }
}

}  // namespace

HostRange HostRange::whole(HostType type) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (type == HostType::Bool) return truth(true, true);
  if (type == HostType::Int) return integers(kLeast, kMost);
  return {number(type, -kInfinity), number(type, kInfinity)};
}

HostRange apply_to_ranges(HostOp op, HostType result, std::span<const HostRange> args) {
  if (op == HostOp::Select) {
    if (args[0].is_none) return HostRange::none(result);
    if (args[0].is_point()) return args[args[0].low.as_bool() ? 1 : 2];
    return hull(args[1], args[2]);
  }
  bool are_points = true;
  HostValue values[3];
  for (std::size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_none) return HostRange::none(result);
    are_points = are_points && args[i].is_point();
    values[i] = args[i].low;
  }
  if (!are_points) return apply_to_unsure(op, result, args);
  const auto value = apply_host_op(op, result, {values, args.size()});
  if (!value) return HostRange::none(result);
  const bool is_nan = is_real(result) && std::isnan(value->to_double());
  return is_nan ? HostRange::whole(result) : HostRange::point(*value);
}

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
  const auto at_first = TRY(pool.eval_int(id, first));
  if (!pool.depends_on(id, HostOp::Step)) return StepBounds{at_first, at_first};
  RangesOverSteps ranges(pool, id, first);
  const Steps all{from, kMostStep};
  return StepBounds{StepSearch(ranges, -1, at_first).run(all),
                    StepSearch(ranges, 1, at_first).run(all)};
}

}  // namespace cinch
