// Proves inequalities between sizes. First it distinguishes cases of min, max, clamp and counts.
// Then it replaces terms of the difference by bounds until no remaining term can be negative.
#include <algorithm>
#include <cmath>

#include "dsl/sema/sizes/size_prover.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch::sema {

namespace {

// Each level replaces one term or opens one min, max or clamp.
constexpr int kMaxDepth = 7, kMaxSteps = 20000;
constexpr std::int64_t kMostElements = UINT32_MAX;

}  // namespace

bool SizeProver::is_nonnegative_float(HostExprId id, int depth) {
  if (depth <= 0) return false;
  const HostExprNode node = pool_.node(id);
  if (node.type == HostType::Bool) return true;
  if (node.type == HostType::Int) {
    return is_nonnegative_sum(polynomial(id), depth - 1);
  }
  if (node.op == HostOp::Const) {
    return node.type == HostType::F32 ? pool_.const_value(id).as_f32() >= 0
                                      : pool_.const_value(id).as_f64() >= 0;
  }
  if (node.op == HostOp::Param) return is_nonnegative_param(node);
  return gives_nonnegative(node.op,
                           [&](int i) { return is_nonnegative_float(node.args[i], depth - 1); });
}

bool SizeProver::is_nonnegative_param(const HostExprNode& node) const {
  const auto range = ranges_.find(static_cast<std::uint32_t>(node.payload));
  return range != ranges_.end() && range->second.low.value_or(-1) >= 0;
}

bool SizeProver::is_nonnegative_atom(HostExprId id, int depth) {
  if (nonnegative_leaves_.contains(id)) return true;
  if (depth <= 0) return false;
  const HostExprNode node = pool_.node(id);
  if (node.op == HostOp::Param) return is_nonnegative_param(node);
  if (node.op == HostOp::Cast) return is_nonnegative_float(node.args[0], depth - 1);
  return gives_nonnegative(
      node.op, [&](int i) { return is_nonnegative_sum(polynomial(node.args[i]), depth - 1); });
}

bool SizeProver::is_nonnegative_sum(const Polynomial& sum, int depth) {
  const bool all_positive = std::all_of(sum.begin(), sum.end(), [&](const auto& term) {
    return term.second >= 0 && std::all_of(term.first.begin(), term.first.end(), [&](HostExprId a) {
             return is_nonnegative_atom(a, depth);
           });
  });
  if (all_positive) return true;
  if (++steps_ > kMaxSteps) return false;
  return depth > 0 && (improve_negative_term(sum, depth) || improve_positive_term(sum, depth));
}

bool SizeProver::is_at_least_one(HostExprId id, int depth) {
  const HostExprNode node = pool_.node(id);
  if (node.op == HostOp::World || node.op == HostOp::MachineRanks) return true;
  Polynomial sum = polynomial(id);
  if (--sum[{}] == 0) sum.erase(std::vector<HostExprId>{});
  return is_nonnegative_sum(sum, depth);
}

// Expressions that are at least as large as the atom.
std::vector<HostExprId> SizeProver::upper_bounds(HostExprId atom, int depth) {
  const HostExprNode node = pool_.node(atom);
  switch (node.op) {
    case HostOp::N:
      return {pool_.const_int(kMostElements)};
    case HostOp::Count:
      return {node.args[0]};
    case HostOp::Min:
      return {node.args[0], node.args[1]};
    case HostOp::Clamp:
      return {node.args[2]};
    case HostOp::CeilDiv:
    case HostOp::Div: {
      if (!is_nonnegative_atom(atom, depth) || !is_at_least_one(node.args[1], depth)) return {};
      std::vector<HostExprId> bounds = {node.args[0]};
      const auto divisor = constant(node.args[1]);
      if (divisor && node.args[0] == pool_.n()) {
        bounds.push_back(pool_.const_int((kMostElements + *divisor - 1) / *divisor));
      }
      return bounds;
    }
    case HostOp::Shr:
    case HostOp::Mod:
      if (is_nonnegative_atom(atom, depth)) return {node.args[0]};
      return {};
    default:
      return {};
  }
}

