// Bodies of cost.h.
#include "codegen/kir/cost.h"

#include <utility>

#include "codegen/kir/builder.h"

namespace cinch::kir {
namespace {

const Instr* definition(const Kernel& kernel, ValueId value) {
  for (const Section& section : kernel.sections) {
    for (const Instr& instr : section.instrs) {
      for (ValueId result : instr.results) {
        if (result == value) return &instr;
      }
    }
  }
  return nullptr;
}

// Whether a value changes from group to group.
bool depends_on_group(const Kernel& kernel, ValueId value) {
  const Instr* instr = value ? definition(kernel, value) : nullptr;
  if (!instr) return false;
  if (instr->kind == InstrKind::group) return true;
  for (ValueId operand : instr->operands) {
    if (depends_on_group(kernel, operand)) return true;
  }
  return false;
}

ValueId operand(const Instr& instr, std::size_t index) {
  return index < instr.operands.size() ? instr.operands[index] : ValueId();
}

bool is_tile_or_constant_row(const KernelProgram& program, const Kernel& kernel,
                             std::uint8_t bits) {
  if (kernel.group_kind == GroupKind::Tile) return true;
  const HostExprPool& pool = program.info.exprs;
  if (!kernel.group_len || !pool.is_const(kernel.group_len)) return false;
  return pool.const_value(kernel.group_len).as_int() <= kOnChipBytes * 8 / bits;
}

class CostCounter {
 public:
  CostCounter(KernelProgram& program, const Kernel& kernel)
      : program_(program), pool_(program.info.exprs), kernel_(kernel) {
    bytes_.read = bytes_.written = pool_.const_int(0);
  }

  KernelBytes run() {
    for (std::size_t s = 0; s < kernel_.sections.size(); ++s) {
      const Section& section = kernel_.sections[s];
      for (std::size_t i = 0; i < section.instrs.size(); ++i) instruction(section, s, i);
    }
    return {pool_.upper_bound(bytes_.read), pool_.upper_bound(bytes_.written)};
  }

 private:
  // How often an instruction of this section runs.
  HostExprId times(const Section& section) {
    return section.kind == SectionKind::Elements ? kernel_.extent : kernel_.info.num_groups;
  }

  HostExprId bytes_of(BufferIndex buffer, HostExprId elems) {
    const std::uint8_t bits = program_.buffers[buffer].storage_bits;
    if (bits % 8 == 0) return pool_.mul(elems, pool_.const_int(bits / 8));
    return pool_.ceil_div(pool_.mul(elems, pool_.const_int(bits)), pool_.const_int(8));
  }
  HostExprId at_most_buffer(BufferIndex buffer, HostExprId elems) {
    return pool_.min(elems, program_.buffers[buffer].num_elems);
  }
  void read(BufferIndex buffer, HostExprId elems) {
    bytes_.read = pool_.add(bytes_.read, bytes_of(buffer, elems));
  }
  void write(BufferIndex buffer, HostExprId elems) {
    bytes_.written = pool_.add(bytes_.written, bytes_of(buffer, elems));
  }

  // A limit cuts off what lies beyond the array, so groups that lie side by side touch each element
  // once.
  HostExprId linear_elems(const Instr& instr, std::size_t base) {
    const bool is_cut =
        operand(instr, base + 1).is_valid() && depends_on_group(kernel_, operand(instr, base));
    return is_cut ? at_most_buffer(instr.buffers[0], kernel_.extent) : kernel_.extent;
  }

  // The host expression behind a uniform value, or the elements of the buffer that it counts.
  HostExprId count_expr(ValueId value, HostExprId otherwise) {
    const Instr* instr = definition(kernel_, value);
    if (instr && instr->kind == InstrKind::host_size) return program_.size_exprs[instr->index];
    if (instr && instr->kind == InstrKind::constant) {
      return pool_.const_int(static_cast<std::int64_t>(instr->bits));
    }
    return otherwise;
  }

  void finish(const Instr& instr) {
    for (BufferIndex buffer : instr.buffers) {
      const HostExprId all = program_.buffers[buffer].num_elems;
      if (instr.kind == InstrKind::finish_reduce) {
        read(buffer, count_expr(instr.operands[0], all));
      } else {
        const HostExprId rows = count_expr(instr.operands[0], {});
        const HostExprId len = count_expr(instr.operands[1], {});
        const HostExprId elems = rows && len ? pool_.mul(rows, len) : all;
        read(buffer, elems);
        write(buffer, elems);
      }
    }
  }

