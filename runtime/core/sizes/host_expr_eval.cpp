// The meaning of host expressions: each operation on values.
#include <algorithm>
#include <tuple>

#include "runtime/core/numbers/scalar_functions.h"
#include "runtime/core/sizes/host_expr_ops.h"
#include "runtime/core/sizes/host_memo.h"

namespace cinch {
namespace {

using rt::ErrorKind;
using Value = rt::Result<HostValue>;

tl::unexpected<rt::Error> overflow() {
  return rt::fail(ErrorKind::Overflow, "overflow");
}

// Does the result exceed 64 bits, so that the element-wise operation would wrap?
bool overflows(HostOp op, std::int64_t a, std::int64_t b) {
  std::int64_t unused = 0;
  switch (op) {
    case HostOp::Add:
      return __builtin_add_overflow(a, b, &unused);
    case HostOp::Sub:
      return __builtin_sub_overflow(a, b, &unused);
    case HostOp::Mul:
      return __builtin_mul_overflow(a, b, &unused);
    case HostOp::Div:
    case HostOp::CeilDiv:
      return a == INT64_MIN && b == -1;
    case HostOp::Shl:
      return lang::shr<lang::i64>(lang::shl<lang::i64>(a, b), b) != a;
    case HostOp::Neg:
    case HostOp::Abs:
      return a == INT64_MIN;
    default:
      return false;
  }
}

// Arithmetic on floats and comparisons all have one.
ScalarOp scalar_op_of(HostOp op) {
  const std::optional<ScalarOp> found = element_wise_op(op);
  CINCH_CHECK(found, "not an element-wise operation");
  return *found;
}

Value apply_int(HostOp op, lang::i64 a, lang::i64 b, lang::i64 c) {
  if (op == HostOp::AlignUp) {
    if (b <= 0) return HostValue::from_int(a);
    std::int64_t result = 0;
    if (__builtin_mul_overflow(lang::ceil_div(a, b), b, &result)) return overflow();
    return HostValue::from_int(result);
  }
  if (overflows(op, a, b)) return overflow();
  return HostValue::from_int(evaluate_number(scalar_op_of(op), a, b, c, 64));
}

template <typename F>
F apply_float(HostOp op, F a, F b, F c) {
  return evaluate_number(scalar_op_of(op), a, b, c, 8 * sizeof(F));
}

bool compare_values(HostOp op, const HostValue& a, const HostValue& b) {
  const ScalarOp comparison = scalar_op_of(op);
  switch (a.type) {
    case HostType::F32:
      return compare_scalars(comparison, a.as_f32(), b.as_f32());
    case HostType::F64:
      return compare_scalars(comparison, a.as_f64(), b.as_f64());
    default:
      return compare_scalars(comparison, static_cast<std::int64_t>(a.bits),
                             static_cast<std::int64_t>(b.bits));
  }
}

template <typename T>
HostValue cast_number(T x, HostType to) {
  switch (to) {
    case HostType::F32:
      return HostValue::from_f32(lang::to_f32(x));
    case HostType::F64:
      return HostValue::from_f64(lang::to_f64(x));
    case HostType::Bool:
      return HostValue::from_bool(x != 0);
    case HostType::Int:
      break;
  }
  if constexpr (lang::kIsFloat<T>) {
    return HostValue::from_int(lang::float_to_int<lang::i64>(x));
  } else {
    return HostValue::from_int(x);
  }
}

HostValue cast_value(const HostValue& value, HostType to) {
  switch (value.type) {
    case HostType::F32:
      return cast_number(value.as_f32(), to);
    case HostType::F64:
      return cast_number(value.as_f64(), to);
    default:
      return cast_number(static_cast<lang::i64>(value.bits), to);
  }
}

Value apply_arith(HostOp op, HostType type, const HostValue (&v)[3]) {
  const auto bits32 = [&](int i) { return lang::f32_of_bits(static_cast<lang::u32>(v[i].bits)); };
  const auto bits64 = [&](int i) { return lang::f64_of_bits(static_cast<lang::u64>(v[i].bits)); };
  const auto whole = [&](int i) { return static_cast<std::int64_t>(v[i].bits); };
  switch (type) {
    case HostType::Int:
      return apply_int(op, whole(0), whole(1), whole(2));
    case HostType::F32:
      return HostValue::from_f32(apply_float(op, bits32(0), bits32(1), bits32(2)));
    case HostType::F64:
      return HostValue::from_f64(apply_float(op, bits64(0), bits64(1), bits64(2)));
    case HostType::Bool:
      break;
  }
  CINCH_BUG("arithmetic on bool");
}

std::string describe_param(std::uint64_t index) {
  return "parameter " + std::to_string(index);
}

Value leaf_value(const HostExprNode& node, const HostEnv& env) {
  switch (node.op) {
    case HostOp::Const:
      return HostValue{node.type, node.payload};
    case HostOp::N:
      return HostValue::from_int(env.n);
    case HostOp::Rows:
      return HostValue::from_int(env.rows);
    case HostOp::Cols:
      return HostValue::from_int(env.cols);
    case HostOp::World:
      return HostValue::from_int(env.world);
    case HostOp::MachineRanks:
      return HostValue::from_int(env.machine_ranks == 0 ? env.world : env.machine_ranks);
    case HostOp::Step:
      return HostValue::from_int(env.step);
    case HostOp::Worker:
      return HostValue::from_int(env.worker);
    case HostOp::Param:
      if (node.payload >= env.params.size()) {
        return rt::fail(ErrorKind::InvalidArgument, describe_param(node.payload) + " is missing");
      }
      if (env.params[node.payload].type != node.type) {
        return rt::fail(ErrorKind::InvalidArgument,
                        describe_param(node.payload) + " is not " + host_type_name(node.type));
      }
      return env.params[node.payload];
    case HostOp::Count:
      if (node.payload >= env.counts.size()) {
        return rt::fail(ErrorKind::InvalidArgument,
                        "count " + std::to_string(node.payload) + " is missing");
      }
      return HostValue::from_int(env.counts[node.payload]);
    default:
      CINCH_BUG("not a leaf");
  }
}

}  // namespace

Value apply_host_op(HostOp op, HostType result, std::span<const HostValue> args) {
  switch (host_op_rule(op)) {
    case HostRule::Compare:
      return HostValue::from_bool(compare_values(op, args[0], args[1]));
    case HostRule::Logic:
      if (op == HostOp::Not) return HostValue::from_bool(!args[0].as_bool());
      return HostValue::from_bool(op == HostOp::And ? args[0].as_bool() && args[1].as_bool()
                                                    : args[0].as_bool() || args[1].as_bool());
    case HostRule::Cast:
      return cast_value(args[0], result);
    case HostRule::Select:
      return args[0].as_bool() ? args[1] : args[2];
    default:
      break;
  }
  HostValue values[3];
  std::copy(args.begin(), args.end(), values);
  return apply_arith(op, result, values);
}

bool HostExprPool::depends_on(HostExprId id, HostOp leaf_op) const {
  node(id);
  return (facts_[id.index()].leaves & leaf_bit(leaf_op)) != 0;
}

Value HostExprPool::eval(HostExprId id, const HostEnv& env) const {
  node(id);
  if (env.memo && env.memo->is_of(*this)) return env.memo->eval(id, env);
  HostMemo memo;
  memo.bind(*this, env);
  return memo.eval(id, env);
}

rt::Result<std::int64_t> HostExprPool::eval_int(HostExprId id, const HostEnv& env) const {
  CINCH_CHECK(type(id) == HostType::Int, "not an integer expression");
  return eval(id, env).map([](const HostValue& value) { return value.as_int(); });
}

void HostMemo::bind(const HostExprPool& pool, const HostEnv& env) {
  const auto key = [](const HostEnv& e) {
    return std::tie(e.n, e.rows, e.cols, e.world, e.worker, e.machine_ranks);
  };
  const bool is_same =
      pool_ == &pool && key(env_) == key(env) &&
      std::equal(params_.begin(), params_.end(), env.params.begin(), env.params.end());
  if (!is_same) {
    std::fill(stamps_.begin(), stamps_.end(), kUnknown);
    params_.assign(env.params.begin(), env.params.end());
  } else if (env_.step != env.step) {
    for (std::size_t i = 0; i < stamps_.size(); ++i) {
      if (pool.depends_on(HostExprId(i), HostOp::Step)) stamps_[i] = kUnknown;
    }
  }
  pool_ = &pool;
  env_ = env;
  env_.params = {};
  env_.counts = {};
}

// Evaluates arguments before users. For a select it evaluates only the branch taken: the other may
// overflow.
rt::Result<HostValue> HostMemo::eval(HostExprId id, const HostEnv& env) {
  // Nodes may have been added since.
  stamps_.resize(pool_->num_nodes(), kUnknown);
  values_.resize(pool_->num_nodes());
  ++now_;
  waiting_.assign(1, id);
  while (!waiting_.empty()) {
    const HostExprId top = waiting_.back();
    const HostExprNode& node = pool_->node(top);
    const HostExprId argument = is_known(top) ? HostExprId() : unknown_argument(node);
    if (argument) {
      waiting_.push_back(argument);
      continue;
    }
    waiting_.pop_back();
    if (is_known(top)) continue;
    auto value = value_of(node, env);
    if (!value) {
      if (value.error().message == "overflow") {
        value.error().message =
            "`" + pool_->print(top) + "` does not fit in 64 bits for n = " + std::to_string(env.n);
      }
      return value;
    }
    values_[top.index()] = *value;
    stamps_[top.index()] = pool_->has_count(top) ? now_ : kAlways;
  }
  return values_[id.index()];
}

// The next argument that the node's value needs, or none. The bound of a count is not needed for
// its value.
HostExprId HostMemo::unknown_argument(const HostExprNode& node) const {
  if (host_op_rule(node.op) == HostRule::Leaf) return {};
  if (node.op == HostOp::Select && is_known(node.args[0])) {
    const HostExprId taken = node.args[values_[node.args[0].index()].as_bool() ? 1 : 2];
    return is_known(taken) ? HostExprId() : taken;
  }
  const int num_args = node.op == HostOp::Select ? 1 : host_op_num_args(node.op);
  for (int i = 0; i < num_args; ++i) {
    if (!is_known(node.args[i])) return node.args[i];
  }
  return {};
}

rt::Result<HostValue> HostMemo::value_of(const HostExprNode& node, const HostEnv& env) const {
  if (host_op_rule(node.op) == HostRule::Leaf) return leaf_value(node, env);
  HostValue values[3];
  const int num_args = host_op_num_args(node.op);
  for (int i = 0; i < num_args; ++i) values[i] = values_[node.args[i].index()];
  return apply_host_op(node.op, node.type, {values, static_cast<std::size_t>(num_args)});
}

}  // namespace cinch
