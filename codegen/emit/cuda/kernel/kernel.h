// One kernel of a CUDA program as text. Inside of the CUDA emitter: cuda.h is the door.
//
// Shape of the function, a template over the warps of a block: buffers, shared memory; the kernel
// section; streams of draws and combiners; the loop over this team's groups with their sections in
// order; what is left for the end (flags, histograms).
#pragma once
#include <cstdint>
#include <string>

#include "codegen/emit/cuda/kernel/elements.h"
#include "codegen/emit/cuda/kernel/printer.h"
#include "codegen/emit/cuda/kernel/uniform.h"
#include "codegen/emit/cuda/places.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

/// A kernel's function. Between both parts of its text belong the lines of its places.
struct CudaFunction {
  std::string front, back;
  CudaPlaces places;
};

/// Tuples of reductions, the struct of what the function shares in a block, and the function,
/// NAME_body, which the kernels of cuda/program.h call.
CudaFunction emit_cuda_kernel(const kir::KernelProgram& program, const kir::Kernel& kernel,
                              std::uint32_t block_warps, std::string name);

/// The function's frame, and the loop over groups.
class CudaKernelEmitter : public CudaPrinter {
 public:
  explicit CudaKernelEmitter(CudaContext& cx);
  CudaFunction emit();

 private:
  void emit_signature();
  void emit_head();
  void emit_shared();
  void emit_extent();
  void emit_plain_groups();
  void emit_short_groups();
  void emit_ordered_groups();
  void emit_group_body();
  void emit_sections();
  void emit_tail();
  std::string shared_type() const { return cx().name + "_shared"; }

  CudaUniform uniform_;
  CudaElements elements_;
  CudaShortRows short_rows_;
};

}  // namespace cinch::codegen
