// Prints any instruction of a kernel, by its kind, and what must stand around a tile's elements for
// it. Owns the printers of the families of instructions.
#pragma once
#include "codegen/emit/cpu/kernel/draws.h"
#include "codegen/emit/cpu/kernel/memory.h"
#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/emit/cpu/kernel/reductions.h"
#include "codegen/emit/cpu/kernel/values.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CpuInstrs : public CpuPrinter {
 public:
  explicit CpuInstrs(CpuContext& cx);
  void emit(const Instr& instr);
  /// What an instruction of a group or an element section needs before the loop over groups.
  void prepare(const Instr& instr);
  void open_tile(const Instr& instr);
  void close_tile(const Instr& instr);
  CpuMemory& memory() { return memory_; }
  CpuReductions& reductions() { return reductions_; }

 private:
  void emit_status(const Instr& instr);
  void emit_local(const Instr& instr);

  CpuValues values_;
  CpuMemory memory_;
  CpuReductions reductions_;
  CpuDraws draws_;
};

}  // namespace cinch::codegen
