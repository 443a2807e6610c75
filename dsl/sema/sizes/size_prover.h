// What can be proved about sizes: equality as polynomials, `a <= b` and `a >= 0` for every n,
// world, step, count and parameter value, and whether a size has a bound in n and constants.
// Sound and incomplete: "no" means "not proved". Sizes are host expressions of type Int.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::sema {

/// A sum of products of atoms: any node that is not +, -, * or a constant is an atom. The key is a
/// sorted list of atom ids; the empty key is the constant term.
using Polynomial = std::map<std::vector<HostExprId>, std::int64_t>;

class SizeProver {
 public:
  /// `pool` outlives the prover. In a matrix program n counts as r * c.
  explicit SizeProver(HostExprPool& pool) : pool_(pool) {}

  void set_matrix(bool is_matrix) { is_matrix_ = is_matrix; }
  /// The range of parameter `index`: makes `ceil(ratio * n) >= 0` provable.
  void set_param_range(std::uint32_t index, const std::optional<rt::ParamRange>& range);
  /// A leaf that stands for an unknown size of a `fn`'s signature: never negative.
  void set_nonnegative(HostExprId leaf) { nonnegative_leaves_[leaf] = true; }

  /// The same expression in normal form: equal polynomials have equal ids.
  HostExprId canonical(HostExprId id);
  bool proves_equal(HostExprId a, HostExprId b) { return a == b || canonical(a) == canonical(b); }
  /// True where both are constants that differ, or differ by a constant.
  bool proves_different(HostExprId a, HostExprId b);
  bool proves_nonnegative(HostExprId id);
  bool proves_less_equal(HostExprId a, HostExprId b);
  /// a < b.
  bool proves_less(HostExprId a, HostExprId b);
  /// True where the size has an upper bound made of n, r, c and constants.
  bool has_bound_in_n(HostExprId id);
  std::optional<std::int64_t> constant(HostExprId id);

 private:
  const Polynomial& polynomial(HostExprId id);
  Polynomial make_polynomial(HostExprId id);
  bool find_bound_in_n(HostExprId id);
  HostExprId rebuild(const Polynomial& sum);
  HostExprId rebuild_product(const std::vector<HostExprId>& atoms, std::int64_t factor);
  HostExprId canonical_atom(HostExprId id);
  bool is_nonnegative_atom(HostExprId id, int depth);
  bool is_nonnegative_float(HostExprId id, int depth);
  bool is_nonnegative_param(const HostExprNode& node) const;
  bool is_nonnegative_sum(const Polynomial& sum, int depth);
  bool is_at_least_one(HostExprId id, int depth);
  bool less_equal(HostExprId a, HostExprId b, int depth);
  bool bounded_above_by(HostExprId a, HostExprId b, int depth);
  bool bounded_below_by(HostExprId a, HostExprId b, int depth);
  bool is_nonnegative_with(const Polynomial& others, const std::vector<HostExprId>& rest,
                           std::int64_t factor, HostExprId bound, int depth);
  bool improve_negative_term(const Polynomial& sum, int depth);
  bool improve_negative_elements(const Polynomial& sum, const std::vector<HostExprId>& key,
                                 int depth);
  bool improve_positive_term(const Polynomial& sum, int depth);
  std::vector<HostExprId> upper_bounds(HostExprId atom, int depth);
  std::vector<HostExprId> lower_bounds(HostExprId atom);

  HostExprPool& pool_;
  bool is_matrix_ = false;
  std::map<std::uint32_t, rt::ParamRange> ranges_;
  std::unordered_map<HostExprId, bool> nonnegative_leaves_;
  std::unordered_map<HostExprId, HostExprId> canonical_;
  std::unordered_map<HostExprId, Polynomial> polynomials_;  // nodes stay where they are
  std::unordered_map<HostExprId, bool> bounded_;
  int steps_ = 0;  // of the proof under way: a proof that takes long is given up
};

}  // namespace cinch::sema
