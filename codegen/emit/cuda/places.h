// The entries of a launch's tables (buffers, sizes, groups, states) that a kernel's function reads,
// numbered in the order of first mention. Kernels that do the same with other entries then have the
// same text, except for the lines that name the entries. Inside of the CUDA emitter.
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
  /// Expressions for a size, and for an entry of the table of sizes.
  std::string size(HostExprId expr);
  std::string size_entry(std::size_t index);

  /// The first lines of the function that serves the kernels `same`: constants with the entries of
  /// the step's kernel, the groups of the launch, and the buffers.
  static std::string lines(std::span<const CudaPlaces> same);
  /// Kernels can share a function only if these are equal.
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

/// The prelude's type of a buffer's elements: "Stored<Kind::F16, 16, 16>".
std::string stored_type(DType dtype, int storage_bits);

}  // namespace cinch::codegen
