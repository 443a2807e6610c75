// Normal form of sizes: polynomials over atoms, written as host expressions in a fixed order.
#include <algorithm>

#include "dsl/sema/sizes/size_prover.h"
#include "runtime/core/check.h"

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

// Unique forms of sizes, their names, and new unknown sizes.

HostExprId SizeScope::one_form(HostExprId size) {
  return forms_.try_emplace(prover_.canonical(size), size).first->second;
}

Type SizeScope::in_one_form(Type type) {
  for (int i = 0; i < type.rank; ++i) type.dims[i] = one_form(type.dims[i]);
  return type;
}

bool SizeScope::is_one(HostExprId size) {
  return prover_.constant(size) == 1;
}

bool SizeScope::same_shape(const Type& a, const Type& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i) {
    if (!prover_.proves_equal(a.dims[i], b.dims[i])) return false;
  }
  return true;
}

HostExprId SizeScope::num_elems(const Type& type) {
  if (type.rank == 0) return pool().const_int(1);
  return type.rank == 1 ? type.dims[0] : pool().mul(type.dims[0], type.dims[1]);
}

bool SizeScope::all_constant_sizes(const Type& type) {
  for (int i = 0; i < type.rank; ++i) {
    if (!prover_.constant(type.dims[i])) return false;
  }
  return true;
}

HostExprId SizeScope::without_counts(HostExprId size) {
  if (!pool().has_count(size)) return size;
  try {
    return pool().upper_bound(size);
  } catch (const InternalError&) {
    return {};
  }
}

bool SizeScope::is_never_positive(HostExprId size) {
  const HostExprId opposite = pool().sub(pool().const_int(0), size);
  return !prover_.proves_nonnegative(size) && prover_.proves_nonnegative(opposite);
}

namespace {

// Sizes of a signature are parameters with numbers that no real parameter reaches.
constexpr std::uint32_t kFirstGenericSize = 1u << 22;

}  // namespace

HostExprId SizeScope::opaque_number(HostType type) {
  return pool().param(kFirstGenericSize + next_generic_++, type);
}

HostExprId SizeScope::length_of(HostExprId begin, HostExprId end) {
  return one_form(prover_.canonical(pool().sub(end, begin)));
}

// Sizes and types as people write them.

namespace {

const char* infix_of(HostOp op) {
  switch (op) {
    case HostOp::Add:
      return " + ";
    case HostOp::Sub:
      return " - ";
    case HostOp::Mul:
      return " * ";
    case HostOp::Div:
      return " / ";
    case HostOp::Mod:
      return " % ";
    default:
      return nullptr;
  }
}

// Deeper or longer parts become "…": sizes are graphs, whose text could have any length.
constexpr int kMaxTextDepth = 200, kMaxTextNodes = 500;

bool is_sum(HostOp op) {
  return op == HostOp::Add || op == HostOp::Sub;
}

}  // namespace

std::string SizeScope::size_text(HostExprId id) {
  int left = kMaxTextNodes;
  return size_text_within(id, 0, left);
}

std::string SizeScope::size_text_within(HostExprId id, int depth, int& left) {
  if (depth > kMaxTextDepth || left-- <= 0) return "…";
  const auto inner = [&](HostExprId arg) { return size_text_within(arg, depth + 1, left); };
  if (const auto named = names_.find(id); named != names_.end()) {
    return named->second.first;
  }
  const HostExprNode node = pool().node(id);
  if (node.op == HostOp::Const) return pool().print(id);
  if (node.op == HostOp::Param && node.payload < info_.params.size()) {
    return info_.params[node.payload].name;
  }
  if (node.op == HostOp::Count) {
    return node.payload < info_.counts.size() ? info_.counts[node.payload].name : "m";
  }
  if (node.op == HostOp::Cast) return inner(node.args[0]);
  const int num_args = host_op_num_args(node.op);
  if (num_args == 0) return host_op_name(node.op);
  if (node.op == HostOp::Neg) {
    const bool needs =
        infix_of(pool().node(node.args[0]).op) != nullptr && !names_.contains(node.args[0]);
    return needs ? "-(" + inner(node.args[0]) + ")" : "-" + inner(node.args[0]);
  }
  if (const char* infix = infix_of(node.op)) {
    const auto side = [&](HostExprId arg, bool is_right) {
      const HostOp op = pool().node(arg).op;
      const bool is_sum_in_product = is_sum(op) && node.op != HostOp::Add;
      const bool is_later = is_right && !is_sum(node.op) && infix_of(op) != nullptr &&
                            (op != HostOp::Mul || node.op != HostOp::Mul);
      const bool needs = !names_.contains(arg) && (is_sum_in_product || is_later);
      return needs ? "(" + inner(arg) + ")" : inner(arg);
    };
    const std::string left_side = side(node.args[0], false);
    const HostExprNode& right = pool().node(node.args[1]);
    if (node.op == HostOp::Add && right.op == HostOp::Const && right.type == HostType::Int) {
      const std::int64_t added = pool().const_value(node.args[1]).as_int();
      if (added < 0 && added != INT64_MIN) return left_side + " - " + std::to_string(-added);
    }
    return left_side + infix + side(node.args[1], true);
  }
  std::string text = std::string(host_op_name(node.op)) + "(";
  for (int i = 0; i < num_args; ++i) {
    if (i > 0) text += ", ";
    text += inner(node.args[i]);
  }
  return text + ")";
}

std::string SizeScope::type_text(const Type& type) {
  std::string element = dtype_name(type.dtype);
  if (type.rank == 0) return element;
  std::string text = "[" + element + "; " + size_text(type.dims[0]);
  if (type.rank == 2) text += ", " + size_text(type.dims[1]);
  return text + "]";
}

void SizeScope::collect_sizes(HostExprId id, std::vector<std::pair<std::string, Span>>& out,
                              std::set<HostExprId>& seen) {
  if (!seen.insert(id).second) return;
  if (const auto named = names_.find(id); named != names_.end()) {
    const auto same = [&](const auto& entry) { return entry.first == named->second.first; };
    if (std::none_of(out.begin(), out.end(), same)) out.push_back(named->second);
    return;
  }
  const HostExprNode node = pool().node(id);
  for (HostExprId arg : node.args) {
    if (arg) collect_sizes(arg, out, seen);
  }
}

}  // namespace cinch::sema
