// Nodes of host expressions: facts from the table, interning, checking, building and simplifying.
#include <algorithm>

#include "runtime/core/check.h"
#include "runtime/core/hash.h"
#include "runtime/core/lang.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch {

HostExprs::HostExprs() : pool_(std::make_unique<HostExprPool>()) {}
HostExprs::HostExprs(HostExprPool pool) : pool_(std::make_unique<HostExprPool>(std::move(pool))) {}
HostExprs::HostExprs(const HostExprs& other) : HostExprs(*other) {}
HostExprs& HostExprs::operator=(const HostExprs& other) {
  *pool_ = *other;
  return *this;
}
// It allocates, since what is moved from stays a pool, too.
// NOLINTNEXTLINE(performance-noexcept-move-constructor)
HostExprs::HostExprs(HostExprs&& other) : HostExprs(std::move(*other)) {}
HostExprs& HostExprs::operator=(HostExprs&& other) noexcept {
  *pool_ = std::move(*other);
  return *this;
}
HostExprs::~HostExprs() = default;

namespace {

struct OpRow {
  const char* name;
  int num_args;
  HostRule rule;
};

constexpr std::array kOps = {
#define CINCH_HOST_OP(Op, spelling, num_args, rule) OpRow{spelling, num_args, HostRule::rule},
#include "runtime/core/sizes/host_expr.def"
};

const OpRow& row(HostOp op) {
  return kOps[static_cast<std::size_t>(op)];
}

}  // namespace

const char* host_type_name(HostType type) {
  constexpr const char* kNames[] = {"int", "f32", "f64", "bool"};
  return kNames[static_cast<std::size_t>(type)];
}
std::optional<HostType> find_host_type(std::string_view name) {
  for (HostType type : {HostType::Int, HostType::F32, HostType::F64, HostType::Bool}) {
    if (name == host_type_name(type)) return type;
  }
  return std::nullopt;
}
std::optional<HostOp> find_host_op(std::string_view name) {
  const auto* const found = std::ranges::find(kOps, name, &OpRow::name);
  return found == kOps.end() ? std::nullopt
                             : std::optional(static_cast<HostOp>(found - kOps.begin()));
}
const char* host_op_name(HostOp op) {
  return row(op).name;
}
int host_op_num_args(HostOp op) {
  return row(op).num_args;
}
HostRule host_op_rule(HostOp op) {
  return row(op).rule;
}
std::optional<ScalarOp> element_wise_op(HostOp op) {
  // Found by their names once, since calls evaluate sizes.
  static const auto kFound = [] {
    std::array<std::optional<ScalarOp>, kOps.size()> found;
    for (std::size_t i = 0; i < found.size(); ++i) found[i] = find_scalar_op(kOps[i].name);
    found[static_cast<std::size_t>(HostOp::And)] = ScalarOp::bit_and;
    found[static_cast<std::size_t>(HostOp::Or)] = ScalarOp::bit_or;
    found[static_cast<std::size_t>(HostOp::Not)] = ScalarOp::bit_not;
    return found;
  }();
  return kFound[static_cast<std::size_t>(op)];
}
std::optional<HostOp> host_op_of(ScalarOp op, HostType operands) {
  if (operands == HostType::Bool && op == ScalarOp::bit_xor) return HostOp::Ne;
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    const bool fits = (kOps[i].rule == HostRule::Logic) == (operands == HostType::Bool) ||
                      kOps[i].rule == HostRule::Compare;
    if (fits && element_wise_op(static_cast<HostOp>(i)) == op) return static_cast<HostOp>(i);
  }
  return std::nullopt;
}

HostValue HostValue::from_int(std::int64_t value) {
  return {HostType::Int, static_cast<std::uint64_t>(value)};
}
HostValue HostValue::from_f32(float value) {
  return {HostType::F32, lang::bits_of(lang::canonical(value))};
}
HostValue HostValue::from_f64(double value) {
  return {HostType::F64, lang::bits_of(lang::canonical(value))};
}
HostValue HostValue::from_bool(bool value) {
  return {HostType::Bool, value ? 1u : 0u};
}

std::int64_t HostValue::as_int() const {
  CINCH_CHECK(type == HostType::Int, "not an int");
  return static_cast<std::int64_t>(bits);
}
float HostValue::as_f32() const {
  CINCH_CHECK(type == HostType::F32, "not an f32");
  return lang::f32_of_bits(static_cast<std::uint32_t>(bits));
}
double HostValue::as_f64() const {
  CINCH_CHECK(type == HostType::F64, "not an f64");
  return lang::f64_of_bits(static_cast<lang::u64>(bits));
}
bool HostValue::as_bool() const {
  CINCH_CHECK(type == HostType::Bool, "not a bool");
  return bits != 0;
}
double HostValue::to_double() const {
  switch (type) {
    case HostType::Int:
      return static_cast<double>(as_int());
    case HostType::F32:
      return as_f32();
    case HostType::F64:
      return as_f64();
    case HostType::Bool:
      break;
  }
  return as_bool() ? 1 : 0;
}