// Expressions that are at most as large as the atom.
std::vector<HostExprId> SizeProver::lower_bounds(HostExprId atom) {
  const HostExprNode node = pool_.node(atom);
  switch (node.op) {
    case HostOp::Max:
      return {node.args[0], node.args[1]};
    case HostOp::AlignUp:
      return {node.args[0]};
    case HostOp::World:
    case HostOp::MachineRanks:
      return {pool_.const_int(1)};
    default:
      return {};
  }
}

namespace {

Polynomial without(Polynomial sum, const std::vector<HostExprId>& key) {
  sum.erase(key);
  return sum;
}

std::vector<HostExprId> without_atom(std::vector<HostExprId> key, HostExprId atom) {
  key.erase(std::find(key.begin(), key.end(), atom));
  return key;
}

}  // namespace

// The same for -c * rows * cols * rest: a tensor has fewer than 2^32 elements.
bool SizeProver::improve_negative_elements(const Polynomial& sum,
                                           const std::vector<HostExprId>& key, int depth) {
  std::vector<HostExprId> rest = key;
  for (const HostExprId side : {pool_.rows(), pool_.cols()}) {
    const auto at = std::ranges::find(rest, side);
    if (at == rest.end()) return false;
    rest.erase(at);
  }
  const bool rest_is_positive =
      std::ranges::all_of(rest, [&](HostExprId a) { return is_nonnegative_atom(a, depth - 1); });
  if (!rest_is_positive) return false;
  const HostExprId most = pool_.const_int(kMostElements);
  const HostExprId term = pool_.mul(rebuild_product(rest, sum.at(key)), most);
  const HostExprId next = pool_.add(rebuild(without(sum, key)), term);
  return is_nonnegative_sum(polynomial(next), depth - 1);
}

// The divisor of a quotient by a positive constant.
std::optional<std::int64_t> SizeProver::constant_divisor(const HostExprNode& node) {
  if (node.op != HostOp::Div && node.op != HostOp::CeilDiv) return std::nullopt;
  const auto divisor = constant(node.args[1]);
  return divisor && *divisor > 0 ? divisor : std::nullopt;
}

// Is others + factor * (x / d) * rest not negative? It is not, if d times it is not: for a negative
// factor and x >= 0, x / d is at most its exact quotient, and ceil_div(x, d) is at most that of
// x + d - 1. Without others' fractions, one whole quotient may be nearly 1 less.
bool SizeProver::holds_times_divisor(const Polynomial& others, const std::vector<HostExprId>& rest,
                                     std::int64_t factor, HostExprId quotient, int depth) {
  const HostExprNode node = pool_.node(quotient);
  const auto divisor = constant_divisor(node);
  if (!divisor || !is_nonnegative_atom(quotient, depth)) return false;
  const HostExprId less = pool_.const_int(*divisor - 1);
  const bool is_whole = rest.empty() && factor == -1;
  HostExprId scaled = pool_.mul(rebuild(others), pool_.const_int(*divisor));
  HostExprId above = node.args[0];
  if (is_whole && node.op == HostOp::Div) scaled = pool_.add(scaled, less);
  if (!is_whole && node.op == HostOp::CeilDiv) above = pool_.add(above, less);
  return is_nonnegative_with(polynomial(scaled), rest, factor, above, depth);
}

// Is others + factor * bound * rest not negative?
bool SizeProver::is_nonnegative_with(const Polynomial& others, const std::vector<HostExprId>& rest,
                                     std::int64_t factor, HostExprId bound, int depth) {
  const HostExprId term = pool_.mul(rebuild_product(rest, factor), bound);
  return is_nonnegative_sum(polynomial(pool_.add(rebuild(others), term)), depth - 1);
}

