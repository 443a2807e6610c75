#include <algorithm>
#include <map>

#include "codegen/kir/compute_type.h"
#include "codegen/kir/cost.h"
#include "runtime/core/check.h"
#include "runtime/core/sizes/host_expr.h"

namespace cinch::kir {
namespace {

bool is_tile_or_constant_row(const KernelProgram& program, const Kernel& kernel,
                             std::uint8_t bits) {
  if (kernel.group_kind == GroupKind::Tile) return true;
  const HostExprPool& pool = *program.info.exprs;
  if (!kernel.group_len || !pool.is_const(kernel.group_len)) return false;
  return pool.const_value(kernel.group_len).as_int() <= kOnChipBytes * 8 / bits;
}

// Bits that move in one direction: the certain minimum, and the maximum. Whole elements are counted
// in bytes to keep formulas short.
class Traffic {
 public:
  explicit Traffic(HostExprPool& pool) : pool_(pool) {
    least_.bytes = least_.bits = most_.bytes = most_.bits = pool.const_int(0);
  }

  /// Counts elements of `bits` bits each.
  void add(std::uint8_t bits, HostExprId most, HostExprId least) {
    add_to(most_, bits, most);
    add_to(least_, bits, least);
  }
  HostExprId most() { return pool_.upper_bound(total(most_)); }
  HostExprId least() { return total(least_); }

 private:
  struct Sum {
    HostExprId bytes, bits;
  };
  void add_to(Sum& sum, std::uint8_t bits, HostExprId elems) {
    if (bits % 8 == 0) {
      sum.bytes = pool_.add(sum.bytes, pool_.mul(elems, pool_.const_int(bits / 8)));
    } else {
      sum.bits = pool_.add(sum.bits, pool_.mul(elems, pool_.const_int(bits)));
    }
  }
  HostExprId total(const Sum& sum) {
    return pool_.add(sum.bytes, pool_.ceil_div(sum.bits, pool_.const_int(8)));
  }

