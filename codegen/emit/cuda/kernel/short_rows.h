// Prints groups that are rows of a few elements, several of which share a warp: as many lanes take
// a row as it has quads, and each lane computes what is the same for its row.
#pragma once
#include <cstddef>
#include <map>
#include <string>
#include <tuple>

#include "codegen/emit/cuda/kernel/elements.h"
#include "codegen/emit/cuda/kernel/printer.h"
#include "codegen/emit/cuda/kernel/uniform.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CudaShortRows : public CudaPrinter {
 public:
  CudaShortRows(CudaContext& cx, CudaUniform& uniform, CudaElements& elements)
      : CudaPrinter(cx), uniform_(uniform), elements_(elements) {}
  /// As many rows of the warp's groups, from `next` on, as lanes can share.
  void emit();

 private:
  using KeptKey = std::tuple<rt::BufferIndex, std::size_t, std::size_t>;
  static KeptKey kept_key(const Instr& load);
  void forget_stored(const kir::Section& section);
  void emit_load(const Instr& load);
  void emit_elements(const kir::Section& section);

  CudaUniform& uniform_;
  CudaElements& elements_;
  std::map<KeptKey, std::string> kept_;  // what short rows have loaded, by name
};

}  // namespace cinch::codegen
