// What of a launch's tables (buffers, sizes, groups, states) a kernel's function looks up, numbered
// in the order of first mention. Kernels that do the same with other entries have the same text,
// but for the lines that say which entries. Inside of the CUDA emitter.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

class CudaPlaces {
 public:
  CudaPlaces(const kir::KernelProgram& program, const kir::Kernel& kernel);

  std::size_t kernel() const { return kernel_; }
  std::size_t number(rt::BufferIndex buffer) const;
  /// Expressions: a size, an entry of the table of sizes.
  std::string size(HostExprId expr);
  std::string size_entry(std::size_t index);

  /// How the function that serves the kernels `same` begins: the constants that expressions name,
  /// which are of the kernel that the step is, the groups of the launch, and the buffers.
  static std::string lines(std::span<const CudaPlaces> same);
  /// What two kernels must agree in to be served so.
  std::string kinds() const;

 private:
  std::string entry(std::string name, std::uint32_t index);
  void note_buffer(rt::BufferIndex buffer);
  std::string buffer_lines() const;

  const kir::KernelProgram& program_;
  std::size_t kernel_;
  std::vector<rt::BufferIndex> buffers_;
  std::vector<std::size_t> sizes_;
  std::vector<std::pair<std::string, std::uint32_t>> entries_;
};

/// An element type of buffers in the prelude: "Stored<Kind::F16, 16, 16>".
std::string stored_type(DType dtype, int storage_bits);

}  // namespace cinch::codegen
