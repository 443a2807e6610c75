// Prints instructions of kernel and group sections, and of combiners' bodies. Every thread computes
// them alike; what stores or fails is done by one thread. Owns the printers of items and draws.
#pragma once
#include <string>

#include "codegen/emit/cuda/kernel/draws.h"
#include "codegen/emit/cuda/kernel/items.h"
#include "codegen/emit/cuda/kernel/printer.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CudaUniform : public CudaPrinter {
 public:
  explicit CudaUniform(CudaContext& cx);
  void emit(const Instr& instr);
  /// Combiners and streams stand in front of what uses them, outside of all loops.
  void prepare(const Instr& instr);

  // ---- instructions that are the same in element sections ----
  void emit_leaf(const Instr& instr);
  void emit_call_extern(const Instr& instr);

  CudaItems& items() { return items_; }
  CudaDraws& draws() { return draws_; }

 private:
  void emit_memory(const Instr& instr);
  void emit_look_back(const Instr& instr);
  void emit_finish_reduce(const Instr& instr);
  void emit_finish_scan(const Instr& instr);
  void emit_local_scan(const Instr& instr);
  void emit_local_transform(const Instr& instr);
  std::string only_once(const std::string& condition) const;

  CudaItems items_;
  CudaDraws draws_;
};

}  // namespace cinch::codegen
