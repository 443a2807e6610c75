// What kernels read and write, as closed formulas of n, parameters and counts' bounds, from their
// instructions. Images that count accesses (codegen/emit) count the same: tests compare.
//
// Counted: accesses to buffers by element and group sections, and by finish instructions, in bytes
// (the bits of packed buffers rounded up once per launch). A second load_linear of the same
// elements in a kernel whose group stays on chip counts once; the bins of a histogram count once.
// Not counted: kernel-level scalars, look-back states, local arrays.
//
// Where the data decides there are two formulas. The most: every predicate true, every count at its
// bound, but stores never more than their buffer holds. The least: every predicate false, every
// count zero. Both are the same where a kernel has no predicated access, no element that a count
// lets take part, and no limit but its buffer's end: then the figure is exact.
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::kir {

struct KernelBytes {
  HostExprId read, written;              // the most
  HostExprId least_read, least_written;  // never above them
};

/// Adds nodes to the program's pool.
KernelBytes kernel_bytes(KernelProgram& program, const Kernel& kernel);

/// The same of one buffer. Packed bits are rounded up in each buffer, so that all buffers together
/// may be some bytes more than kernel_bytes.
struct BufferBytes {
  BufferIndex buffer = 0;
  KernelBytes bytes;
};
/// In ascending order of buffers, those alone that are counted. Adds nodes to the program's pool.
std::vector<BufferBytes> buffer_bytes(KernelProgram& program, const Kernel& kernel);

/// Sets KernelInfo::bytes_read and bytes_written of every kernel: the most.
void annotate_costs(KernelProgram& program);

/// True where this load_linear counts: false if an earlier section of a kernel whose groups stay on
/// chip loads the same elements. Emitters that count accesses ask this too.
bool is_counted_load(const KernelProgram& program, const Kernel& kernel, std::size_t section,
                     std::size_t instr);

/// A group of at most this many bytes per buffer stays on chip between sections.
inline constexpr std::int64_t kOnChipBytes = std::int64_t{256} * 1024;

struct EntryBytes {
  HostExprId read, written;  // the most that all steps of the entry move
  HostExprId least_read, least_written;
  HostExprId sweeps_read;  // the most, of Sweep kernels alone
  HostExprId sweeps_written;
};
/// Totals of an entry: launches, zero fills and copies. The most: `If` counts its larger branch,
/// `While` its bound of iterations. The least: the smaller branch, the condition once.
EntryBytes entry_bytes(KernelProgram& program, rt::EntryKind entry);

// ---- how many elements an access touches, as far as its instructions tell (taking_part.cpp) ----

struct TakingPart {
  HostExprId most;          // elements
  bool is_certain = false;  // that many whatever the data is
};

/// The host expression behind a uniform value: a host size or a constant, converted or not. Invalid
/// where only the device knows it.
HostExprId host_value(KernelProgram& program, const Kernel& kernel, ValueId value);

/// Elements of load_linear or store_linear over all groups: all of the domain, or those within the
/// buffer where a limit cuts off what lies beyond it.
TakingPart linear_access(KernelProgram& program, const Kernel& kernel, const Instr& instr);

/// Of `times` runs of an instruction those for which `predicate` (may be invalid: all) holds. It is
/// understood where it bounds the element's place in the domain: slices, joins, what is padded.
TakingPart predicated_access(KernelProgram& program, const Kernel& kernel, ValueId predicate,
                             HostExprId times);

}  // namespace cinch::kir
