// What of a CPU program's text is compiled as one: a kernel, or several that do the same with other
// buffers, sizes and parameters. Searching a list and searching everything, decoding and decoding
// on top of a sum have many such kernels; they share a function, and each is a call of it.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CpuUnit {
  std::vector<std::size_t> kernels;  // by index, ascending
  std::string text;
};

/// `texts` are the functions of the program's kernels, as emit_cpu_kernel prints them. Units come
/// in the order of their first kernels.
std::vector<CpuUnit> share_kernels(const kir::KernelProgram& program,
                                   const std::vector<std::string>& texts);

}  // namespace cinch::codegen
