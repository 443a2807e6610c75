#include <algorithm>
#include <bit>

#include "codegen/kir/builder.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
ValueBuilder::ValueBuilder(KernelProgram& program, std::string symbol, GroupKind group_kind,
                           rt::KernelRole role)
    : program_(program) {
  HostExprPool& pool = *program_.info.exprs;
  kernel_.info.symbol = std::move(symbol);
  kernel_.info.role = role;
  kernel_.info.num_groups = pool.const_int(1);
  kernel_.group_kind = group_kind;
  kernel_.extent = pool.const_int(1);
  kernel_.group_len = pool.const_int(group_kind == GroupKind::Tile ? kTileElems : 1);
  kernel_.sections.push_back({SectionKind::Kernel, {}});
}

void ValueBuilder::set_extent(HostExprId extent) {
  HostExprPool& pool = *program_.info.exprs;
  kernel_.extent = extent;
  kernel_.info.num_groups = pool.ceil_div(extent, pool.const_int(kTileElems));
}

void ValueBuilder::set_rows(HostExprId rows, HostExprId len) {
  kernel_.extent = program_.info.exprs->mul(rows, len);
  kernel_.group_len = len;
  kernel_.info.num_groups = rows;
}

void ValueBuilder::group() {
  if (kernel_.sections.back().kind != SectionKind::Group) {
    kernel_.sections.push_back({SectionKind::Group, {}});
  }
  current_ = kernel_.sections.size() - 1;
}

void ValueBuilder::elements() {
  kernel_.sections.push_back({SectionKind::Elements, {}});
  current_ = kernel_.sections.size() - 1;
  element_leaves_.clear();
}

ValueId ValueBuilder::in_kernel(const std::function<ValueId()>& make) {
  const std::size_t saved = std::exchange(current_, 0);
  std::vector<Instr>* body = std::exchange(combiner_body_, nullptr);
  const ValueId value = make();
  current_ = saved;
  combiner_body_ = body;
  return value;
}

ValueId ValueBuilder::in_group(const std::function<ValueId()>& make) {
  const std::size_t saved = current_;
  std::vector<Instr>* body = std::exchange(combiner_body_, nullptr);
  while (kernel_.sections[current_].kind == SectionKind::Elements) --current_;
  CINCH_CHECK(kernel_.sections[current_].kind == SectionKind::Group, "no group section here");
  const ValueId value = make();
  current_ = saved;
  combiner_body_ = body;
  return value;
}

ValueId ValueBuilder::new_value(ComputeType type) {
  kernel_.values.push_back({type, {}});
  return ValueId(kernel_.values.size() - 1);
}

void ValueBuilder::emit(Instr instr) {
  auto& body = combiner_body_ ? *combiner_body_ : kernel_.sections[current_].instrs;
  body.push_back(std::move(instr));
}

ValueId ValueBuilder::emit(Instr instr, ComputeType result) {
  const ValueId value = new_value(result);
  instr.results = {value};
  emit(std::move(instr));
  return value;
}

ValueId ValueBuilder::constant(ComputeType type, std::uint64_t bits) {
  ValueId& known = constants_[{type, bits}];
  if (!known) {
    known = in_kernel([&] { return emit({.kind = InstrKind::constant, .bits = bits}, type); });
  }
  return known;
}

ValueId ValueBuilder::const_i32(std::int32_t value) {
  return constant(ComputeType::I32, static_cast<std::uint64_t>(static_cast<std::int64_t>(value)));
}
ValueId ValueBuilder::const_i64(std::int64_t value) {
  return constant(ComputeType::I64, static_cast<std::uint64_t>(value));
}
ValueId ValueBuilder::const_f32(float value) {
  return constant(ComputeType::F32, std::bit_cast<std::uint32_t>(value));
}
ValueId ValueBuilder::const_f64(double value) {
  return constant(ComputeType::F64, std::bit_cast<std::uint64_t>(value));
}

