// CPU emitter: kernels as header-free C++ over Clang's ext_vector_type vectors. The number of lanes
// is the macro CINCH_LANES (16, 8 or 4), set by the compiler's door or found by the prelude, so one
// text serves every level of x86-64, with the same bits on each, and AArch64. Assumes a verified
// program.
#pragma once
#include <string>

#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CpuOptions {
  std::string arch = "x86-64-v3";  // goes into KernelSource::target; the text does not depend on it
  bool count_accesses = false;     // kernels add the bits they read and write to counters[0], [1]
};

/// One translation unit with the KIR as a comment, the prelude and one exported function per
/// kernel. Throws InternalError{Limitation} for an instruction that it cannot emit, and {Bug} for
/// a program that the verifier would refuse.
KernelSource emit_cpu(const kir::KernelProgram& program, const CpuOptions& options = {});

}  // namespace cinch::codegen
