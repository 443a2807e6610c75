// Builder: placing ops, leaves, control flow and checks.
#include "compiler/ir/builder.h"

#include <bit>
#include <cmath>

#include "compiler/ir/rewriter.h"
#include "runtime/core/check.h"
#include "runtime/core/mapped.h"
#include "runtime/core/params.h"
#include "runtime/core/sizes/host_expr_ops.h"

namespace cinch::ir {

Function make_function(FunctionKind kind) {
  Function function{.kind = kind};
  function.regions.emplace_back();
  function.body = RegionId(0);
  return function;
}

Builder::Builder(Program& program, Function& function)
    : program_(program), function_(function), region_(function.body) {}

RegionId Builder::new_region() {
  function_.regions.emplace_back();
  return RegionId(function_.regions.size() - 1);
}

ValueId Builder::add_arg(RegionId region, Type type, std::string name) {
  Region& holder = function_.regions[region.index()];
  CINCH_CHECK(holder.ops.size() == holder.args.size(), "args come before all other ops");
  Attrs attrs{.index = static_cast<std::uint32_t>(holder.args.size())};
  const RegionId outer = region_;
  const std::size_t position = position_;
  set_insertion(region);
  const ValueId value = add_one(OpKind::arg, {}, type, attrs);
  region_ = outer;
  position_ = position;
  function_.regions[region.index()].args.push_back(value);
  set_name(value, std::move(name));
  return value;
}

ValueIds Builder::add_args(RegionId region, std::span<const Type> types) {
  return mapped<ValueId>(types, [&](const Type& type) { return add_arg(region, type); });
}

void Builder::set_insertion(RegionId region) {
  region_ = region;
  position_ = kAtEnd;
}

void Builder::set_insertion(RegionId region, std::size_t position) {
  region_ = region;
  position_ = position;
}

void Builder::set_name(ValueId value, std::string name) {
  function_.values[value.index()].name = std::move(name);
}

void Builder::insert(RegionId region, OpId op) {
  std::vector<OpId>& ops = function_.regions[region.index()].ops;
  if (position_ == kAtEnd) {
    ops.push_back(op);
  } else {
    ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(position_++), op);
  }
}

OpId Builder::add(OpKind kind, ValueIds operands, std::vector<Type> types, Attrs attrs,
                  std::vector<RegionId> regions) {
  const OpId id(function_.ops.size());
  Op op{kind, std::move(operands), {}, std::move(regions), std::move(attrs), span_};
  for (std::size_t i = 0; i < types.size(); ++i) {
    op.results.emplace_back(function_.values.size());
    function_.values.push_back({types[i], id, static_cast<std::uint32_t>(i), {}});
  }
  function_.ops.push_back(std::move(op));
  insert(region_, id);
  return id;
}

ValueId Builder::add_one(OpKind kind, ValueIds operands, Type type, Attrs attrs,
                         std::vector<RegionId> regions) {
  return result(add(kind, std::move(operands), {type}, std::move(attrs), std::move(regions)));
}

std::vector<Type> Builder::types_of(std::span<const ValueId> values) const {
  return mapped<Type>(values, [&](ValueId value) { return type(value); });
}

ValueIds Builder::inline_here(RegionId region, const ValueIds& args) {
  const RegionId scratch = new_region();
  const ValueIds values = inline_region(function_, region, args, scratch);
  const std::vector<OpId> ops = std::exchange(function_.regions[scratch.index()].ops, {});
  for (OpId op : ops) place(op);
  return values;
}

// Leaves.

ValueId Builder::constant_bits(DType dtype, std::uint64_t bits) {
  return add_one(OpKind::const_scalar, {}, scalar_type(dtype), {.bits = bits});
}

ValueId Builder::constant(DType dtype, double value) {
  if (is_float(dtype)) return constant_bits(dtype, std::bit_cast<std::uint64_t>(value));
  return constant_int(dtype, static_cast<std::int64_t>(value));
}

ValueId Builder::constant_int(DType dtype, std::int64_t value) {
  if (is_float(dtype)) return constant(dtype, static_cast<double>(value));
  return constant_bits(dtype, static_cast<std::uint64_t>(value));
}

ValueId Builder::const_array(Table table) {
  const auto same = [&](const Table& other) {
    return other.bits == table.bits && other.type.rank == table.type.rank &&
           types_agree(program().info, other.type, table.type);
  };
  const auto found = std::find_if(program().tables.begin(), program().tables.end(), same);
  Attrs attrs{.index = static_cast<std::uint32_t>(found - program().tables.begin())};
  const Type type = table.type;
  if (found == program().tables.end()) program().tables.push_back(std::move(table));
  return add_one(OpKind::const_array, {}, type, attrs);
}

ValueId Builder::param(std::uint32_t index) {
  return add_one(OpKind::param, {}, scalar_type(program().info.params[index].dtype),
                 {.index = index});
}

ValueId Builder::host_size(HostExprId size, DType dtype) {
  return add_one(OpKind::host_size, {}, scalar_type(dtype), {.size = size});
}

ValueId Builder::size_scalar(HostExprId size, DType dtype, const CountOf& count_of) {
  if (!exprs().has_count(size)) return host_size(size, dtype);
  const HostExprNode node = exprs().node(size);
  if (node.op == HostOp::Count) {
    return convert(count_of(static_cast<std::uint32_t>(node.payload)), dtype);
  }
  std::map<HostExprId, ValueId> made;
  return convert(size_with_counts(size, count_of, made), dtype);
}

