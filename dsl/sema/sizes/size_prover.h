// Proves facts about sizes, which are host expressions of type Int. Two sizes are equal as
// polynomials; `a <= b` or `a >= 0` for every n, world, step, count and parameter value; a size has
// a bound in n and constants. Sound but incomplete: "no" means "not proved".
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dsl/sema/checked.h"
#include "runtime/core/program_info.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::sema {
/// A sum of products of atoms. Every node that is not +, -, * or a constant is an atom. The key is
/// a sorted list of atom ids; the empty key is the constant term.
using Polynomial = std::map<std::vector<HostExprId>, std::int64_t>;

class SizeProver {
 public:
  /// `pool` must outlive the prover. In a program on matrices, n counts as r * c.
  explicit SizeProver(HostExprPool& pool) : pool_(pool) {}

  void set_matrix(bool is_matrix) { is_matrix_ = is_matrix; }
  /// Sets the range of parameter `index`, from which `ceil(ratio * n) >= 0` can be proved.
  void set_param_range(std::uint32_t index, const std::optional<rt::ParamRange>& range);
  /// A leaf for an unknown size of a `fn`'s signature is never negative.
  void set_nonnegative(HostExprId leaf) { nonnegative_leaves_[leaf] = true; }

  /// The expression in normal form: equal polynomials get equal ids.
  HostExprId canonical(HostExprId id);
  bool proves_equal(HostExprId a, HostExprId b) { return a == b || canonical(a) == canonical(b); }
  /// Do they differ by a constant (or are they different constants)?
  bool proves_different(HostExprId a, HostExprId b);
  bool proves_nonnegative(HostExprId id);
  bool proves_less_equal(HostExprId a, HostExprId b);
  /// a < b.
  bool proves_less(HostExprId a, HostExprId b);
  /// Does the size have an upper bound made of n, r, c and constants?
  bool has_bound_in_n(HostExprId id);
  std::optional<std::int64_t> constant(HostExprId id);

 private:
  const Polynomial& polynomial(HostExprId id);
  Polynomial make_polynomial(HostExprId id);
  bool find_bound_in_n(HostExprId id);
  bool has_float_bound(HostExprId id);
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
  std::optional<std::int64_t> constant_divisor(const HostExprNode& node);
  bool holds_times_divisor(const Polynomial& others, const std::vector<HostExprId>& rest,
                           std::int64_t factor, HostExprId quotient, int depth);
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
  std::unordered_map<HostExprId, Polynomial> polynomials_;  // keeps nodes at their addresses
  std::unordered_map<HostExprId, bool> bounded_;
  int steps_ = 0;  // of the current proof, which stops after too many
};

// The sizes of one program: their names, one form for all sizes that are proved equal, and their
// text. It knows nothing of types of values, and reports nothing.

class SizeScope {
 public:
  explicit SizeScope(rt::ProgramInfo& info) : info_(info) {}

  SizeProver& prover() { return prover_; }
  /// Names a size in messages. Returns false if it has a name already.
  bool name(HostExprId size, const std::string& text, Span span) {
    return names_.try_emplace(size, text, span).second;
  }
  void rename(HostExprId size, std::string text, Span span) {
    names_[size] = {std::move(text), span};
  }
  /// Returns the first of all sizes that are proved equal to this one, because the IR compares
  /// sizes by their ids. Types of expressions and variables have sizes of this form.
  HostExprId one_form(HostExprId size);
  /// Puts all sizes of a type into that form.
  Type in_one_form(Type type);
  /// Is the size proved to be 1?
  bool is_one(HostExprId size);
  /// Is every size proved to be equal to the other's?
  bool same_shape(const Type& a, const Type& b);
  /// The number of elements of a value of the type.
  HostExprId num_elems(const Type& type);
  /// Are all sizes constants?
  bool all_constant_sizes(const Type& type);
  /// A size without counts that is never smaller than this one; invalid if none is known.
  HostExprId without_counts(HostExprId size);
  /// Is the size negative whenever it is not zero? Beside unsigned integers that is a mistake.
  bool is_never_positive(HostExprId size);
  /// A new host expression about which nothing is known.
  HostExprId opaque_number(HostType type);
  HostExprId length_of(HostExprId begin, HostExprId end);
  /// The size as text, with the names of named sizes.
  std::string size_text(HostExprId id);
  /// The type as text: `[f32; n]`.
  std::string type_text(const Type& type);
  /// Collects the named sizes in a size, each with the place of its name.
  void collect_sizes(HostExprId id, std::vector<std::pair<std::string, Span>>& out,
                     std::set<HostExprId>& seen);

 private:
  std::string size_text_within(HostExprId id, int depth, int& left);

  HostExprPool& pool() const { return *info_.exprs; }

  rt::ProgramInfo& info_;
  SizeProver prover_{*info_.exprs};
  std::map<HostExprId, std::pair<std::string, Span>> names_;
  std::map<HostExprId, HostExprId> forms_;  // by normal form: the first size
  std::uint32_t next_generic_ = 0;
};

}  // namespace cinch::sema
