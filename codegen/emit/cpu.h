// CPU emitter: kernels as header-free C++ over Clang's ext_vector_type vectors. The number of lanes
// is the macro CINCH_LANES (16, 8 or 4), set by the compiler's door or found by the prelude, so one
// text serves every level of x86-64, with the same bits on each, and AArch64. Assumes a verified
// program.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "codegen/kir/kir.h"

namespace cinch::codegen {

struct CpuArch {
  const char* name;
  int lanes;         // of f32
  bool has_images;   // else there are source, assembly, objects and libraries only
  bool is_included;  // in a library for all processors of today
};
// Levels of a processor from the lowest to the highest.
inline constexpr CpuArch kCpuArchs[] = {{"x86-64", 4, true, false},
                                        {"x86-64-v2", 4, false, true},
                                        {"x86-64-v3", 8, true, true},
                                        {"x86-64-v4", 16, true, true},
                                        {"aarch64", 4, false, false}};
/// Throws InternalError{Bug} for a name that is not there.
const CpuArch& cpu_arch(std::string_view name);

struct CpuOptions {
  std::string arch = "x86-64-v3";  // goes into KernelSource::target; the text does not depend on it
  bool count_accesses = false;     // kernels add the bits they read and write to counters[0], [1]
  bool links_helpers = false;  // the text goes without prelude and helpers: it does not stand alone
  std::size_t max_parts = 1;   // of emit_cpu_parts
  Effort effort = Effort::Full;  // Quick: loops are printed once, with masks
};

/// One translation unit with the KIR as a comment, the prelude and one exported function per
/// kernel. Throws InternalError{Limitation} for an instruction that it cannot emit, and {Bug} for
/// a program that the verifier would refuse.
KernelSource emit_cpu(const kir::KernelProgram& program, const CpuOptions& options = {});

/// The same as at most options.max_parts units of about the same length, which compile at the same
/// time; more than one hold no KIR.
std::vector<KernelSource> emit_cpu_parts(const kir::KernelProgram& program,
                                         const CpuOptions& options);

}  // namespace cinch::codegen