  HostExprPool& pool_;
  Sum least_, most_;
};

// Bytes read and bytes written.
struct TwoWays {
  explicit TwoWays(HostExprPool& pool) : read(pool), written(pool) {}
  KernelBytes bytes() { return {read.most(), written.most(), read.least(), written.least()}; }
  Traffic read, written;
};

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

std::optional<Interval> interval(KernelProgram& program, const Kernel& kernel, ValueId predicate) {
  HostExprPool& pool = *program.info.exprs;
  const Instr* instr = definition(kernel, predicate);
  if (is_scalar(instr, ScalarOp::bit_and)) {
    const auto a = interval(program, kernel, instr->operands[0]);
    const auto b = interval(program, kernel, instr->operands[1]);
    if (!a || !b) return std::nullopt;
    const HostExprId end = a->end && b->end ? pool.min(a->end, b->end) : (a->end ? a->end : b->end);
    return Interval{pool.max(a->begin, b->begin), end};
  }
  const bool is_below = is_scalar(instr, ScalarOp::lt), is_from = is_scalar(instr, ScalarOp::ge);
  if (!is_below && !is_from) return std::nullopt;
  const Instr* place = unconverted(kernel, instr->operands[0]);
  if (!place || place->kind != InstrKind::element) return std::nullopt;
  const HostExprId bound = host_value(program, kernel, instr->operands[1]);
  if (!bound) return std::nullopt;
  return is_below ? Interval{pool.const_int(0), bound} : Interval{bound, {}};
}

// How many elements an access touches, as far as its instructions tell.
struct TakingPart {
  HostExprId most;          // elements
  bool is_certain = false;  // the data cannot change the number
};

// The elements that a load_linear or store_linear touches over all groups: the whole domain, or
// only those within the buffer if a limit cuts off the rest.
TakingPart linear_access(KernelProgram& program, const Kernel& kernel, const Instr& instr) {
  const ValueId limit = limit_of(instr);
  if (!limit) return {kernel.extent, true};
  const ValueId begin = base_of(instr);
  const auto groups = group_base(program, kernel, begin);
  if (!groups) return {kernel.extent, false};
  HostExprPool& pool = *program.info.exprs;
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

// The number of runs, of `times`, for which `predicate` holds (all if it is invalid). Understands
// predicates that bound the element's place in the domain: slices, joins, padding.
TakingPart predicated_access(KernelProgram& program, const Kernel& kernel, ValueId predicate,
                             HostExprId times) {
  if (!predicate) return {times, true};
  const auto places = interval(program, kernel, predicate);
  if (!places) return {times, false};
  HostExprPool& pool = *program.info.exprs;
  const HostExprId end = places->end ? pool.min(kernel.extent, places->end) : kernel.extent;
  const HostExprId zero = pool.const_int(0);
  if (places->begin == zero) return {end, true};  // a length
  return {pool.max(pool.sub(end, places->begin), zero), true};
}

class CostCounter {
 public:
  CostCounter(KernelProgram& program, const Kernel& kernel)
      : program_(program), pool_(*program.info.exprs), kernel_(kernel), all_(pool_) {
    for (std::size_t s = 0; s < kernel_.sections.size(); ++s) {
      const Section& section = kernel_.sections[s];
      for (std::size_t i = 0; i < section.instrs.size(); ++i) instruction(section, s, i);
    }
  }

  KernelBytes all() { return all_.bytes(); }
  std::vector<BufferBytes> by_buffer() {
    std::vector<BufferBytes> list;
    list.reserve(by_buffer_.size());
    for (auto& [buffer, ways] : by_buffer_) list.push_back({buffer, ways.bytes()});
    return list;
  }

 private:
  using Way = Traffic TwoWays::*;
  static constexpr Way kRead = &TwoWays::read, kWritten = &TwoWays::written;

  // How often an instruction of this section runs.
  HostExprId times(const Section& section) {
    return section.kind == SectionKind::Elements ? kernel_.extent : kernel_.info.num_groups;
  }

  // How many of these runs touch memory.
  TakingPart taking_part(const Section& section, ValueId predicate) {
    return predicated_access(program_, kernel_, predicate, times(section));
  }

  void add(Way way, BufferIndex buffer, std::uint8_t bits, HostExprId most, HostExprId least) {
    (all_.*way).add(bits, most, least);
    (by_buffer_.try_emplace(buffer, pool_).first->second.*way).add(bits, most, least);
  }
  void add(Way way, BufferIndex buffer, TakingPart elems) {
    const bool is_certain =
        elems.is_certain && !kernel_.extent_value && !pool_.has_count(elems.most);
    add(way, buffer, program_.buffers[buffer].storage_bits, elems.most,
        is_certain ? elems.most : pool_.const_int(0));
  }

  // Counts all that the buffers hold if only the device knows the number of elements.
  void finish(const Instr& instr) {
    const bool is_scan = instr.kind == InstrKind::finish_scan;
    const HostExprId first = host_value(program_, kernel_, instr.operands[0]);
    const HostExprId len =
        is_scan ? host_value(program_, kernel_, instr.operands[1]) : pool_.const_int(1);
    for (BufferIndex buffer : instr.buffers) {
      TakingPart elems{program_.buffers[buffer].num_elems, false};
      if (first && len) elems = {pool_.mul(first, len), true};
      add(kRead, buffer, elems);
      if (is_scan) add(kWritten, buffer, elems);
    }
  }

  void instruction(const Section& section, std::size_t s, std::size_t i) {
    const Instr& instr = section.instrs[i];
    switch (instr.kind) {
      case InstrKind::load_linear:
        if (!is_counted_load(program_, kernel_, s, i)) return;
        return add(kRead, instr.buffers[0], linear_access(program_, kernel_, instr));
      case InstrKind::load_at: {
        if (section.kind == SectionKind::Kernel) return;
        TakingPart elems = taking_part(section, predicate_of(instr));
        elems.is_certain = elems.is_certain && !is_for_selected(section);
        return add(kRead, instr.buffers[0], elems);
      }
      case InstrKind::store_linear:
        return add(kWritten, instr.buffers[0], linear_access(program_, kernel_, instr));
      case InstrKind::store_at:
        if (section.kind == SectionKind::Kernel) return;
        {
          TakingPart elems = taking_part(section, predicate_of(instr));
          elems.most = pool_.min(elems.most, program_.buffers[instr.buffers[0]].num_elems);
          return add(kWritten, instr.buffers[0], elems);
        }
      case InstrKind::add_at:
      case InstrKind::max_at:
        add(kRead, instr.buffers[0], taking_part(section, predicate_of(instr)));
        return add(kWritten, instr.buffers[0], taking_part(section, predicate_of(instr)));
      case InstrKind::hist_add: {
        // A kernel without groups is not launched.
        const HostExprId bins = pool_.const_int(static_cast<std::int64_t>(instr.bits));
        const HostExprId is_launched = pool_.min(kernel_.info.num_groups, pool_.const_int(1));
        return add(kWritten, instr.buffers[0], 32, bins, pool_.mul(bins, is_launched));
      }
      case InstrKind::finish_reduce:
      case InstrKind::finish_scan:
        return finish(instr);
      case InstrKind::local_product:  // the matrix stays in a cache after the first row
        return add(kRead, instr.buffers[0], program_.buffers[instr.buffers[0]].storage_bits,
                   program_.buffers[instr.buffers[0]].num_elems, pool_.const_int(0));
      case InstrKind::argsort_row:
        add(kRead, instr.buffers[0], {kernel_.extent, true});
        return add(kWritten, instr.buffers[1], {kernel_.extent, true});
      default:
        return;
    }
  }

  // Does the section do nothing but store selected elements? It may read for these alone.
  static bool is_for_selected(const Section& section) {
    const auto stores = [](const Instr& instr) { return instr.kind == InstrKind::store_at; };
    const auto fits = [&](const Instr& instr) {
      if (stores(instr)) return predicate_of(instr).is_valid();
      return !instr.results.empty() && instr.kind != InstrKind::reduce;
    };
    return std::ranges::any_of(section.instrs, stores) && std::ranges::all_of(section.instrs, fits);
  }

  KernelProgram& program_;
  HostExprPool& pool_;
  const Kernel& kernel_;
  TwoWays all_;
  std::map<BufferIndex, TwoWays> by_buffer_;
};

// Adds up the bytes of steps.
class EntryCounter {
 public:
  explicit EntryCounter(KernelProgram& program) : program_(program), pool_(*program.info.exprs) {}

  EntryBytes steps(const std::vector<rt::Step>& list) {
    EntryBytes sum = nothing();
    for (const rt::Step& s : list) sum = join(HostOp::Add, sum, step(s));
    return sum;
  }

 private:
  EntryBytes nothing() {
    const HostExprId zero = pool_.const_int(0);
    return {zero, zero, zero, zero, zero, zero};
  }

  EntryBytes join(HostOp most, const EntryBytes& a, const EntryBytes& b) {
    const HostOp least = most == HostOp::Max ? HostOp::Min : most;
    return {pool_.make(most, a.read, b.read),
            pool_.make(most, a.written, b.written),
            pool_.make(least, a.least_read, b.least_read),
            pool_.make(least, a.least_written, b.least_written),
            pool_.make(most, a.sweeps_read, b.sweeps_read),
            pool_.make(most, a.sweeps_written, b.sweeps_written)};
  }

  EntryBytes repeated(const EntryBytes& bytes, HostExprId most, HostExprId least) {
    return {pool_.mul(bytes.read, most),        pool_.mul(bytes.written, most),
            pool_.mul(bytes.least_read, least), pool_.mul(bytes.least_written, least),
            pool_.mul(bytes.sweeps_read, most), pool_.mul(bytes.sweeps_written, most)};
  }

  EntryBytes launch(std::uint32_t index) {
    const Kernel& kernel = program_.kernels[index];
    const KernelBytes bytes = kernel_bytes(program_, kernel);
    const bool is_sweep = kernel.info.role == rt::KernelRole::Sweep;
    const HostExprId zero = pool_.const_int(0);
    return {bytes.read,
            bytes.written,
            bytes.least_read,
            bytes.least_written,
            is_sweep ? bytes.read : zero,
            is_sweep ? bytes.written : zero};
  }

  // A fill or copy moves the whole buffer.
  EntryBytes move(HostExprId read, HostExprId written) {
    EntryBytes bytes = nothing();
    bytes.read = bytes.least_read = read;
    bytes.written = bytes.least_written = written;
    return bytes;
  }

  EntryBytes step(const rt::Step& s) {
    const HostExprId zero = pool_.const_int(0), one = pool_.const_int(1);
    switch (s.kind) {
      case rt::StepKind::Launch:
        return launch(s.index);
      case rt::StepKind::Copy:
      case rt::StepKind::Collective:
        return move(size_of(s.index2), size_of(s.index));
      case rt::StepKind::Zero:
        return move(zero, size_of(s.index));
      case rt::StepKind::CheckHost:
        return nothing();
      case rt::StepKind::If:
        return join(HostOp::Max, steps(s.body), steps(s.orelse));
      case rt::StepKind::While:
        return join(HostOp::Add, repeated(steps(s.cond), s.expr, pool_.clamp(s.expr, zero, one)),
                    repeated(steps(s.body), s.expr, zero));
      case rt::StepKind::For: {
        const HostExprId trips = pool_.max(pool_.sub(s.expr2, s.expr), zero);
        return repeated(steps(s.body), trips, trips);
      }
    }
    CINCH_BUG("a step of an unknown kind");
  }

  HostExprId size_of(BufferIndex buffer) {
    return pool_.upper_bound(program_.buffers[buffer].size_bytes);
  }

  KernelProgram& program_;
  HostExprPool& pool_;
};

}  // namespace

bool is_counted_load(const KernelProgram& program, const Kernel& kernel, std::size_t section,
                     std::size_t instr) {
  const Instr& asked = kernel.sections[section].instrs[instr];
  const BufferIndex buffer = asked.buffers[0];
  if (!is_tile_or_constant_row(program, kernel, program.buffers[buffer].storage_bits)) return true;
  for (std::size_t s = 0; s <= section; ++s) {
    const std::vector<Instr>& instrs = kernel.sections[s].instrs;
    const std::size_t end = s == section ? instr : instrs.size();
    for (std::size_t i = 0; i < end; ++i) {
      if (instrs[i].kind == InstrKind::load_linear && instrs[i].buffers[0] == buffer &&
          base_of(instrs[i]) == base_of(asked)) {
        return false;
      }
    }
  }
  return true;
}

KernelBytes kernel_bytes(KernelProgram& program, const Kernel& kernel) {
  return CostCounter(program, kernel).all();
}

std::vector<BufferBytes> buffer_bytes(KernelProgram& program, const Kernel& kernel) {
  return CostCounter(program, kernel).by_buffer();
}

void annotate_costs(KernelProgram& program) {
  for (Kernel& kernel : program.kernels) {
    const KernelBytes bytes = kernel_bytes(program, kernel);
    kernel.info.bytes_read = bytes.read;
    kernel.info.bytes_written = bytes.written;
    note_tile_use(program, kernel);
  }
}

EntryBytes entry_bytes(KernelProgram& program, rt::EntryKind entry) {
  const rt::Entry& info = program.entries[static_cast<std::size_t>(entry)];
  return EntryCounter(program).steps(info.steps);
}

HostExprId host_value(KernelProgram& program, const Kernel& kernel, ValueId value) {
  const Instr* instr = unconverted(kernel, value);
  if (!instr) return {};
  HostExprPool& pool = *program.info.exprs;
  const ComputeType type = kernel.values[instr->results[0].index()].type;
  if (instr->kind == InstrKind::constant &&
      (type == ComputeType::U32 || type == ComputeType::I64)) {
    return pool.const_int(static_cast<std::int64_t>(instr->bits));
  }
  if (instr->kind != InstrKind::host_size) return {};
  const HostExprId size = program.size_exprs[instr->index];
  return pool.type(size) == HostType::Int ? size : HostExprId();
}

}  // namespace cinch::kir