ValueId ValueBuilder::identity(ScalarOp op, ComputeType type) {
  return constant(type, identity_bits(op, type));
}

ValueId ValueBuilder::param(std::uint32_t index) {
  ValueId& known = params_[index];
  if (!known) {
    CINCH_CHECK(index < program_.info.params.size(), "no such parameter");
    const ComputeType type = compute_type(program_.info.params[index].dtype);
    known = in_kernel([&] { return emit({.kind = InstrKind::param, .index = index}, type); });
    kernel_.values[known.index()].name = program_.info.params[index].name;
  }
  return known;
}

namespace {
// By HostType.
constexpr ComputeType kHostTypes[] = {ComputeType::I64, ComputeType::F32, ComputeType::F64,
                                      ComputeType::Bool};

// Drops absent operands at the end. An absent operand in the middle stays as an invalid id.
std::vector<ValueId> trimmed(std::vector<ValueId> operands) {
  while (!operands.empty() && !operands.back()) operands.pop_back();
  return operands;
}

void declare(std::vector<Touch>& touches, Touch touch) {
  if (std::ranges::find(touches, touch) == touches.end()) touches.push_back(touch);
}

}  // namespace

ValueId ValueBuilder::host_size(HostExprId expr) {
  const HostExprPool& pool = *program_.info.exprs;
  const ComputeType type = kHostTypes[static_cast<std::size_t>(pool.type(expr))];
  if (pool.is_const(expr)) return constant(type, pool.const_value(expr).bits);
  const std::uint32_t index = intern_size(program_, expr);
  ValueId& known = sizes_[index];
  if (!known) {
    known = in_kernel([&] { return emit({.kind = InstrKind::host_size, .index = index}, type); });
  }
  return known;
}

// Group leaves are at the head of a group section, in front of all instructions that could use
// them.
ValueId ValueBuilder::memoised_group(InstrKind kind) {
  ValueId& known = group_leaves_[kind];
  if (known) return known;
  if (kernel_.sections.size() < 2 || kernel_.sections[1].kind != SectionKind::Group) {
    kernel_.sections.insert(kernel_.sections.begin() + 1, {SectionKind::Group, {}});
    if (current_ >= 1) ++current_;
  }
  known = new_value(ComputeType::I64);
  auto& head = kernel_.sections[1].instrs;
  head.insert(head.begin(), Instr{.kind = kind, .results = {known}});
  return known;
}

ValueId ValueBuilder::group_index() {
  return memoised_group(InstrKind::group);
}
ValueId ValueBuilder::group_len() {
  return memoised_group(InstrKind::group_len);
}

ValueId ValueBuilder::group_base() {
  if (group_base_) return group_base_;
  const ValueId group = group_index();
  const ValueId len = host_size(kernel_.group_len);
  group_base_ = new_value(ComputeType::I64);
  Instr instr{.kind = InstrKind::scalar,
              .operands = {group, len},
              .results = {group_base_},
              .scalar_op = ScalarOp::mul,
              .dtype = kI64};
  auto& head = kernel_.sections[1].instrs;
  const auto at = std::find_if(head.begin(), head.end(),
                               [&](const Instr& i) { return i.kind == InstrKind::group; });
  head.insert(at + 1, std::move(instr));
  named(group_base_, "base");
  return group_base_;
}

ValueId ValueBuilder::memoised_element(InstrKind kind) {
  ValueId& known = element_leaves_[kind];
  if (known) return known;
  CINCH_CHECK(current() == SectionKind::Elements, "an element leaf outside an element section");
  known = new_value(ComputeType::U32);
  auto& head = kernel_.sections[current_].instrs;
  head.insert(head.begin(), Instr{.kind = kind, .results = {known}});
  return known;
}

ValueId ValueBuilder::column() {
  return memoised_element(InstrKind::column);
}
ValueId ValueBuilder::element() {
  return memoised_element(InstrKind::element);
}