// -c * atom * rest >= -c * bound * rest when the rest is not negative.
bool SizeProver::improve_negative_term(const Polynomial& sum, int depth) {
  for (const auto& [key, factor] : sum) {
    if (factor >= 0) continue;
    if (improve_negative_elements(sum, key, depth)) return true;
    for (HostExprId atom : key) {
      const std::vector<HostExprId> rest = without_atom(key, atom);
      const bool rest_is_positive = std::all_of(rest.begin(), rest.end(), [&](HostExprId a) {
        return is_nonnegative_atom(a, depth - 1);
      });
      if (!rest_is_positive) continue;
      const auto holds_with = [&](HostExprId bound) {
        return is_nonnegative_with(without(sum, key), rest, factor, bound, depth);
      };
      if (std::ranges::any_of(upper_bounds(atom, depth - 1), holds_with)) return true;
      if (holds_times_divisor(without(sum, key), rest, factor, atom, depth - 1)) return true;
      // The maximum of two sizes is one of them.
      const HostExprNode node = pool_.node(atom);
      if (node.op != HostOp::Max) continue;
      if (holds_with(node.args[0]) && holds_with(node.args[1])) return true;
    }
  }
  return false;
}

// c * atom * rest >= c * bound * rest; and ceil_div(x, y) * y >= x, x / d * d >= x - (d - 1).
bool SizeProver::improve_positive_term(const Polynomial& sum, int depth) {
  for (const auto& [key, factor] : sum) {
    if (factor <= 0) continue;
    for (HostExprId atom : key) {
      std::vector<HostExprId> rest = without_atom(key, atom);
      const HostExprNode node = pool_.node(atom);
      std::vector<HostExprId> bounds = lower_bounds(atom);
      std::int64_t left = factor;
      if (const auto divisor = constant_divisor(node);
          node.op == HostOp::Div && divisor && factor % *divisor == 0) {
        left = factor / *divisor;
        bounds = {pool_.sub(node.args[0], pool_.const_int(*divisor - 1))};
      } else if (node.op == HostOp::CeilDiv) {
        const auto at = std::find(rest.begin(), rest.end(), node.args[1]);
        if (divisor && factor % *divisor == 0) {
          left = factor / *divisor;
          bounds = {node.args[0]};
        } else if (at != rest.end() && is_at_least_one(node.args[1], depth - 1)) {
          rest.erase(at);
          bounds = {node.args[0]};
        }
      }
      const bool rest_is_positive = std::all_of(rest.begin(), rest.end(), [&](HostExprId a) {
        return is_nonnegative_atom(a, depth - 1);
      });
      if (!rest_is_positive) continue;
      const auto holds_with = [&](HostExprId bound) {
        return is_nonnegative_with(without(sum, key), rest, left, bound, depth);
      };
      if (std::ranges::any_of(bounds, holds_with)) return true;
      if (node.op == HostOp::Min && holds_with(node.args[0]) && holds_with(node.args[1])) {
        return true;
      }
    }
  }
  return false;
}

// Proves a <= b from the form of a.
bool SizeProver::bounded_above_by(HostExprId a, HostExprId b, int depth) {
  const HostExprNode node = pool_.node(a);
  const auto arg = [&](int i) { return less_equal(node.args[i], b, depth - 1); };
  switch (node.op) {
    case HostOp::Count:
      return arg(0);
    case HostOp::Min:
      return arg(0) || arg(1);
    case HostOp::Max:
      return arg(0) && arg(1);
    case HostOp::Clamp:
      return arg(2) || (arg(0) && arg(1));
    case HostOp::Select:
      return arg(1) && arg(2);
    case HostOp::BitAnd:
      return (is_nonnegative_atom(node.args[1], depth) && arg(1)) ||
             (is_nonnegative_atom(node.args[0], depth) && arg(0));
    case HostOp::Mod:
      return is_at_least_one(node.args[1], depth - 1) &&
             less_equal(pool_.sub(node.args[1], pool_.const_int(1)), b, depth - 1);
    default:
      return false;
  }
}

// Proves a <= b from the form of b.
bool SizeProver::bounded_below_by(HostExprId a, HostExprId b, int depth) {
  const HostExprNode node = pool_.node(b);
  const auto arg = [&](int i) { return less_equal(a, node.args[i], depth - 1); };
  switch (node.op) {
    case HostOp::Max:
      return arg(0) || arg(1);
    case HostOp::Min:
      return arg(0) && arg(1);
    case HostOp::Clamp:
      return arg(2) && (arg(0) || arg(1));
    case HostOp::Select:
      return arg(1) && arg(2);
    default:
      return false;
  }
}

