// One kernel of a CPU program as text. Inside of the CPU emitter; cpu.h is the interface.
//
// The function consists of buffers and sizes; the kernel section; combiners and draw streams; the
// loop over groups, cut into phases (facts.h); and what the task reports at its end.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "codegen/emit/cpu.h"
#include "codegen/emit/cpu/kernel/elements.h"
#include "codegen/emit/cpu/kernel/instrs.h"
#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// The text of the kernel's function.
std::string emit_cpu_kernel(const kir::KernelProgram& program, const kir::Kernel& kernel,
                            const CpuOptions& options);

/// Prints the function's frame.
class CpuKernelEmitter : public CpuPrinter {
 public:
  explicit CpuKernelEmitter(CpuContext& cx);
  std::string emit();

 private:
  // ---- kernel.cpp ----
  void emit_head();
  void emit_extent();
  void emit_kernel_section();
  void note_histogram(const Instr& instr);
  void emit_task_state();
  void emit_tail();
  std::string size_text(HostExprId expr) const;

  // ---- kernel.cpp ----
  void emit_groups();
  void emit_plain_groups();
  void emit_chunked_groups();
  void emit_phase(std::size_t phase);
  void each_store(const CpuPhases::Phase& phase, void (CpuMemory::*emit)(const Instr&));
  void emit_look_back(const Instr& instr);
  void emit_group_values();
  void emit_piece(const CpuPhases::Piece& piece);

  // ---- bounds.cpp ----
  void emit_for_rows(std::size_t phase);

  CpuInstrs instrs_;
  CpuElements elements_;
  std::set<std::uint32_t> failures_;                     // messages of element-level fail_if
  std::map<rt::BufferIndex, std::uint64_t> histograms_;  // bins of each hist_add's buffer
  std::set<rt::BufferIndex> cells_;                      // of integers that are added in any order
};

}  // namespace cinch::codegen
