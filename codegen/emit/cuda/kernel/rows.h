// Prints the part of an element section that takes tiles of whole rows, without masks, several rows
// at a time: their loads are on their way together, and a block of random words serves the lanes
// that share it.
#pragma once
#include <cstddef>
#include <set>
#include <string>

#include "codegen/emit/cuda/kernel/element_instrs.h"
#include "codegen/emit/cuda/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CudaRows : public CudaPrinter {
 public:
  CudaRows(CudaContext& cx, CudaElementInstrs& instrs, CudaDraws& draws)
      : CudaPrinter(cx), instrs_(instrs), draws_(draws) {}
  /// Opens a block for the tiles that are not done; false where there is no such loop. A tile with
  /// a draw that ties is done again, by the long way round, where that leaves no trace.
  bool emit(const kir::Section& section);

 private:
  std::set<std::string> conditions(const kir::Section& section, int num_rows) const;
  void open_loop(int num_rows);
  void open_turn(int num_rows);
  std::set<std::size_t> emit_loads_ahead(const kir::Section& section, int num_rows);
  void emit_alike_ahead(const kir::Section& section, int num_rows);
  void emit_alike(const Instr& instr);
  void open_packs(const kir::Section& section, int num_rows);
  void close_packs(const kir::Section& section, int num_rows);

  CudaElementInstrs& instrs_;
  CudaDraws& draws_;
};

}  // namespace cinch::codegen
