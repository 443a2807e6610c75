// CPU emitter: kernels as header-free C++ over Clang's ext_vector_type vectors. The macro
// CINCH_LANES (16, 8 or 4) is the number of lanes; the caller of the compiler sets it, or the
// prelude finds it. So one text serves AArch64 and every level of x86-64, with the same bits on
// each. The program must be verified.
#pragma once

#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CpuArch {
  const char* name;
  int lanes;         // of f32
  bool has_images;   // false: source, assembly, objects and libraries only
  bool is_included;  // is it a part of a library for `cpu`?
};
// Lowest level of each processor first.
inline constexpr CpuArch kCpuArchs[] = {{"x86-64", 4, true, false},
                                        {"x86-64-v2", 4, false, true},
                                        {"x86-64-v3", 8, true, true},
                                        {"x86-64-v4", 16, true, true},
                                        {"aarch64", 4, false, false}};
/// Throws InternalError{Bug} for a name that is not there.
const CpuArch& cpu_arch(std::string_view name);

struct CpuOptions {
  std::string arch = "x86-64-v3";  // becomes KernelSource::target; the text does not depend on it
  bool count_accesses = false;     // kernels add the bits they read and write to counters[0], [1]
  bool links_helpers = false;      // leaves prelude and helpers out of the text
  std::size_t max_parts = 1;       // of emit_cpu_parts
  Effort effort = Effort::Full;    // Quick: prints loops once, with masks
};

/// Prints one translation unit: the KIR as a comment, the prelude, and one exported function for
/// each kernel. Throws InternalError{Limitation} for an instruction that it cannot emit, and {Bug}
/// for a program that the verifier would reject.
KernelSource emit_cpu(const kir::KernelProgram& program, const CpuOptions& options = {});

/// Prints at most options.max_parts units of about the same length, which compile at the same time.
/// Several units have no KIR comment.
std::vector<KernelSource> emit_cpu_parts(const kir::KernelProgram& program,
                                         const CpuOptions& options);

}  // namespace cinch::codegen