ValueId ValueBuilder::scalar(ScalarOp op, std::vector<ValueId> operands,
                             std::optional<DType> dtype) {
  const ScalarOpInfo& info = scalar_op_info(op);
  CINCH_CHECK(static_cast<int>(operands.size()) == info.arity,
              "wrong number of operands of " + std::string(info.name));
  const ComputeType same = type(operands[op == ScalarOp::select ? 1 : 0]);
  const ComputeType result = info.result == ScalarResult::Bool  ? ComputeType::Bool
                             : info.result == ScalarResult::U32 ? ComputeType::U32
                                                                : same;
  return emit({.kind = InstrKind::scalar,
               .operands = std::move(operands),
               .scalar_op = op,
               .dtype = dtype ? *dtype : dtype_of(same)},
              result);
}

ValueId ValueBuilder::convert(ValueId value, DType from, DType to) {
  if (from == to) return value;
  return emit({.kind = InstrKind::convert, .operands = {value}, .dtype = to, .from_dtype = from},
              compute_type(to));
}

ValueId ValueBuilder::convert(ValueId value, ComputeType to) {
  return convert(value, dtype_of(type(value)), dtype_of(to));
}

ValueId ValueBuilder::bitcast(ValueId value, DType from, DType to) {
  if (from == to) return value;
  return emit({.kind = InstrKind::bitcast, .operands = {value}, .dtype = to, .from_dtype = from},
              compute_type(to));
}

ValueId ValueBuilder::call_extern(std::uint32_t index, std::vector<ValueId> operands) {
  return emit({.kind = InstrKind::call_extern, .operands = std::move(operands), .index = index},
              compute_type(program_.info.externs[index].result));
}

ValueId ValueBuilder::named(ValueId value, std::string name) {
  kernel_.values[value.index()].name = std::move(name);
  return value;
}

std::uint32_t KernelBuilder::finish() {
  const HostExprPool& pool = *program_.info.exprs;
  for (HostExprId size : {kernel_.extent, kernel_.group_len, kernel_.info.num_groups}) {
    if (!pool.is_const(size)) intern_size(program_, size);
  }
  program_.kernels.push_back(std::move(kernel_));
  return static_cast<std::uint32_t>(program_.kernels.size() - 1);
}

void KernelBuilder::reads(BufferIndex buffer, Version version) {
  declare(kernel_.reads, {buffer, version});
}

void KernelBuilder::writes(BufferIndex buffer, Version version) {
  declare(kernel_.writes, {buffer, version});
}

ValueId KernelBuilder::load_linear(BufferIndex buffer, ValueId base, ValueId limit) {
  return emit(
      {.kind = InstrKind::load_linear, .operands = trimmed({base, limit}), .buffers = {buffer}},
      compute_type(program_.buffers.at(buffer).dtype));
}

ValueId KernelBuilder::load_at(BufferIndex buffer, ValueId index, ValueId pred) {
  return emit({.kind = InstrKind::load_at, .operands = trimmed({index, pred}), .buffers = {buffer}},
              compute_type(program_.buffers.at(buffer).dtype));
}

void KernelBuilder::store_linear(BufferIndex buffer, ValueId value, ValueId base, ValueId limit) {
  emit({.kind = InstrKind::store_linear,
        .operands = trimmed({value, base, limit}),
        .buffers = {buffer}});
}

void KernelBuilder::store_at(BufferIndex buffer, ValueId index, ValueId value, ValueId pred) {
  emit({.kind = InstrKind::store_at,
        .operands = trimmed({index, value, pred}),
        .buffers = {buffer}});
}

void KernelBuilder::add_at(BufferIndex buffer, ValueId index, ValueId value, ValueId pred) {
  kernel_.info.is_sequential |= !adds_in_any_order(program_.buffers[buffer]);
  emit({.kind = InstrKind::add_at, .operands = trimmed({index, value, pred}), .buffers = {buffer}});
}

