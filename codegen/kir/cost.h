// The bytes that kernels read and write, as closed formulas of n, parameters and bounds of counts.
// The formulas follow from the instructions. Images that count accesses (codegen/emit) must count
// the same bytes; tests compare both.
//
// Counted: accesses to buffers by element and group sections and by finish instructions, in bytes.
// The bits of packed buffers are rounded up once per launch. If a group stays on chip, a second
// load_linear of the same elements in the kernel counts nothing. The bins of a histogram count
// once. Not counted: kernel-level scalars, look-back states, local arrays.
//
// If the data decides, there are two formulas. The maximum assumes that every predicate is true and
// every count is at its bound, but that stores never exceed their buffer. The minimum assumes that
// every predicate is false and every count is zero. Both are equal, so the figure is exact, if a
// kernel has no predicated access, no element that depends on a count, and no limit except its
// buffer's end.
#pragma once
#include "codegen/kir/kir.h"

namespace cinch::kir {

struct KernelBytes {
  HostExprId read, written;              // the maximum
  HostExprId least_read, least_written;  // the minimum
};

/// Adds nodes to the program's pool.
KernelBytes kernel_bytes(KernelProgram& program, const Kernel& kernel);

/// The same for one buffer. Packed bits are rounded up in each buffer, so the sum over all buffers
/// may exceed kernel_bytes by a few bytes.
struct BufferBytes {
  BufferIndex buffer = 0;
  KernelBytes bytes;
};
/// The buffers that count, in ascending order. Adds nodes to the program's pool.
std::vector<BufferBytes> buffer_bytes(KernelProgram& program, const Kernel& kernel);

/// Sets KernelInfo::bytes_read and bytes_written of every kernel to the maximum, and its `tiled`
/// and what belongs to that.
void annotate_costs(KernelProgram& program);
/// The latter of one kernel of the program.
void note_tile_use(const KernelProgram& program, Kernel& kernel);

/// Does this load_linear count? It does not if an earlier section of a kernel whose groups stay on
/// chip loads the same elements. Emitters that count accesses ask this, too.
bool is_counted_load(const KernelProgram& program, const Kernel& kernel, std::size_t section,
                     std::size_t instr);

/// A group of at most this many bytes per buffer stays on chip between sections.
inline constexpr std::int64_t kOnChipBytes = std::int64_t{256} * 1024;

struct EntryBytes {
  HostExprId read, written;  // the maximum over all steps of the entry
  HostExprId least_read, least_written;
  HostExprId sweeps_read;  // the maximum over Sweep kernels
  HostExprId sweeps_written;
};
/// Totals of an entry: launches, zero fills and copies. The maximum takes the larger branch of an
/// `If`, and the bound of iterations of a `While`. The minimum takes the smaller branch, and the
/// condition once.
EntryBytes entry_bytes(KernelProgram& program, rt::EntryKind entry);

/// The host expression behind a uniform value: a host size or a constant, possibly converted.
/// Invalid if only the device knows the value.
HostExprId host_value(KernelProgram& program, const Kernel& kernel, ValueId value);

}  // namespace cinch::kir
