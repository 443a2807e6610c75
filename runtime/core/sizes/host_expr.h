// Scalar expressions that the host computes before launch: sizes (`size k = …`), payload bounds,
// buffer sizes, loop bounds. A pool is a flat, hash-consed DAG; equal expressions have equal ids.
// Floats are computed with the language's own functions, so a size is the same everywhere. Integers
// are i64, and every overflow is an error, never a wrap.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/sizes/host_expr_id.h"
#include "runtime/core/sizes/host_value.h"

namespace cinch {

enum class HostOp : std::uint8_t {
#define CINCH_HOST_OP(Op, spelling, num_args, rule) Op,
#include "runtime/core/sizes/host_expr.def"
};

const char* host_op_name(HostOp op);
std::optional<HostOp> find_host_op(std::string_view name);
int host_op_num_args(HostOp op);

struct HostExprNode {
  HostOp op = HostOp::Const;
  HostType type = HostType::Int;
  /// Const: the value's bits. Param, Count: the index.
  std::uint64_t payload = 0;
  /// Unused ones are invalid. The one argument of a Count is its bound.
  HostExprId args[3] = {};

  friend bool operator==(const HostExprNode&, const HostExprNode&) = default;
};

class HostExprPool {
 public:
  // Leaves.
  HostExprId const_int(std::int64_t value);
  HostExprId const_f32(float value);
  HostExprId const_f64(double value);
  HostExprId const_bool(bool value);
  HostExprId constant(HostValue value);
  HostExprId n() { return leaf(HostOp::N); }
  HostExprId rows() { return leaf(HostOp::Rows); }
  HostExprId cols() { return leaf(HostOp::Cols); }
  HostExprId world() { return leaf(HostOp::World); }
  /// The number of ranks on each machine.
  HostExprId machine_ranks() { return leaf(HostOp::MachineRanks); }
  HostExprId step() { return leaf(HostOp::Step); }
  /// This rank's number; allowed in values of `encode`, `finish` and `sync`, never in a size.
  HostExprId worker() { return leaf(HostOp::Worker); }
  HostExprId param(std::uint32_t index, HostType type);
  /// A length that is known only after encoding; never above `bound`, which must hold no Count.
  HostExprId count(std::uint32_t index, HostExprId bound);

  /// Makes any operation. Arguments must have the types of the op's rule (a mismatch is an
  /// InternalError): convert with `cast` first. Constants are folded unless the result would be an
  /// error (`eval` then reports the overflow). x + 0, x * 1, min(x, x) and the like are simplified
  /// for integers only.
  HostExprId make(HostOp op, HostExprId a, HostExprId b = {}, HostExprId c = {});
  /// Float to Int truncates toward zero and saturates, NaN becomes 0; Bool counts as 0 or 1; to
  /// Bool: not equal 0. A cast to a node's own type returns the node.
  HostExprId cast(HostExprId a, HostType to);
  HostExprId select(HostExprId condition, HostExprId a, HostExprId b) {
    return make(HostOp::Select, condition, a, b);
  }
  HostExprId add(HostExprId a, HostExprId b) { return make(HostOp::Add, a, b); }
  HostExprId sub(HostExprId a, HostExprId b) { return make(HostOp::Sub, a, b); }
  HostExprId mul(HostExprId a, HostExprId b) { return make(HostOp::Mul, a, b); }
  /// Integer: truncates, and x / 0 is 0. Float: IEEE.
  HostExprId div(HostExprId a, HostExprId b) { return make(HostOp::Div, a, b); }
  HostExprId mod(HostExprId a, HostExprId b) { return make(HostOp::Mod, a, b); }
  /// ⌈a / b⌉ of integers, 0 if b is 0.
  HostExprId ceil_div(HostExprId a, HostExprId b) { return make(HostOp::CeilDiv, a, b); }
  /// The next multiple of b (b > 0; for b <= 0 it returns a).
  HostExprId align_up(HostExprId a, HostExprId b) { return make(HostOp::AlignUp, a, b); }
  HostExprId min(HostExprId a, HostExprId b) { return make(HostOp::Min, a, b); }
  HostExprId max(HostExprId a, HostExprId b) { return make(HostOp::Max, a, b); }
  /// min(max(x, lo), hi).
  HostExprId clamp(HostExprId x, HostExprId lo, HostExprId hi) {
    return make(HostOp::Clamp, x, lo, hi);
  }

