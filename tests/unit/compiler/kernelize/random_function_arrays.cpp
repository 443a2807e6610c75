// Steps that move, reduce, scan, select, sort and scatter; checks and control flow.
#include "runtime/core/check.h"
#include "tests/unit/compiler/kernelize/random_function.h"

namespace cinch::codegen {

using ir::OpKind;

void RandomFunction::add_steps(int num) {
  for (int i = 0; i < num; ++i) step();
}

void RandomFunction::step() {
  using Step = void (RandomFunction::*)();
  static constexpr std::pair<Step, int> kSteps[] = {
      {&RandomFunction::add_map, 30},       {&RandomFunction::add_convert, 8},
      {&RandomFunction::add_bitcast, 3},    {&RandomFunction::add_draw, 8},
      {&RandomFunction::add_gather, 6},     {&RandomFunction::add_gather_along, 3},
      {&RandomFunction::add_move, 6},       {&RandomFunction::add_shape, 6},
      {&RandomFunction::add_packing, 3},    {&RandomFunction::add_reduce, 8},
      {&RandomFunction::add_row_reduce, 9}, {&RandomFunction::add_scan, 7},
      {&RandomFunction::add_selection, 7},  {&RandomFunction::add_sort, 3},
      {&RandomFunction::add_scatter, 6},    {&RandomFunction::add_row_scatter, 2},
      {&RandomFunction::add_assignment, 8}, {&RandomFunction::add_counting, 4},
      {&RandomFunction::add_matrix, 3},     {&RandomFunction::add_check, 3},
      {&RandomFunction::add_branch, 3},     {&RandomFunction::add_for, 3},
      {&RandomFunction::add_while, 2},      {&RandomFunction::add_expanded, 5},
  };
  int total = 0;
  for (const auto& [unused, weight] : kSteps) total += weight;
  int pick = below(total);
  for (const auto& [make, weight] : kSteps) {
    if (pick < weight) return (this->*make)();
    pick -= weight;
  }
}

void RandomFunction::add_gather() {
  const auto x = maybe(70) ? vector() : matrix();
  if (may_be_empty(type(x))) return;
  const auto len = type(x).dims[0];
  if (maybe(25)) {
    const auto at = b_.map(ScalarOp::mod, scalar(kU32), size_u32(len));
    return add(b_.gather(x, maybe(50) ? as(at, kI64) : at));
  }
  const bool is_matrix = type(x).rank == 2;
  const auto num = is_matrix || maybe(30) ? smaller(len, 50) : size(vector());
  auto index = indices(num, len);
  if (maybe(20)) index = as(index, kI64);
  add(b_.gather(x, index));
}

void RandomFunction::add_gather_along() {
  const auto x = matrix();
  if (may_be_empty(type(x))) return;
  const int axis = below(2);
  ir::Type shape = type(x);
  shape.dims[axis] = smaller(shape.dims[axis], 9);
  const auto num = ir::element_count(pool(), shape);
  const auto index = b_.reshape(indices(num, type(x).dims[axis]), shape);
  add(b_.gather_along(x, index, static_cast<std::int8_t>(axis)));
}

void RandomFunction::add_move() {
  if (maybe(50)) {
    const auto x = maybe(70) ? vector() : matrix();
    if (may_be_empty(type(x))) return;
    const auto len = type(x).dims[0];
    const auto half = pool().ceil_div(len, pool().const_int(2));
    return add(maybe(50) ? b_.slice(x, pool().sub(len, half), half)
                         : b_.slice(x, pool().const_int(0), smaller(len, 40)));
  }
  const auto x = vector();
  ir::ValueIds parts{x, as(vector(), type(x).dtype)};
  if (maybe(30)) parts.push_back(x);
  // Sums of lengths soon grow: one half of the result goes on.
  const auto joined = b_.concat(parts);
  const auto half = pool().ceil_div(size(joined), pool().const_int(2));
  add(may_be_empty(type(joined)) ? joined
                                 : b_.slice(joined, pool().div(half, pool().const_int(2)), half));
}

void RandomFunction::add_shape() {
  switch (below(4)) {
    case 0:
      return add(matrix());
    case 1:
      return add(b_.transpose(matrix()));
    case 2: {
      const auto x = matrix();
      if (may_be_empty(type(x))) return;
      return add(b_.unchunk(x, maybe(50) ? type(x).dims[0] : smaller(size(x), 300)));
    }
    default:
      return add(flat(matrix()));
  }
}

void RandomFunction::add_packing() {
  const int bits = 1 + below(12);
  const auto x = as(vector(), kU32);
  const auto bytes = b_.pack(x, bits);
  add(bytes);
  if (maybe(60)) add(b_.unpack(bytes, bits, size(x)));
}

ir::CombinerId RandomFunction::lambda(DType dtype) {
  const std::array types = {dtype, kU32};
  const auto outer = scalar(dtype);
  return b_.combiner(types, [&](auto a, auto c) {
    const auto x = b_.map(ScalarOp::max, a[0], outer), y = b_.map(ScalarOp::max, c[0], outer);
    const auto first = b_.map(ScalarOp::ge, x, y);
    return ir::ValueIds{b_.select(first, x, y), b_.select(first, a[1], c[1])};
  });
}

void RandomFunction::add_reduce() {
  const auto x = computed(array());
  const auto t = type(x).dtype;
  const auto mask = maybe(30) ? mask_like(x) : ValueId();
  if (maybe(20)) {
    const auto other = as(like(any(), type(x)), kU32);
    const auto both = b_.reduce({x, other}, {scalar(t), scalar(kU32)}, lambda(t), ir::kAll, mask);
    add(both[0]);
    return add(both[1]);
  }
  static constexpr ScalarOp kOps[] = {ScalarOp::add,    ScalarOp::max,    ScalarOp::min,
                                      ScalarOp::mul,    ScalarOp::bit_or, ScalarOp::bit_and,
                                      ScalarOp::bit_xor};
  const auto op = kOps[below(is_float(t) ? 4 : 7)];
  if (maybe(20)) return add(b_.reduce({x}, {scalar(t)}, b_.combiner(op), ir::kAll, mask)[0]);
  add(b_.reduce(op, x, ir::kAll, mask));
}

void RandomFunction::add_row_reduce() {
  const auto x = computed(matrix());
  const auto t = type(x).dtype;
  const auto axis = static_cast<std::int8_t>(maybe(75) ? 1 : 0);
  if (pool().has_count(type(x).dims[1]) || (axis == 0 && may_be_empty(type(x)))) return;
  const auto mask = maybe(30) ? mask_like(x) : ValueId();
  ValueId r;
  if (maybe(20)) {
    const auto other = as(like(any(), type(x)), kU32);
    const auto both = b_.reduce({x, other}, {scalar(t), scalar(kU32)}, lambda(t), axis, mask);
    add(both[1]);
    r = both[0];
  } else {
    r = b_.reduce(maybe(50) ? ScalarOp::add : ScalarOp::max, x, axis, mask);
  }
  add(r);
  if (maybe(70)) add(b_.map(maybe(50) ? ScalarOp::sub : ScalarOp::min, x, r));
  if (maybe(20)) add(flat(r));
}

void RandomFunction::add_scan() {
  const auto x = computed(maybe(70) ? vector() : matrix());
  auto y = maybe(40) && !is_int(type(x).dtype) ? as(x, some_int()) : x;
  if (maybe(30)) y = as(mask_like(x), kU32);
  const auto t = type(y).dtype;
  const int rank = type(y).rank;
  if (rank == 2 && may_be_empty(type(y))) return;
  const auto axis = static_cast<std::int8_t>(rank == 1 ? ir::kAll : below(2));
  if (maybe(20)) {
    const auto other = as(like(any(), type(y)), kU32);
    const auto both = b_.scan({y, other}, {scalar(t), scalar(kU32)}, lambda(t), axis, maybe(40));
    add(both[0]);
    return add(both[1]);
  }
  const auto op = maybe(70) ? ScalarOp::add : ScalarOp::max;
  const auto init = maybe(30) ? scalar(t) : b_.identity(op, t);
  add(b_.scan({y}, {init}, b_.combiner(op), axis, maybe(40))[0]);
}

void RandomFunction::add_selection() {
  const auto x = vector();
  const auto mask = mask_like(x);
  const auto most = pool().upper_bound(size(x));
  const auto limit = maybe(40) ? smaller(most, 500) : HostExprId();
  const auto bound = limit.is_valid() ? limit : most;
  const auto selected = b_.nonzero(mask, b_.new_count("found", bound), limit);
  if (maybe(60)) add(selected.count);
  add(selected.index);
  const auto values = b_.gather(x, selected.index);
  add(values);
  if (maybe(30)) add(b_.map(ScalarOp::sub, as(values, kF32), as(selected.index, kF32)));
}

void RandomFunction::add_sort() {
  const auto x = maybe(70) ? vector() : matrix();
  if (type(x).rank == 2 && may_be_empty(type(x))) return;
  const bool descends = maybe(50);
  if (type(x).rank == 2) {
    const auto order = b_.argsort(x, descends, 1);
    add(order);
    return add(b_.gather_along(x, order, 1));
  }
  const auto order = b_.argsort(x, descends);
  add(order);
  add(b_.gather(x, order));
}

ValueId RandomFunction::distinct(ValueId base) {
  const auto len = type(base).dims[0];
  switch (below(5)) {
    case 0:
      return b_.random_index(smaller(len, 60), len, site(), iteration());
    case 1:
      return b_.iota(smaller(len, 60));
    case 2:
      return b_.map(ScalarOp::mod, scalar(kU32), size_u32(len));
    case 3: {
      const auto order = b_.argsort(like(vector(), ir::vector_type(kF32, len)), maybe(50));
      return maybe(50) ? order : b_.slice(order, pool().const_int(0), smaller(len, 30));
    }
    default:
      return b_.nonzero(mask_like(b_.iota(len)), b_.new_count("places", len)).index;
  }
}

void RandomFunction::add_scatter() {
  auto base = vector();
  if (may_be_empty(type(base))) return;
  if (maybe(30)) base = b_.fill(scalar(type(base).dtype), type(base));
  if (maybe(30)) base = b_.fill(b_.constant_int(kI32, 0), type(base));
  const int times = 1 + below(2);
  for (int i = 0; i < times; ++i) {
    const auto index = distinct(base);
    const auto t = type(base).dtype;
    const auto values = maybe(40) ? scalar(t) : as(like(any(), type(index)), t);
    const auto result = b_.scatter(base, index, values);
    if (maybe(20)) add(b_.map(ScalarOp::eq, as(base, kF32), as(result, kF32)));
    base = result;
    if (i == 0 && maybe(30)) add(base);
  }
  add(base);
}

void RandomFunction::add_row_scatter() {
  const auto base = matrix();
  if (may_be_empty(type(base))) return;
  const auto t = type(base).dtype;
  const auto index = distinct(base);
  if (pool().has_count(size(index))) return;
  const auto rows = b_.gather(base, index);
  add(b_.scatter(base, index, maybe(30) ? scalar(t) : as(like(any(), type(rows)), t)));
}

// x = e, x[i] = e for a state or other variable.
void RandomFunction::add_assignment() {
  if (variables_.empty() || depth_ > 0) return;
  auto& variable = variables_[static_cast<std::size_t>(below(static_cast<int>(variables_.size())))];
  const auto t = type(variable);
  if (maybe(40)) {
    variable = as(like(any(), t), t.dtype);
  } else if (maybe(60) && t.rank == 1) {
    const auto index = distinct(variable);
    const auto values = maybe(50) ? scalar(t.dtype) : as(like(any(), type(index)), t.dtype);
    variable = b_.scatter(variable, index, values);
  } else if (maybe(50)) {
    const auto now = floats(variable);
    variable = as(b_.map(ScalarOp::add, now, as(like(any(), t), type(now).dtype)), t.dtype);
  }
  if (maybe(60)) add(variable);
}

void RandomFunction::add_counting() {
  const auto x = vector();
  const auto bin = b_.map(ScalarOp::mod, as(x, kU32), b_.constant_int(kU32, 30));
  if (maybe(50)) {
    const auto mask = maybe(50) ? mask_like(x) : ValueId();
    return add(b_.histogram(bin, pool().const_int(1 + below(40)), mask));
  }
  const auto values = computed(like(any(), type(x)));
  add(b_.scatter_add(bin, values, pool().const_int(30)));
}

void RandomFunction::add_matrix() {
  const auto x = as(matrix(), kF32);
  const auto t = type(x);
  const auto cols = ir::constant_size(pool(), t.dims[1]);
  if (!cols || *cols > 8 || may_be_empty(t)) return;
  if (maybe(60)) return add(b_.matmul(b_.transpose(x), x));
  const auto other =
      as(like(any(), ir::matrix_type(kF32, t.dims[1], pool().const_int(1 + below(3)))), kF32);
  add(b_.matmul(x, other));
}

void RandomFunction::add_check() {
  const auto v = vector();
  if (may_be_empty(type(v))) return;
  switch (below(4)) {
    case 0: {
      const auto high = b_.reduce(ScalarOp::max, b_.iota(size(v)));
      return b_.check(b_.map(ScalarOp::lt, high, size_u32(size(v))), "iota is below its size");
    }
    case 1:
      return b_.check_index(indices(size(v), size(v)), size(v), "an index");
    case 2:
      return b_.check_unique(b_.random_index(smaller(size(v), 50), size(v), site()), size(v),
                             "an index repeats");
    default:
      return b_.check_host(pool().make(HostOp::Ge, pool().n(), pool().const_int(0)),
                           "n is negative");
  }
}

// Steps of a region, and values of the wanted types; what the region made is forgotten.
ir::ValueIds RandomFunction::inner(int num_steps, const std::vector<ir::Type>& types) {
  ++depth_;
  add_steps(num_steps);
  ir::ValueIds results;
  for (const auto& t : types) {
    const auto v = any();
    results.push_back(b_.fill(as(like(v, t), t.dtype), t));
  }
  --depth_;
  return results;
}

void RandomFunction::add_branch() {
  if (depth_ > 1) return;
  const auto c = mask_like(b_.constant(kF32, 0));
  std::vector<ir::Type> types{type(any())};
  if (maybe(60)) types.push_back(type(any()));
  for (const auto& t : types)
    if (may_be_empty(t)) return;
  const auto saved = values_;
  const auto body = [&] {
    values_ = saved;
    return inner(below(4), types);
  };
  const auto results = b_.if_else(c, body, body);
  values_ = saved;
  for (const auto v : results) add(v);
}

void RandomFunction::add_for() {
  if (depth_ > 1) return;
  ir::ValueIds inits{any()};
  while (inits.size() < 3 && maybe(60)) inits.push_back(any());
  std::vector<ir::Type> types;
  for (const auto v : inits) types.push_back(type(v));
  for (const auto& t : types)
    if (may_be_empty(t)) return;
  const auto saved = values_;
  const auto saved_iteration = iteration_;
  const auto results = b_.for_loop(
      pool().const_int(0),
      maybe(70) ? pool().const_int(below(4)) : pool().min(pool().n(), pool().const_int(2)), inits,
      [&](auto i, auto carried) {
        for (const auto v : carried) add(v);
        if (maybe(50)) add(i);
        iteration_ = i;
        if (carried.size() > 1 && maybe(20) && ir::types_agree(program_.info, types[0], types[1])) {
          auto swapped = ir::ValueIds(carried.begin(), carried.end());
          std::swap(swapped[0], swapped[1]);
          return swapped;
        }
        auto next = inner(1 + below(4), types);
        if (maybe(30)) next[0] = carried[0];
        return next;
      });
  iteration_ = saved_iteration;
  values_ = saved;
  for (const auto v : results) add(v);
}

void RandomFunction::add_while() {
  if (depth_ > 1) return;
  ir::ValueIds inits{computed(scalar(maybe(50) ? kF32 : kI32)), any()};
  std::vector<ir::Type> types{type(inits[0]), type(inits[1])};
  if (may_be_empty(types[1])) return;
  const auto saved = values_;
  const auto results = b_.while_loop(
      pool().const_int(1 + below(4)), inits,
      [&](auto carried) {
        values_ = saved;
        for (const auto v : carried) add(v);
        ++depth_;
        add_steps(below(2));
        const auto x = like(computed(any()), types[0]);
        const auto c = b_.map(ScalarOp::le, as(x, types[0].dtype), carried[0]);
        --depth_;
        return c;
      },
      [&](auto carried) {
        values_ = saved;
        for (const auto v : carried) add(v);
        return inner(1 + below(3), types);
      });
  values_ = saved;
  for (const auto v : results) add(v);
}

void RandomFunction::add_expanded() {
  if (!needs_passes_) return;
  const auto x = as(maybe(70) ? vector() : matrix(), kF32);
  const auto t = type(x);
  if (may_be_empty(t)) return;
  const bool is_vector = t.rank == 1;
  const auto axis = static_cast<std::int8_t>(is_vector ? ir::kAll : 1);
  switch (below(4)) {
    case 0: {
      const auto index = b_.top_k(x, smaller(t.dims[is_vector ? 0 : 1], 40), axis);
      add(index);
      return add(is_vector ? b_.gather(x, index) : b_.gather_along(x, index, 1));
    }
    case 1:
      return add(b_.kth_largest(x, smaller(t.dims[is_vector ? 0 : 1], 9), axis));
    case 2: {
      const auto y = b_.chunk(as(vector(), kF32), pool().const_int(1 + below(3)));
      return may_be_empty(type(y)) ? void() : add(b_.orthonormalize(y));
    }
    default: {
      const auto y = b_.chunk(as(vector(), kF32), pool().const_int(1 << below(5)));
      return may_be_empty(type(y)) ? void() : add(b_.hadamard(y));
    }
  }
}

}  // namespace cinch::codegen