bool SizeProver::less_equal(HostExprId a, HostExprId b, int depth) {
  if (proves_equal(a, b)) return true;
  if (depth <= 0 || ++steps_ > kMaxSteps) return false;
  if (is_nonnegative_sum(polynomial(pool_.sub(b, a)), depth)) return true;
  return bounded_above_by(a, b, depth) || bounded_below_by(a, b, depth);
}

bool SizeProver::proves_nonnegative(HostExprId id) {
  steps_ = 0;
  return is_nonnegative_sum(polynomial(id), kMaxDepth) ||
         less_equal(pool_.const_int(0), id, kMaxDepth);
}

bool SizeProver::proves_less_equal(HostExprId a, HostExprId b) {
  steps_ = 0;
  return less_equal(a, b, kMaxDepth);
}

bool SizeProver::proves_less(HostExprId a, HostExprId b) {
  steps_ = 0;
  return less_equal(pool_.add(a, pool_.const_int(1)), b, kMaxDepth);
}

bool SizeProver::has_bound_in_n(HostExprId id) {
  if (const auto known = bounded_.find(id); known != bounded_.end()) return known->second;
  const bool found = find_bound_in_n(id);
  bounded_[id] = found;
  return found;
}

// A float that becomes a size: is it at most a constant or a size with a bound?
bool SizeProver::has_float_bound(HostExprId id) {
  const HostExprNode node = pool_.node(id);
  if (node.type == HostType::Int) return has_bound_in_n(id);
  const auto arg = [&](int i) { return has_float_bound(node.args[i]); };
  switch (node.op) {
    case HostOp::Const:
      return std::isfinite(pool_.const_value(id).to_double());
    case HostOp::Cast:
    case HostOp::Ceil:
    case HostOp::Floor:
    case HostOp::Round:
    case HostOp::Trunc:
      return arg(0);
    case HostOp::Min:
      return arg(0) || arg(1);
    case HostOp::Max:
    case HostOp::Add:
      return arg(0) && arg(1);
    case HostOp::Mul:
      steps_ = 0;
      return arg(0) && arg(1) && is_nonnegative_float(node.args[0], kMaxDepth) &&
             is_nonnegative_float(node.args[1], kMaxDepth);
    case HostOp::Clamp:
      return arg(2);
    default:
      return false;
  }
}

bool SizeProver::find_bound_in_n(HostExprId id) {
  const HostExprNode node = pool_.node(id);
  const auto arg = [&](int i) { return has_bound_in_n(node.args[i]); };
  switch (node.op) {
    case HostOp::Const:
    case HostOp::N:
    case HostOp::Rows:
    case HostOp::Cols:
      return true;
    case HostOp::Count:
      return arg(0);
    case HostOp::Min:
      return arg(0) || arg(1);
    case HostOp::Clamp:
      return arg(2) || (arg(0) && arg(1));
    case HostOp::Add:
    case HostOp::Mul:
    case HostOp::Max:
      return arg(0) && arg(1);
    case HostOp::Sub:
      return arg(0) && (arg(1) || proves_nonnegative(node.args[1]));
    case HostOp::CeilDiv:
    case HostOp::Div:
    case HostOp::Mod:
    case HostOp::Shr:
      return arg(0) && proves_nonnegative(node.args[0]);
    case HostOp::BitAnd:
      return arg(0) || arg(1);
    case HostOp::Select:
      return arg(1) && arg(2);
    case HostOp::Cast: {
      // Beside literals, `min(ceil(ratio * n), 100)` consists of floats.
      if (has_float_bound(node.args[0])) return true;
      return !pool_.depends_on(id, HostOp::Param) && !pool_.depends_on(id, HostOp::Step) &&
             !pool_.depends_on(id, HostOp::World) && !pool_.has_count(id);
    }
    default:
      return !pool_.depends_on(id, HostOp::Param) && !pool_.depends_on(id, HostOp::Step) &&
             !pool_.depends_on(id, HostOp::World) && !pool_.has_count(id);
  }
}

}  // namespace cinch::sema
