// Prints an element section: a loop over tiles of the group, in it one over the 8 rows of a tile; a
// lane holds four elements of a row, of which the first `live` exist.
#pragma once
#include "codegen/emit/cuda/kernel/element_instrs.h"
#include "codegen/emit/cuda/kernel/printer.h"
#include "codegen/emit/cuda/kernel/rows.h"
#include "codegen/emit/cuda/kernel/uniform.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CudaElements : public CudaPrinter {
 public:
  CudaElements(CudaContext& cx, CudaUniform& uniform);
  void emit(const kir::Section& section);

  // ---- what stands around a section's rows, whoever prints these ----
  void open_reductions(const kir::Section& section);
  void open_tile(const kir::Section& section);
  void close_tile(const kir::Section& section);
  void close_reductions(const kir::Section& section);
  CudaElementInstrs& instrs() { return instrs_; }

 private:
  CudaItems& items_;
  CudaElementInstrs instrs_;
  CudaRows rows_;
};

}  // namespace cinch::codegen
