// Normal form of sizes: polynomials over atoms, written as host expressions in a fixed order.
#include "dsl/sema/sizes/size_prover.h"

#include <algorithm>
#include <optional>

namespace cinch::sema {

namespace {

// Limits the time of proofs: nothing is proved about larger polynomials.
constexpr std::size_t kMaxTerms = 64, kMaxFactors = 16;

// Returns false if the factor does not fit in 64 bits.
bool add_term(Polynomial& sum, const std::vector<HostExprId>& key, std::int64_t factor) {
  std::int64_t& total = sum[key];
  if (__builtin_add_overflow(total, factor, &total)) return false;
  if (total == 0) sum.erase(key);
  return true;
}

std::optional<std::int64_t> negated(std::int64_t factor) {
  std::int64_t result = 0;
  if (__builtin_sub_overflow(std::int64_t{0}, factor, &result)) return std::nullopt;
  return result;
}

bool multiply(const Polynomial& a, const Polynomial& b, Polynomial& product) {
  for (const auto& [key_a, factor_a] : a) {
    for (const auto& [key_b, factor_b] : b) {
      std::int64_t factor = 0;
      if (__builtin_mul_overflow(factor_a, factor_b, &factor)) return false;
      std::vector<HostExprId> key = key_a;
      key.insert(key.end(), key_b.begin(), key_b.end());
      if (key.size() > kMaxFactors) return false;
      std::sort(key.begin(), key.end());
      if (!add_term(product, key, factor)) return false;
    }
  }
  return product.size() <= kMaxTerms;
}

}  // namespace

void SizeProver::set_param_range(std::uint32_t index, const std::optional<rt::ParamRange>& range) {
  if (range) ranges_[index] = *range;
}

const Polynomial& SizeProver::polynomial(HostExprId id) {
  const auto known = polynomials_.find(id);
  if (known != polynomials_.end()) return known->second;
  Polynomial made = make_polynomial(id);
  return polynomials_.emplace(id, std::move(made)).first->second;
}

Polynomial SizeProver::make_polynomial(HostExprId id) {
  const HostExprNode node = pool_.node(id);
  const auto atom = [&] { return Polynomial{{{canonical_atom(id)}, 1}}; };
  switch (node.op) {
    case HostOp::Const: {
      const std::int64_t value = pool_.const_value(id).as_int();
      return value == 0 ? Polynomial{} : Polynomial{{{}, value}};
    }
    case HostOp::N:
      if (!is_matrix_) return Polynomial{{{pool_.n()}, 1}};
      return polynomial(pool_.mul(pool_.rows(), pool_.cols()));
    case HostOp::Rows:
      return Polynomial{{{is_matrix_ ? id : pool_.n()}, 1}};
    case HostOp::Cols:
      return is_matrix_ ? Polynomial{{{id}, 1}} : Polynomial{{{}, 1}};
    case HostOp::Add:
    case HostOp::Sub: {
      Polynomial sum = polynomial(node.args[0]);
      for (const auto& [key, factor] : polynomial(node.args[1])) {
        const auto term = node.op == HostOp::Add ? std::optional(factor) : negated(factor);
        if (!term || !add_term(sum, key, *term)) return atom();
      }
      return sum.size() <= kMaxTerms ? sum : atom();
    }
    case HostOp::Neg: {
      Polynomial sum;
      for (const auto& [key, factor] : polynomial(node.args[0])) {
        const auto term = negated(factor);
        if (!term) return atom();
        sum[key] = *term;
      }
      return sum;
    }
    case HostOp::Mul: {
      Polynomial product;
      const Polynomial &a = polynomial(node.args[0]), &b = polynomial(node.args[1]);
      return multiply(a, b, product) ? product : atom();
    }
    default:
      return atom();
  }
}

// Makes the integer arguments of a node canonical, so that equal operations on equal sizes are one
// atom.
HostExprId SizeProver::canonical_atom(HostExprId id) {
  const HostExprNode node = pool_.node(id);
  const bool is_leaf = host_op_num_args(node.op) == 0 || node.op == HostOp::Count;
  if (is_leaf) return id;
  HostExprId args[3];
  for (int i = 0; i < 3; ++i) {
    if (!node.args[i]) continue;
    args[i] = pool_.type(node.args[i]) == HostType::Int ? canonical(node.args[i])
                                                        : canonical_atom(node.args[i]);
  }
  if (node.op == HostOp::Cast) return pool_.cast(args[0], node.type);
  return pool_.make(node.op, args[0], args[1], args[2]);
}

HostExprId SizeProver::rebuild_product(const std::vector<HostExprId>& atoms, std::int64_t factor) {
  HostExprId product;
  for (HostExprId atom : atoms) product = product ? pool_.mul(product, atom) : atom;
  if (!product) return pool_.const_int(factor);
  return factor == 1 ? product : pool_.mul(product, pool_.const_int(factor));
}

HostExprId SizeProver::rebuild(const Polynomial& sum) {
  HostExprId total;
  for (const auto& [key, factor] : sum) {
    const HostExprId term = rebuild_product(key, factor);
    total = total ? pool_.add(total, term) : term;
  }
  return total ? total : pool_.const_int(0);
}

HostExprId SizeProver::canonical(HostExprId id) {
  if (const auto known = canonical_.find(id); known != canonical_.end()) return known->second;
  const HostExprId result = rebuild(polynomial(id));
  canonical_[id] = result;
  return result;
}

std::optional<std::int64_t> SizeProver::constant(HostExprId id) {
  const HostExprId normal = canonical(id);
  if (!pool_.is_const(normal)) return std::nullopt;
  return pool_.const_value(normal).as_int();
}

bool SizeProver::proves_different(HostExprId a, HostExprId b) {
  const auto difference = constant(pool_.sub(a, b));
  return difference && *difference != 0;
}

}  // namespace cinch::sema
