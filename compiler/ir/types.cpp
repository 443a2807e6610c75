// Polynomial comparison of sizes and the broadcasting rule.
#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <unordered_map>
#include <vector>

#include "compiler/ir/ops.h"
#include "compiler/ir/types.h"

namespace cinch::ir {
namespace {

// Maps a product of atoms (sorted ids) to its coefficient. Coefficients wrap; equality stays sound,
// because equal formulas wrap alike and sizes fit in 63 bits.
using Monomial = std::vector<HostExprId>;
using Polynomial = std::map<Monomial, std::uint64_t>;

// Sizes in programs have few terms with few factors; a larger formula is treated as one atom.
constexpr std::size_t kMaxTerms = 64, kMaxFactors = 16;

class Polynomials {
 public:
  explicit Polynomials(const rt::ProgramInfo& info) : info_(info) {}

  // Formulas are graphs: each part is visited once.
  const Polynomial& of(HostExprId id) const {
    const auto known = known_.find(id);
    return known != known_.end() ? known->second : known_.emplace(id, make(id)).first->second;
  }

  static Polynomial clean(Polynomial p) {
    std::erase_if(p, [](const auto& term) { return term.second == 0; });
    return p;
  }
  Polynomial product(HostExprId whole, const Polynomial& a, const Polynomial& b) const {
    if (a.size() * b.size() > kMaxTerms) return atom(whole);
    Polynomial result;
    for (const auto& [x, cx] : a) {
      for (const auto& [y, cy] : b) {
        Monomial both = x;
        both.insert(both.end(), y.begin(), y.end());
        if (both.size() > kMaxFactors) return atom(whole);
        std::sort(both.begin(), both.end());
        result[both] += cx * cy;
      }
    }
    return result;
  }

 private:
  Polynomial make(HostExprId id) const {
    const HostExprNode& node = info_.exprs->node(id);
    if (node.type != HostType::Int) return operation(id);
    switch (node.op) {
      case HostOp::Const:
        return {{{}, node.payload}};
      case HostOp::Add:
        return add(of(node.args[0]), of(node.args[1]), 1);
      case HostOp::Sub:
        return add(of(node.args[0]), of(node.args[1]), ~std::uint64_t{0});
      case HostOp::Neg:
        return add({}, of(node.args[0]), ~std::uint64_t{0});
      case HostOp::Mul:
        return product(id, of(node.args[0]), of(node.args[1]));
      case HostOp::N:
        return info_.is_matrix ? named_product(HostOp::Rows, HostOp::Cols) : leaf(HostOp::N);
      case HostOp::Rows:
        return leaf(info_.is_matrix ? HostOp::Rows : HostOp::N);
      case HostOp::Cols:
        return info_.is_matrix ? leaf(HostOp::Cols) : Polynomial{{{}, 1}};
      default:
        return operation(id);
    }
  }

  // What is no polynomial. Two operations are one atom if their operands agree: in a program of
  // matrices `n / 2` is `r * c / 2`.
  Polynomial operation(HostExprId id) const {
    const HostExprNode& node = info_.exprs->node(id);
    Operation made{node.op, node.type, node.payload, {}};
    for (const HostExprId arg : node.args) {
      if (arg) made.operands.push_back(clean(of(arg)));
    }
    return atom(operations_.try_emplace(std::move(made), id).first->second);
  }

  // Leaves are atoms with numbers above every id of the pool, so that n and r can be compared even
  // if the pool contains only one of them.
  static HostExprId leaf_atom(HostOp op) {
    return HostExprId(0xfffffff0u - static_cast<std::uint32_t>(op));
  }
  static Polynomial atom(HostExprId id) { return {{{id}, 1}}; }
  static Polynomial leaf(HostOp op) { return atom(leaf_atom(op)); }
  static Polynomial named_product(HostOp a, HostOp b) {
    Monomial both{leaf_atom(a), leaf_atom(b)};
    std::sort(both.begin(), both.end());
    return {{both, 1}};
  }
  static Polynomial add(Polynomial a, const Polynomial& b, std::uint64_t factor) {
    for (const auto& [monomial, coefficient] : b) a[monomial] += coefficient * factor;
    return a;
  }

  struct Operation {
    HostOp op;
    HostType type;
    std::uint64_t payload;
    std::vector<Polynomial> operands;
    auto operator<=>(const Operation&) const = default;
  };

