// Prints instructions of element sections. Every element value is an array of four, for the four
// elements of the current row that the lane owns. Every instruction is a loop over them.
#pragma once
#include <string>

#include "codegen/emit/cuda/kernel/items.h"
#include "codegen/emit/cuda/kernel/printer.h"
#include "codegen/emit/cuda/kernel/uniform.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// Variables of reductions and running sums, named after their result.
std::string columns_name(const std::string& value);
std::string carry_name(const std::string& value);

class CudaElementInstrs : public CudaPrinter {
 public:
  CudaElementInstrs(CudaContext& cx, CudaUniform& uniform)
      : CudaPrinter(cx), uniform_(uniform), items_(uniform.items()), draws_(uniform.draws()) {}
  void emit(const Instr& instr);

 private:
  void emit_load(const Instr& instr);
  void emit_store_linear(const Instr& instr);
  void emit_store_at(const Instr& instr);
  void emit_add_at(const Instr& instr);
  void emit_max_at(const Instr& instr);
  void emit_hist_add(const Instr& instr);
  void emit_reduce(const Instr& instr);
  void emit_running_sum(const Instr& instr);
  void emit_local(const Instr& instr);
  void emit_status(const Instr& instr);

  CudaUniform& uniform_;
  CudaItems& items_;
  CudaDraws& draws_;
};

}  // namespace cinch::codegen
