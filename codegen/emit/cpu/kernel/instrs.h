// Printers of random draws, and of any instruction by its kind.
#pragma once
#include <set>
#include <string>

#include "codegen/emit/cpu/kernel/memory.h"
#include "codegen/emit/cpu/kernel/printer.h"
#include "codegen/emit/cpu/kernel/reductions.h"
#include "codegen/emit/cpu/kernel/values.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Prints random draws. If the index runs with the elements, the words of a tile are drawn at once
/// into a stage. Otherwise each lane draws for itself.
class CpuDraws : public CpuPrinter {
 public:
  using CpuPrinter::CpuPrinter;
  /// Declares once what the draws of one site share.
  void need_stream(const Instr& instr);
  /// Prints draws to their stages, before the vector loop of a tile.
  void open_tile(const Instr& instr);
  void emit(const Instr& instr);

 private:
  std::string stream_name(const Instr& instr) const;
  std::string first_of_run(ValueId value) const;
  void emit_staged_int(const Instr& round);

  std::set<std::string> streams_done_;
};

/// Prints any instruction of a kernel, and what it needs around the elements of a tile. Owns the
/// printers of the families of instructions.
class CpuInstrs : public CpuPrinter {
 public:
  explicit CpuInstrs(CpuContext& cx);
  void emit(const Instr& instr);
  /// Prints what an instruction of a group or an element section needs before the loop over groups.
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