std::size_t HostExprPool::NodeHash::operator()(const HostExprNode& node) const noexcept {
  const std::uint64_t words[4] = {
      (static_cast<std::uint64_t>(node.op) << 8) | static_cast<std::uint64_t>(node.type),
      node.payload, (std::uint64_t{node.args[0].index()} << 32) | node.args[1].index(),
      node.args[2].index()};
  return hash64(words, sizeof words);
}

HostExprId HostExprPool::intern(const HostExprNode& node) {
  const auto [at, is_new] = index_.try_emplace(node, HostExprId(nodes_.size()));
  if (is_new) {
    const bool gives =
        gives_nonnegative(node.op, [&](int i) { return is_nonnegative(node.args[i]); });
    const bool is_nonnegative_constant =
        node.op == HostOp::Const && HostValue{node.type, node.payload}.to_double() >= 0;
    Facts facts{gives || is_nonnegative_constant, leaf_bit(node.op)};
    for (HostExprId arg : node.args) {
      if (arg) facts.leaves |= facts_[arg.index()].leaves;
    }
    nodes_.push_back(node);
    facts_.push_back(facts);
  }
  return at->second;
}

const HostExprNode& HostExprPool::node(HostExprId id) const {
  CINCH_CHECK(id.index() < nodes_.size(), "host expression of another pool, or none");
  return nodes_[id.index()];
}

std::set<std::uint32_t> HostExprPool::counts_of(HostExprId id) const {
  std::set<std::uint32_t> counts;
  std::set<HostExprId> seen;
  std::vector<HostExprId> work = {id};
  while (!work.empty()) {
    const HostExprId next = work.back();
    work.pop_back();
    if (!next || !has_count(next) || !seen.insert(next).second) continue;
    const HostExprNode& node = nodes_[next.index()];
    if (node.op == HostOp::Count) {
      counts.insert(static_cast<std::uint32_t>(node.payload));
      continue;  // its bound is not an argument of its value
    }
    work.insert(work.end(), std::begin(node.args), std::end(node.args));
  }
  return counts;
}

HostExprId HostExprPool::leaf(HostOp op) {
  return intern({op, HostType::Int, 0, {}});
}
HostExprId HostExprPool::constant(HostValue value) {
  return intern({HostOp::Const, value.type, value.bits, {}});
}
HostExprId HostExprPool::const_int(std::int64_t v) {
  return constant(HostValue::from_int(v));
}
HostExprId HostExprPool::const_f32(float v) {
  return constant(HostValue::from_f32(v));
}
HostExprId HostExprPool::const_f64(double v) {
  return constant(HostValue::from_f64(v));
}
HostExprId HostExprPool::const_bool(bool v) {
  return constant(HostValue::from_bool(v));
}
HostExprId HostExprPool::param(std::uint32_t index, HostType type) {
  return intern({HostOp::Param, type, index, {}});
}
HostExprId HostExprPool::count(std::uint32_t index, HostExprId bound) {
  const HostExprNode made{HostOp::Count, HostType::Int, index, {bound}};
  const std::string fault = find_fault(made);
  CINCH_CHECK(fault.empty(), fault);
  return intern(made);
}

HostValue HostExprPool::const_value(HostExprId id) const {
  const HostExprNode& n = node(id);
  CINCH_CHECK(n.op == HostOp::Const, "not a constant");
  return {n.type, n.payload};
}

std::string HostExprPool::find_fault(const HostExprNode& made) const {
  const OpRow& info = row(made.op);
  for (int i = 0; i < 3; ++i) {
    if (made.args[i].is_valid() != (i < info.num_args)) return "wrong number of arguments";
    if (made.args[i].is_valid() && made.args[i].index() >= nodes_.size()) return "unknown argument";
  }
  const auto arg_type = [&](int i) { return nodes_[made.args[i].index()].type; };
  const auto all_are = [&](HostType type) {
    for (int i = 0; i < info.num_args; ++i) {
      if (arg_type(i) != type) return false;
    }
    return true;
  };
  bool fits = true;
  switch (info.rule) {
    case HostRule::Leaf:
      fits = made.op == HostOp::Const || made.op == HostOp::Param || made.type == HostType::Int;
      if (made.op == HostOp::Count)
        fits = fits && all_are(HostType::Int) && !has_count(made.args[0]);
      break;
    case HostRule::Arith:
      fits = made.type != HostType::Bool && all_are(made.type);
      break;
    case HostRule::Float:
      fits = (made.type == HostType::F32 || made.type == HostType::F64) && all_are(made.type);
      break;
    case HostRule::Integer:
      fits = made.type == HostType::Int && all_are(HostType::Int);
      break;
    case HostRule::Logic:
      fits = made.type == HostType::Bool && all_are(HostType::Bool);
      break;
    case HostRule::Compare:
      fits = made.type == HostType::Bool && all_are(arg_type(0));
      break;
    case HostRule::Select:
      fits = arg_type(0) == HostType::Bool && arg_type(1) == made.type && arg_type(2) == made.type;
      break;
    case HostRule::Cast:
      break;
  }
  return fits ? std::string() : std::string("wrong types for `") + info.name + "`";
}