  const rt::ProgramInfo& info_;
  mutable std::unordered_map<HostExprId, Polynomial> known_;
  mutable std::map<Operation, HostExprId> operations_;
};

Polynomial count_of(const Polynomials& polynomials, const Type& type) {
  Polynomial result{{{}, 1}};
  for (int d = 0; d < type.rank; ++d) {
    result = polynomials.product(type.dims[d], result, polynomials.of(type.dims[d]));
  }
  return Polynomials::clean(std::move(result));
}

}  // namespace

bool sizes_agree(const rt::ProgramInfo& info, HostExprId a, HostExprId b) {
  if (a == b) return true;
  if (!a.is_valid() || !b.is_valid()) return false;
  const Polynomials polynomials(info);
  return Polynomials::clean(polynomials.of(a)) == Polynomials::clean(polynomials.of(b));
}

bool shapes_agree(const rt::ProgramInfo& info, const Type& a, const Type& b) {
  if (a.rank != b.rank) return false;
  for (int d = 0; d < a.rank; ++d) {
    if (!sizes_agree(info, a.dims[d], b.dims[d])) return false;
  }
  return true;
}

bool types_agree(const rt::ProgramInfo& info, const Type& a, const Type& b) {
  return a.dtype == b.dtype && shapes_agree(info, a, b);
}

bool element_counts_agree(const rt::ProgramInfo& info, const Type& a, const Type& b) {
  const Polynomials polynomials(info);
  return count_of(polynomials, a) == count_of(polynomials, b);
}

std::optional<std::int64_t> constant_size(const HostExprPool& exprs, HostExprId size) {
  if (!size.is_valid() || !exprs.is_const(size) || exprs.type(size) != HostType::Int) {
    return std::nullopt;
  }
  return exprs.const_value(size).as_int();
}

std::optional<Type> broadcast_shape(const rt::ProgramInfo& info, const Type& a, const Type& b) {
  if (is_scalar(b)) return a;
  if (is_scalar(a)) return with_dtype(b, a.dtype);
  if (a.rank != b.rank) return std::nullopt;
  Type result = a;
  for (int d = 0; d < a.rank; ++d) {
    if (sizes_agree(info, a.dims[d], b.dims[d])) continue;
    if (constant_size(*info.exprs, a.dims[d]) == 1) {
      result.dims[d] = b.dims[d];
    } else if (constant_size(*info.exprs, b.dims[d]) != 1) {
      return std::nullopt;
    }
  }
  return result;
}

HostExprId element_count(HostExprPool& exprs, const Type& type) {
  if (type.rank == 0) return exprs.const_int(1);
  return type.rank == 1 ? type.dims[0] : exprs.mul(type.dims[0], type.dims[1]);
}

// Table behind op_info and the small facts of ops.h.

namespace {

constexpr std::array<OpInfo, kNumOpKinds> make_infos() {
  using enum Effect;
  using enum AttrUse::Flag;
  return {{
#define OP(name, min_operands, max_operands, results, effect, reads, forces, cost, attrs, meaning) \
  {#name,        min_operands,   max_operands, results, effect,                                    \
   Reads::reads, Forces::forces, cost,         attrs,   meaning},
#include "compiler/ir/ops.def"
  }};
}
constexpr std::array<OpInfo, kNumOpKinds> kInfos = make_infos();

}  // namespace

const OpInfo& op_info(OpKind kind) {
  return kInfos[static_cast<std::size_t>(kind)];
}

std::optional<OpKind> find_op_kind(std::string_view name) {
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (kInfos[i].name == name) return static_cast<OpKind>(i);
  }
  return std::nullopt;
}

Reads reads_of(const Op& op, std::size_t operand) {
  const Reads reads = op_info(op.kind).reads;
  return reads == Reads::Gathered && operand == 1 ? Reads::Index : reads;
}

bool is_sweep(OpKind kind) {
  return op_info(kind).reads == Reads::Swept;
}

int cost_of_element(const rt::ProgramInfo& info, const Op& op) {
  constexpr std::uint64_t kOperationsOfLoad = 4, kMostCost = 1000;
  if (op.kind == OpKind::call_extern) {
    const std::uint64_t work = info.externs[op.attrs.index].work;
    return static_cast<int>(std::min(work / kOperationsOfLoad, kMostCost));
  }
  return op.kind == OpKind::map ? scalar_op_info(op.attrs.scalar_op).cost : op_info(op.kind).cost;
}

int num_regions(OpKind kind) {
  if (kind == OpKind::if_else || kind == OpKind::while_loop) return 2;
  return kind == OpKind::for_loop ? 1 : 0;
}

bool is_draw(OpKind kind) {
  return uses_attr(kind, AttrUse::Draw);
}

bool is_collective(OpKind kind) {
  return kind >= OpKind::all_reduce && kind <= OpKind::send_receive_counted;
}

std::size_t num_reduced_values(const Op& op) {
  return op.kind == OpKind::reduce ? op.results.size() : op.operands.size() / 2;
}

bool has_mask(const Op& op) {
  return op.kind == OpKind::reduce && op.operands.size() > 2 * op.results.size();
}

std::string_view function_kind_name(FunctionKind kind) {
  switch (kind) {
    case FunctionKind::Encode:
      return "encode";
    case FunctionKind::Decode:
      return "decode";
    case FunctionKind::Finish:
      return "finish";
    case FunctionKind::Sync:
      return "sync";
  }
  return "?";
}

const Function* Program::find(FunctionKind kind) const {
  for (const Function& function : functions) {
    if (function.kind == kind) return &function;
  }
  return nullptr;
}

}  // namespace cinch::ir