  const HostExprNode& node(HostExprId id) const;
  HostType type(HostExprId id) const { return node(id).type; }
  std::size_t num_nodes() const { return nodes_.size(); }
  /// Is the node a constant? And its value.
  bool is_const(HostExprId id) const { return node(id).op == HostOp::Const; }
  HostValue const_value(HostExprId id) const;
  /// True if the value may depend on a Count.
  bool has_count(HostExprId id) const { return depends_on(id, HostOp::Count); }
  /// Numbers of the counts in an expression, each once; empty for an invalid id.
  std::set<std::uint32_t> counts_of(HostExprId id) const;
  /// True if the value may depend on a parameter, world or step (so not on n alone).
  bool depends_on(HostExprId id, HostOp leaf_op) const;

  /// Evaluates for `env`. Without a memo, the time grows with the nodes before `id`. Errors:
  /// Overflow (an integer exceeded 64 bits; names the formula), InvalidArgument (a parameter or
  /// count that env lacks, or a parameter of another type).
  rt::Result<HostValue> eval(HostExprId id, const HostEnv& env) const;
  /// Evaluates an Int expression.
  rt::Result<std::int64_t> eval_int(HostExprId id, const HostEnv& env) const;

  /// An expression without Counts that is at least `id` for all counts between 0 and their bounds.
  /// For uses that fall with a count (n - m) the count is 0. A use that neither rises nor falls, as
  /// far as the node kinds tell, is an InternalError{Limitation}.
  HostExprId upper_bound(HostExprId id);

  /// Replaces each leaf for which `replace` returns a valid id by that id.
  HostExprId substitute(HostExprId id,
                        const std::function<HostExprId(const HostExprNode& leaf)>& replace);
  /// Rebuilds `id` of another pool here. Leaves for which `replace` returns a valid id (of this
  /// pool) are replaced. `replace` may be empty.
  HostExprId import(const HostExprPool& from, HostExprId id,
                    const std::function<HostExprId(const HostExprNode& leaf)>& replace = {});

  /// A closed formula with as few brackets as precedence allows: "clamp(ceil(ratio * n), 1, n)".
  /// param_name and count_name name the leaves; if they are empty: "param0", "count0".
  std::string print(HostExprId id, const std::function<std::string(std::uint32_t)>& param_name = {},
                    const std::function<std::string(std::uint32_t)>& count_name = {}) const;

  /// All nodes in order, arguments before users: [{"op":…,"type":…,"args":[…],"value":…}, …].
  nlohmann::json to_json() const;
  /// Keeps ids. Errors (CorruptFile) name the node.
  static rt::Result<HostExprPool> from_json(const nlohmann::json& entries);

 private:
  struct NodeHash {
    std::size_t operator()(const HostExprNode& node) const noexcept;
  };
  HostExprId leaf(HostOp op);
  HostExprId intern(const HostExprNode& node);
  HostExprId simplify_int(HostOp op, HostExprId a, HostExprId b);
  // Why a node is not well formed; nothing if it is.
  std::string find_fault(const HostExprNode& made) const;
  // For each node up to `id`: does `id` use it?
  std::vector<bool> reachable_from(HostExprId id) const;
  HostExprId rebuild(const HostExprNode& shape, const HostExprId (&args)[3]);
  bool is_nonnegative(HostExprId id) const { return facts_[id.index()].is_nonnegative; }
  struct Bounds;
  Bounds bounds_of(HostExprId id, const std::vector<Bounds>& known);
  Bounds bounds_of_product(HostExprId id, const std::vector<Bounds>& known);
  Bounds bounds_of_quotient(HostExprId id, const std::vector<Bounds>& known);

  // Facts about each node, computed when it is made, so that no walk goes down a shared DAG again.
  struct Facts {
    bool is_nonnegative;
    std::uint64_t leaves;  // a bit for each kind of leaf that the node uses
  };

  std::vector<HostExprNode> nodes_;
  std::vector<Facts> facts_;
  std::unordered_map<HostExprNode, HostExprId, NodeHash> index_;
  std::unordered_map<HostExprId, HostExprId> upper_bounds_;  // known results
};

}  // namespace cinch