void KernelBuilder::max_at(BufferIndex buffer, ValueId index, ValueId value, ValueId pred) {
  emit({.kind = InstrKind::max_at, .operands = trimmed({index, value, pred}), .buffers = {buffer}});
}

void KernelBuilder::hist_add(BufferIndex buffer, ValueId bin, std::uint64_t num_bins,
                             ValueId pred) {
  emit({.kind = InstrKind::hist_add,
        .operands = trimmed({bin, pred}),
        .bits = num_bins,
        .buffers = {buffer}});
}

std::uint32_t KernelBuilder::combiner(ScalarOp op) {
  auto& combiners = kernel_.combiners;
  for (std::size_t i = 0; i < combiners.size(); ++i) {
    if (combiners[i].op == op) return static_cast<std::uint32_t>(i);
  }
  combiners.push_back({.op = op});
  return static_cast<std::uint32_t>(combiners.size() - 1);
}

std::uint32_t KernelBuilder::combiner(const std::vector<ComputeType>& types, const Join& join) {
  Combiner made;
  for (int side = 0; side < 2; ++side) {
    for (ComputeType type : types) made.args.push_back(new_value(type));
  }
  const std::span<const ValueId> args(made.args);
  std::vector<Instr>* saved = std::exchange(combiner_body_, &made.body);
  made.results = join(args.first(types.size()), args.last(types.size()));
  combiner_body_ = saved;
  kernel_.combiners.push_back(std::move(made));
  return static_cast<std::uint32_t>(kernel_.combiners.size() - 1);
}

std::vector<ValueId> KernelBuilder::reduce(const std::vector<ValueId>& values,
                                           std::uint32_t combiner, ValueId pred) {
  Instr instr{.kind = InstrKind::reduce, .operands = values};
  if (pred) instr.operands.push_back(pred);
  instr.combiner = combiner;
  for (ValueId value : values) instr.results.push_back(new_value(type(value)));
  if (!kernel_.combiners.at(combiner).op) {
    instr.results.push_back(new_value(ComputeType::Bool));
  }
  std::vector<ValueId> results = instr.results;
  emit(std::move(instr));
  return results;
}

KernelBuilder::RunningSum KernelBuilder::running_sum(ValueId value, bool exclusive) {
  Instr instr{.kind = InstrKind::running_sum, .operands = {value}, .exclusive = exclusive};
  const ComputeType of = type(value) == ComputeType::Bool ? ComputeType::U32 : type(value);
  const RunningSum sum{new_value(of), new_value(of)};
  instr.results = {sum.value, sum.total};
  emit(std::move(instr));
  return sum;
}

ValueId KernelBuilder::look_back(ValueId total, BufferIndex state) {
  kernel_.info.is_ordered = true;
  return emit({.kind = InstrKind::look_back, .operands = {total}, .buffers = {state}}, type(total));
}

std::vector<ValueId> KernelBuilder::finish_reduce(ValueId count, std::vector<BufferIndex> partials,
                                                  std::uint32_t combiner) {
  Instr instr{.kind = InstrKind::finish_reduce, .operands = {count}};
  const bool has_flag = !kernel_.combiners.at(combiner).op;
  for (std::size_t i = 0; i < partials.size(); ++i) {
    const bool is_flag = has_flag && i + 1 == partials.size();
    const ComputeType type =
        is_flag ? ComputeType::Bool : compute_type(program_.buffers.at(partials[i]).dtype);
    instr.results.push_back(new_value(type));
  }
  instr.buffers = std::move(partials);
  instr.combiner = combiner;
  std::vector<ValueId> results = instr.results;
  emit(std::move(instr));
  return results;
}

