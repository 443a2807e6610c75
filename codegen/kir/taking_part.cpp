#include "codegen/kir/cost.h"

#include "codegen/kir/instr_info.h"

namespace cinch::kir {
namespace {

const Instr* definition(const Kernel& kernel, ValueId value) {
  if (!value) return nullptr;
  for (const Section& section : kernel.sections) {
    for (const Instr& instr : section.instrs) {
      for (ValueId result : instr.results) {
        if (result == value) return &instr;
      }
    }
  }
  return nullptr;
}

// Looks through conversions that keep a place or a length, which are below 2^32.
const Instr* unconverted(const Kernel& kernel, ValueId value) {
  const auto keeps = [](DType dtype) { return dtype == kU32 || dtype == kI64 || dtype == kU64; };
  const Instr* instr = definition(kernel, value);
  while (instr && instr->kind == InstrKind::convert && keeps(instr->dtype) &&
         keeps(instr->from_dtype)) {
    instr = definition(kernel, instr->operands[0]);
  }
  return instr;
}

bool is_scalar(const Instr* instr, ScalarOp op) {
  return instr && instr->kind == InstrKind::scalar && instr->scalar_op == op;
}

const Instr* scalar(const Kernel& kernel, ValueId value, ScalarOp op) {
  const Instr* instr = definition(kernel, value);
  return is_scalar(instr, op) ? instr : nullptr;
}

// The host expression d of op(group, d); invalid for anything else.
HostExprId of_group(KernelProgram& program, const Kernel& kernel, ValueId value, ScalarOp op) {
  const Instr* instr = scalar(kernel, value, op);
  if (!instr) return {};
  const Instr* group = definition(kernel, instr->operands[0]);
  const bool is_group = group && group->kind == InstrKind::group;
  return is_group ? host_value(program, kernel, instr->operands[1]) : HostExprId();
}

// The begin of groups that are pieces of rows: row * row length + place in the row. A row has
// `groups_per_row` groups. If all groups make one row, there is no row length.
struct GroupBase {
  HostExprId groups_per_row, row_len;
  ValueId offset;  // the place in the row
};

// (group mod T) * group length, or group * group length.
std::optional<GroupBase> place_in_row(KernelProgram& program, const Kernel& kernel, ValueId value) {
  if (of_group(program, kernel, value, ScalarOp::mul) == kernel.group_len) {
    return GroupBase{kernel.info.num_groups, {}, value};
  }
  const Instr* product = scalar(kernel, value, ScalarOp::mul);
  if (!product || host_value(program, kernel, product->operands[1]) != kernel.group_len) return {};
  const HostExprId groups = of_group(program, kernel, product->operands[0], ScalarOp::mod);
  if (!groups) return {};
  return GroupBase{groups, {}, value};
}

std::optional<GroupBase> group_base(KernelProgram& program, const Kernel& kernel, ValueId value) {
  if (const auto one_row = place_in_row(program, kernel, value)) {
    if (one_row->groups_per_row == kernel.info.num_groups) return one_row;
    return {};
  }
  const Instr* sum = scalar(kernel, value, ScalarOp::add);
  if (!sum) return {};
  const Instr* row = scalar(kernel, sum->operands[0], ScalarOp::mul);
  auto base = place_in_row(program, kernel, sum->operands[1]);
  if (!row || !base) return {};
  base->row_len = host_value(program, kernel, row->operands[1]);
  const HostExprId groups = of_group(program, kernel, row->operands[0], ScalarOp::div);
  if (!base->row_len || groups != base->groups_per_row) return {};
  return base;
}

// Is `limit` equal to `end` - `from`, or the minimum of that and other values?
bool ends_at(KernelProgram& program, const Kernel& kernel, ValueId limit, HostExprId end,
             ValueId from) {
  if (const Instr* least = scalar(kernel, limit, ScalarOp::min)) {
    return ends_at(program, kernel, least->operands[0], end, from) ||
           ends_at(program, kernel, least->operands[1], end, from);
  }
  const Instr* difference = scalar(kernel, limit, ScalarOp::sub);
  return difference && difference->operands[1] == from &&
         host_value(program, kernel, difference->operands[0]) == end;
}

// The places of the domain for which a predicate holds. An invalid end is the end of the domain.
struct Interval {
  HostExprId begin, end;
};

bool is_place(const Kernel& kernel, ValueId value) {
  const Instr* instr = unconverted(kernel, value);
  return instr && instr->kind == InstrKind::element;
}

std::optional<Interval> interval(KernelProgram& program, const Kernel& kernel, ValueId predicate) {
  HostExprPool& pool = program.info.exprs;
  const Instr* instr = definition(kernel, predicate);
  if (is_scalar(instr, ScalarOp::bit_and)) {
    const auto a = interval(program, kernel, instr->operands[0]);
    const auto b = interval(program, kernel, instr->operands[1]);
    if (!a || !b) return std::nullopt;
    const HostExprId end = a->end && b->end ? pool.min(a->end, b->end) : (a->end ? a->end : b->end);
    return Interval{pool.max(a->begin, b->begin), end};
  }
  const bool is_below = is_scalar(instr, ScalarOp::lt), is_from = is_scalar(instr, ScalarOp::ge);
  if ((!is_below && !is_from) || !is_place(kernel, instr->operands[0])) return std::nullopt;
  const HostExprId bound = host_value(program, kernel, instr->operands[1]);
  if (!bound) return std::nullopt;
  return is_below ? Interval{pool.const_int(0), bound} : Interval{bound, {}};
}

}  // namespace

HostExprId host_value(KernelProgram& program, const Kernel& kernel, ValueId value) {
  const Instr* instr = unconverted(kernel, value);
  if (!instr) return {};
  HostExprPool& pool = program.info.exprs;
  const ComputeType type = kernel.values[instr->results[0].index()].type;
  if (instr->kind == InstrKind::constant &&
      (type == ComputeType::U32 || type == ComputeType::I64)) {
    return pool.const_int(static_cast<std::int64_t>(instr->bits));
  }
  if (instr->kind != InstrKind::host_size) return {};
  const HostExprId size = program.size_exprs[instr->index];
  return pool.type(size) == HostType::Int ? size : HostExprId();
}

TakingPart linear_access(KernelProgram& program, const Kernel& kernel, const Instr& instr) {
  const ValueId limit = limit_of(instr);
  if (!limit) return {kernel.extent, true};
  const ValueId begin = base_of(instr);
  const auto groups = group_base(program, kernel, begin);
  if (!groups) return {kernel.extent, false};
  HostExprPool& pool = program.info.exprs;
  const HostExprId all = program.buffers[instr.buffers[0]].num_elems;
  const bool is_cut = ends_at(program, kernel, limit, all, begin);
  if (!groups->row_len) {
    return is_cut ? TakingPart{pool.min(kernel.extent, all), true}
                  : TakingPart{kernel.extent, false};
  }
  if (!ends_at(program, kernel, limit, groups->row_len, groups->offset)) {
    return {kernel.extent, false};
  }
  const HostExprId rows = pool.div(kernel.info.num_groups, groups->groups_per_row);
  const HostExprId elems = pool.mul(rows, groups->row_len);
  return {is_cut ? pool.min(elems, all) : elems, true};
}

TakingPart predicated_access(KernelProgram& program, const Kernel& kernel, ValueId predicate,
                             HostExprId times) {
  if (!predicate) return {times, true};
  const auto places = interval(program, kernel, predicate);
  if (!places) return {times, false};
  HostExprPool& pool = program.info.exprs;
  const HostExprId end = places->end ? pool.min(kernel.extent, places->end) : kernel.extent;
  const HostExprId zero = pool.const_int(0);
  if (places->begin == zero) return {end, true};  // a length
  return {pool.max(pool.sub(end, places->begin), zero), true};
}

}  // namespace cinch::kir