HostExprId HostExprPool::make(HostOp op, HostExprId a, HostExprId b, HostExprId c) {
  const HostRule rule = row(op).rule;
  CINCH_CHECK(rule != HostRule::Leaf && rule != HostRule::Cast, "leaves and casts have own makers");
  HostType result = HostType::Bool;
  if (rule == HostRule::Select) {
    result = type(b);
  } else if (rule != HostRule::Compare) {
    result = type(a);
  }
  const HostExprId args[3] = {a, b, c};
  return rebuild({op, result, 0, {}}, args);
}

HostExprId HostExprPool::cast(HostExprId a, HostType to) {
  const HostExprId args[3] = {a, {}, {}};
  return rebuild({HostOp::Cast, to, 0, {}}, args);
}

// The node with these arguments: folded, simplified or interned. Every node passes through here.
HostExprId HostExprPool::rebuild(const HostExprNode& shape, const HostExprId (&args)[3]) {
  HostExprNode made = shape;
  for (int i = 0; i < 3; ++i) made.args[i] = args[i];
  const std::string fault = find_fault(made);
  CINCH_CHECK(fault.empty(), fault);
  const OpRow& info = row(made.op);
  if (info.rule == HostRule::Leaf) return intern(made);
  if (info.rule == HostRule::Cast && type(args[0]) == made.type) return args[0];
  HostValue values[3];
  bool all_const = true;
  for (int i = 0; i < info.num_args && all_const; ++i) {
    all_const = is_const(args[i]);
    if (all_const) values[i] = const_value(args[i]);
  }
  if (all_const) {
    const auto count = static_cast<std::size_t>(info.num_args);
    if (const auto folded = apply_host_op(made.op, made.type, {values, count})) {
      return constant(*folded);
    }
    return intern(made);
  }
  if (made.op == HostOp::Select && is_const(args[0])) {
    return const_value(args[0]).as_bool() ? args[1] : args[2];
  }
  if (made.type == HostType::Int && info.num_args == 2) {
    // Constants go to the right of sums and to the left of products.
    const bool is_sum = made.op == HostOp::Add && is_const(args[0]);
    const bool is_product = made.op == HostOp::Mul && is_const(args[1]);
    if (is_sum || is_product) std::swap(made.args[0], made.args[1]);
    const HostExprId simple = simplify_int(made.op, made.args[0], made.args[1]);
    if (simple) return simple;
  }
  return intern(made);
}

// A simpler form of `a op b`, or no id. Both may be constants if their result overflows; constants
// are then not regrouped, since that would never end.
HostExprId HostExprPool::simplify_int(HostOp op, HostExprId a, HostExprId b) {
  const auto is = [&](HostExprId id, std::int64_t value) { return id == const_int(value); };
  // (x op c) with constant c on the side where rebuild puts it.
  const auto inner_const = [&](HostExprId id, HostOp inner, int side) {
    const HostExprNode& n = node(id);
    return n.op == inner && is_const(n.args[side]) ? n.args[side] : HostExprId();
  };
  const auto folded = [&](HostExprId x, HostExprId y) {
    const HostValue values[] = {const_value(x), const_value(y)};
    const auto value = apply_host_op(op, HostType::Int, values);
    return value ? constant(*value) : HostExprId();
  };
  switch (op) {
    case HostOp::Add:
      if (is(b, 0)) return a;
      if (const HostExprId c = inner_const(a, HostOp::Add, 1); c && is_const(b)) {
        const HostExprId sum = folded(c, b);
        return sum ? add(node(a).args[0], sum) : HostExprId();
      }
      return {};
    case HostOp::Sub:
      return is(b, 0) ? a : a == b ? const_int(0) : HostExprId();
    case HostOp::Mul:
      if (is(a, 0) || is(a, 1)) return is(a, 0) ? a : b;
      if (const HostExprId c = inner_const(b, HostOp::Mul, 0); c && is_const(a)) {
        const HostExprId product = folded(a, c);
        return product ? mul(product, node(b).args[1]) : HostExprId();
      }
      return {};
    case HostOp::Div:
    case HostOp::CeilDiv:
      return is(b, 1) ? a : HostExprId();
    case HostOp::AlignUp:
      if (is(b, 1)) return a;
      if (const HostExprId c = inner_const(a, HostOp::Mul, 0); c && is_const(b)) {
        const std::int64_t unit = const_value(b).as_int();
        if (unit > 0 && const_value(c).as_int() % unit == 0) return a;
      }
      return {};
    case HostOp::Min:
    case HostOp::Max:
      return a == b ? a : HostExprId();
    default:
      return {};
  }
}

}  // namespace cinch