void KernelBuilder::finish_scan(ValueId rows, ValueId len, std::vector<BufferIndex> buffers,
                                std::uint32_t combiner) {
  emit({.kind = InstrKind::finish_scan,
        .operands = {rows, len},
        .combiner = combiner,
        .buffers = std::move(buffers)});
}

std::uint32_t KernelBuilder::add_local(ComputeType type) {
  kernel_.locals.push_back({type});
  return static_cast<std::uint32_t>(kernel_.locals.size() - 1);
}

void KernelBuilder::local_store(std::uint32_t local, ValueId value) {
  emit({.kind = InstrKind::local_store, .operands = {value}, .index = local});
}

ValueId KernelBuilder::local_load(std::uint32_t local) {
  return emit({.kind = InstrKind::local_load, .index = local}, kernel_.locals.at(local).type);
}

void KernelBuilder::local_scan(std::uint32_t first, std::uint32_t combiner) {
  emit({.kind = InstrKind::local_scan, .index = first, .combiner = combiner});
}

void KernelBuilder::local_butterflies(std::uint32_t local) {
  emit({.kind = InstrKind::local_butterflies, .index = local});
}

void KernelBuilder::local_largest(std::uint32_t local, ValueId k) {
  emit({.kind = InstrKind::local_largest, .operands = {k}, .index = local});
}

void KernelBuilder::local_product(std::uint32_t from, BufferIndex matrix) {
  emit({.kind = InstrKind::local_product, .index = from, .buffers = {matrix}});
}

ValueId KernelBuilder::local_last(std::uint32_t local) {
  return emit({.kind = InstrKind::local_last, .index = local}, kernel_.locals.at(local).type);
}

ValueId KernelBuilder::local_previous(std::uint32_t local, ValueId before_first) {
  return emit({.kind = InstrKind::local_previous, .operands = {before_first}, .index = local},
              kernel_.locals.at(local).type);
}

void KernelBuilder::argsort_row(ValueId begin, ValueId len, ArgsortBuffers buffers, bool descending,
                                std::uint32_t front) {
  emit({.kind = InstrKind::argsort_row,
        .operands = {begin, len},
        .index = front,
        .buffers = {buffers.keys, buffers.order, buffers.scratch},
        .descending = descending});
}

ValueId KernelBuilder::draw_instr(InstrKind kind, DrawSite draw, std::vector<ValueId> operands,
                                  ValueId iteration, ComputeType result) {
  if (iteration) operands.push_back(iteration);
  return emit({.kind = kind, .operands = std::move(operands), .draw = draw}, result);
}

ValueId KernelBuilder::random(DrawSite draw, ValueId index, ValueId iteration) {
  return draw_instr(InstrKind::random, draw, {index}, iteration, ComputeType::F32);
}
ValueId KernelBuilder::random_bits(DrawSite draw, ValueId index, ValueId iteration) {
  return draw_instr(InstrKind::random_bits, draw, {index}, iteration, ComputeType::U32);
}
ValueId KernelBuilder::normal(DrawSite draw, ValueId index, ValueId iteration) {
  return draw_instr(InstrKind::normal, draw, {index}, iteration, ComputeType::F32);
}
ValueId KernelBuilder::random_index(DrawSite draw, ValueId index, ValueId size, ValueId iteration) {
  return draw_instr(InstrKind::random_index, draw, {index, size}, iteration, ComputeType::U32);
}
ValueId KernelBuilder::stochastic_round(DrawSite draw, ValueId x, ValueId index,
                                        ValueId iteration) {
  return draw_instr(InstrKind::stochastic_round, draw, {x, index}, iteration, type(x));
}

void KernelBuilder::flag_nonfinite(ValueId x) {
  emit({.kind = InstrKind::flag_nonfinite, .operands = {x}});
}

void KernelBuilder::fail_if(ValueId pred, const std::string& message) {
  emit(
      {.kind = InstrKind::fail_if, .operands = {pred}, .index = intern_message(program_, message)});
}

}  // namespace cinch::kir
