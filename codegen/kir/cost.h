// What kernels read and write, as closed formulas of n, parameters and counts' bounds, from their
// instructions.
//
// Counted: accesses to buffers by element and group sections, and by finish instructions, in whole
// bytes (bits rounded up once per instruction). A second load_linear of the same elements in a
// kernel whose group stays on chip counts once. Not counted: kernel-level scalars, look-back
// states, local arrays. A predicated access counts as if every element took part, but stores never
// count more than their buffer holds.
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::kir {

struct KernelBytes {
  HostExprId read, written;
};

/// Adds nodes to the program's pool.
KernelBytes kernel_bytes(KernelProgram& program, const Kernel& kernel);

/// Sets KernelInfo::bytes_read and bytes_written of every kernel.
void annotate_costs(KernelProgram& program);

/// True where this load_linear counts: false if an earlier section of a kernel whose groups stay on
/// chip loads the same elements. Emitters that count accesses ask this too.
bool is_counted_load(const KernelProgram& program, const Kernel& kernel, std::size_t section,
                     std::size_t instr);

/// A group of at most this many bytes per buffer stays on chip between sections.
inline constexpr std::int64_t kOnChipBytes = 256 * 1024;

struct EntryBytes {
  HostExprId read, written;  // bytes of all steps of the entry, loops at their most
  HostExprId sweeps_read;    // of Sweep kernels alone
  HostExprId sweeps_written;
};
/// Totals of an entry: launches, zero fills and copies. `If` counts its larger branch sum (both, as
/// a bound); loops count their bound of iterations.
EntryBytes entry_bytes(KernelProgram& program, rt::EntryKind entry);

}  // namespace cinch::kir