  void instruction(const Section& section, std::size_t s, std::size_t i) {
    const Instr& instr = section.instrs[i];
    switch (instr.kind) {
      case InstrKind::load_linear:
        if (is_counted_load(program_, kernel_, s, i)) {
          read(instr.buffers[0], linear_elems(instr, 0));
        }
        return;
      case InstrKind::load_at:
        if (section.kind != SectionKind::Kernel) read(instr.buffers[0], times(section));
        return;
      case InstrKind::store_linear:
        return write(instr.buffers[0], linear_elems(instr, 1));
      case InstrKind::store_at:
        if (section.kind == SectionKind::Kernel) return;
        return write(instr.buffers[0], at_most_buffer(instr.buffers[0], times(section)));
      case InstrKind::add_at:
        read(instr.buffers[0], times(section));
        return write(instr.buffers[0], times(section));
      case InstrKind::hist_add:
        return write(instr.buffers[0], pool_.const_int(static_cast<std::int64_t>(instr.bits)));
      case InstrKind::finish_reduce:
      case InstrKind::finish_scan:
        return finish(instr);
      case InstrKind::argsort_row:
        read(instr.buffers[0], kernel_.extent);
        return write(instr.buffers[1], kernel_.extent);
      default:
        return;
    }
  }

  KernelProgram& program_;
  HostExprPool& pool_;
  const Kernel& kernel_;
  KernelBytes bytes_;
};

// Sums steps; loops count their bound of iterations.
class EntryCounter {
 public:
  explicit EntryCounter(KernelProgram& program) : program_(program), pool_(program.info.exprs) {
    const HostExprId zero = pool_.const_int(0);
    bytes_ = {zero, zero, zero, zero};
  }
  EntryBytes run(const std::vector<rt::Step>& list) {
    steps(list, pool_.const_int(1));
    return bytes_;
  }

 private:
  void add(HostExprId& sum, HostExprId bytes, HostExprId times) {
    sum = pool_.add(sum, pool_.mul(bytes, times));
  }

  void launch(std::uint32_t index, HostExprId times) {
    const rt::KernelInfo& info = program_.kernels[index].info;
    add(bytes_.read, info.bytes_read, times);
    add(bytes_.written, info.bytes_written, times);
    if (info.role != rt::KernelRole::Sweep) return;
    add(bytes_.sweeps_read, info.bytes_read, times);
    add(bytes_.sweeps_written, info.bytes_written, times);
  }

  void steps(const std::vector<rt::Step>& list, HostExprId times) {
    for (const rt::Step& s : list) step(s, times);
  }

  void step(const rt::Step& s, HostExprId times) {
    switch (s.kind) {
      case rt::StepKind::Launch:
        return launch(s.index, times);
      case rt::StepKind::Copy:
        add(bytes_.read, size_of(s.index2), times);
        return add(bytes_.written, size_of(s.index), times);
      case rt::StepKind::Zero:
        return add(bytes_.written, size_of(s.index), times);
      case rt::StepKind::CheckHost:
        return;
      case rt::StepKind::If:
        steps(s.body, times);
        return steps(s.orelse, times);
      case rt::StepKind::While:
        // The condition is looked at once more than the body runs, unless the bound ends the loop.
        steps(s.cond, pool_.mul(times, s.expr));
        return steps(s.body, pool_.mul(times, s.expr));
      case rt::StepKind::For: {
        const HostExprId trips = pool_.max(pool_.sub(s.expr2, s.expr), pool_.const_int(0));
        return steps(s.body, pool_.mul(times, trips));
      }
    }
  }

  HostExprId size_of(BufferIndex buffer) {
    return pool_.upper_bound(program_.buffers[buffer].size_bytes);
  }

  KernelProgram& program_;
  HostExprPool& pool_;
  EntryBytes bytes_;
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
          operand(instrs[i], 0) == operand(asked, 0)) {
        return false;
      }
    }
  }
  return true;
}

KernelBytes kernel_bytes(KernelProgram& program, const Kernel& kernel) {
  return CostCounter(program, kernel).run();
}

void annotate_costs(KernelProgram& program) {
  for (Kernel& kernel : program.kernels) {
    const KernelBytes bytes = kernel_bytes(program, kernel);
    kernel.info.bytes_read = bytes.read;
    kernel.info.bytes_written = bytes.written;
  }
}

EntryBytes entry_bytes(KernelProgram& program, rt::EntryKind entry) {
  const rt::Entry& info = program.entries[static_cast<std::size_t>(entry)];
  return EntryCounter(program).run(info.steps);
}

}  // namespace cinch::kir