// Computes in the host's type. An expression is a graph: values in `made` are reused.
ValueId Builder::size_with_counts(HostExprId size, const CountOf& count_of,
                                  std::map<HostExprId, ValueId>& made) {
  if (const auto known = made.find(size); known != made.end()) return known->second;
  const HostExprNode node = exprs().node(size);
  const bool is_leaf = node.op == HostOp::Count || !exprs().has_count(size);
  const ValueId value = is_leaf ? size_scalar(size, dtype_of(node.type), count_of)
                                : size_of_operands(node, count_of, made);
  made.emplace(size, value);
  return value;
}

ValueId Builder::size_of_operands(const HostExprNode& node, const CountOf& count_of,
                                  std::map<HostExprId, ValueId>& made) {
  ValueIds operands;
  for (HostExprId arg : node.args) {
    if (arg.is_valid()) operands.push_back(size_with_counts(arg, count_of, made));
  }
  if (node.op == HostOp::Cast) return convert(operands[0], dtype_of(node.type));
  if (node.op == HostOp::AlignUp) {
    return map(ScalarOp::mul, map(ScalarOp::ceil_div, operands), operands[1]);
  }
  const std::optional<ScalarOp> op = element_wise_op(node.op);
  CINCH_CHECK(op.has_value(), "a host operator without an element-wise form");
  return map(*op, operands);
}

ValueId Builder::gradient() {
  const bool is_matrix = program().info.is_matrix;
  return add_one(OpKind::gradient, {},
                 is_matrix ? matrix_type(kF32, exprs().rows(), exprs().cols())
                           : vector_type(kF32, exprs().n()));
}

ValueId Builder::state(std::uint32_t index) {
  return add_one(OpKind::state, {}, program().info.states[index].type, {.index = index});
}

ValueId Builder::field(std::uint32_t index) {
  return add_one(OpKind::field, {}, program().info.wire.fields[index].type, {.index = index});
}

ValueId Builder::count_value(std::uint32_t index) {
  return add_one(OpKind::count_value, {}, scalar_type(kU32), {.index = index});
}

// Checks.

void Builder::check(ValueId condition, std::string message) {
  add(OpKind::check, {condition}, {}, {.text = std::move(message)});
}

void Builder::check_all_uses(OpKind kind, ValueId index, HostExprId size, std::string text) {
  add(kind, index.is_valid() ? ValueIds{index} : ValueIds{}, {},
      {.size = size, .text = std::move(text)});
}

void Builder::check_index(ValueId index, HostExprId below, std::string what) {
  check_all_uses(OpKind::check_index, index, below, std::move(what));
}

void Builder::check_unique(ValueId index, HostExprId cells, std::string what) {
  check_all_uses(OpKind::check_unique, index, cells, std::move(what));
}

void Builder::check_host(HostExprId condition, std::string message) {
  check_all_uses(OpKind::check_host, {}, condition, std::move(message));
}

// Control.

RegionId Builder::filled_region(const std::function<ValueIds(RegionId)>& body) {
  const RegionId outer = region_;
  const std::size_t position = position_;
  const RegionId region = new_region();
  set_insertion(region);
  yield(body(region));
  region_ = outer;
  position_ = position;
  return region;
}

ValueIds Builder::if_else(ValueId condition, const Body& then_body, const Body& else_body) {
  std::vector<Type> types;
  const RegionId then_region = filled_region([&](RegionId) {
    ValueIds values = then_body();
    types = types_of(values);
    return values;
  });
  const RegionId else_region = filled_region([&](RegionId) { return else_body(); });
  const OpId op =
      add(OpKind::if_else, {condition}, std::move(types), {}, {then_region, else_region});
  return function().ops[op.index()].results;
}

ValueIds Builder::for_loop(HostExprId begin, HostExprId end, ValueIds inits, const LoopBody& body) {
  const std::vector<Type> types = types_of(inits);
  const RegionId region = filled_region([&](RegionId inner) {
    const ValueId i = add_arg(inner, scalar_type(kI64));
    return body(i, add_args(inner, types));
  });
  const OpId op =
      add(OpKind::for_loop, std::move(inits), types, {.size = begin, .size2 = end}, {region});
  return function().ops[op.index()].results;
}

ValueIds Builder::while_loop(HostExprId at_most, ValueIds inits, const Condition& condition,
                             const CarriedBody& body) {
  const std::vector<Type> types = types_of(inits);
  const RegionId cond_region =
      filled_region([&](RegionId inner) { return ValueIds{condition(add_args(inner, types))}; });
  const RegionId body_region =
      filled_region([&](RegionId inner) { return body(add_args(inner, types)); });
  const OpId op = add(OpKind::while_loop, std::move(inits), types, {.size = at_most},
                      {cond_region, body_region});
  return function().ops[op.index()].results;
}

void Builder::yield(ValueIds values) {
  add(OpKind::yield, std::move(values), {});
}

CombinerId Builder::combiner(ScalarOp op) {
  function().combiners.push_back({op, {}});
  return CombinerId(function().combiners.size() - 1);
}

CombinerId Builder::combiner(std::span<const DType> types, const CombineBody& body) {
  const RegionId region = filled_region([&](RegionId inner) {
    ValueIds args;
    for (int side = 0; side < 2; ++side) {
      for (DType dtype : types) args.push_back(add_arg(inner, scalar_type(dtype)));
    }
    const std::span<const ValueId> all(args);
    return body(all.first(types.size()), all.last(types.size()));
  });
  function().combiners.push_back({std::nullopt, region});
  return CombinerId(function().combiners.size() - 1);
}

}  // namespace cinch::ir
