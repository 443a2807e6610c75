// KernelSource: the text of all kernels of a program for one target, ready for a compiler. Also the
// prelude's files, which emitters put in front of kernels.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cinch::codegen {

enum class TargetKind : unsigned char { Cpu, Cuda };

/// How much the compiler optimises. Results have the same bits.
enum class Effort : std::uint8_t {
  Full,  // for code that is compiled once and used often
  Quick  // takes half the time or less, while somebody waits; the code is slower
};

// "cpu:x86-64", "cpu:x86-64-v3" (AVX2), "cpu:x86-64-v4" (AVX-512), "cpu:aarch64", "cpu:native" is
// resolved before; "cuda:sm_90".
struct Target {
  TargetKind kind = TargetKind::Cpu;
  std::string arch;
};

// The architecture of CUDA text that runs on the emulated GPU.
inline constexpr const char* kEmulatedArch = "emulated";
// In the place of an architecture, where that is allowed: PTX of kPtxArch, which the driver
// compiles for every GPU from there on.
inline constexpr const char* kPtx = "ptx";
inline constexpr const char* kPtxArch = "sm_80";

struct KernelSource {
  Target target;
  std::string text;  // one translation unit without includes; opens with the KIR as a comment
  std::vector<std::string> symbols;  // exported kernels; for CPUs by kernel index
  // CUDA: by kernel index, the kernel whose function does it: itself, or an earlier one that does
  // the same.
  std::vector<std::size_t> served_by;
  bool links_helpers = false;  // CPUs: the prelude and its helpers are not in the text
};

// ---- the prelude's files (codegen/prelude), and those that the host includes too ----

struct PreludePart {
  std::string_view name;  // "cpu/reduce.h", "runtime/image/kernel_abi.h"
  std::string_view text;
};

/// All files; a part needs those that its opening comment names.
std::span<const PreludePart> prelude_parts();
/// Throws InternalError{Bug} for a name that is not there.
std::string_view prelude_text(std::string_view name);

}  // namespace cinch::codegen
