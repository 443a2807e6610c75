// NVRTC behind a door: CUDA C++ text to PTX or a cubin, with the library opened at run time.
//
// Needs neither a GPU nor a driver, nor NVIDIA's headers: the few C functions are declared in
// nvrtc.cpp. The library is looked for once per process, in this order, and never closed: already
// loaded in the process; the file or folder that CINCH_NVRTC names; pip wheels (nvidia/*/lib below
// site-packages of VIRTUAL_ENV and of CINCH_SITE_PACKAGES, a colon-separated list); CONDA_PREFIX;
// the system loader; CUDA_PATH and CUDA_HOME.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

enum class CudaOutput : std::uint8_t { Ptx, Cubin };

/// How long NVRTC may optimise. The bits that the code gives are the same.
enum class CudaEffort : std::uint8_t {
  Full,  // for what is compiled once and used often
  Quick  // less than half the time, for somebody who waits: more registers and stack
};

struct CudaCompileOptions {
  CudaOutput output = CudaOutput::Cubin;
  bool line_info = false;
  CudaEffort effort = CudaEffort::Full;
};

struct CudaBinary {
  std::vector<std::uint8_t> bytes;  // PTX ends with a zero byte
  std::string log;                  // warnings; empty if there are none
  double compile_ms = 0;
};

/// `arch` is "sm_90"; PTX is made for the virtual architecture of that number.
/// Errors: Unavailable (no NVRTC: says where it was looked for), InvalidArgument (an architecture
/// that this NVRTC does not know: names those it does), Internal (the text does not compile:
/// NVRTC's log is in the message).
rt::Result<CudaBinary> compile_cuda(const std::string& text, const std::string& arch,
                                    const CudaCompileOptions& options = {});
/// The architecture is the source's target.
rt::Result<CudaBinary> compile_cuda(const KernelSource& source,
                                    const CudaCompileOptions& options = {});

/// The architecture whose PTX serves on `arch`: the highest of `known` (75, 80, …) below it. Empty
/// where `arch` is known itself, is none, or is below all.
std::string ptx_arch_for(const std::string& arch, std::span<const int> known);
/// Whose code a device of `arch` ("sm_86") runs, its own first: earlier minors of its major, then
/// PTX (kPtx), as far as that is old enough.
std::vector<std::string> archs_that_serve(const std::string& arch);
/// What the driver of a device of the source's target loads: a cubin; for an architecture newer
/// than this NVRTC the PTX of ptx_arch_for, which the driver compiles then.
rt::Result<CudaBinary> compile_cuda_to_load(const KernelSource& source,
                                            CudaEffort effort = CudaEffort::Full);

struct LibraryAttempt {
  std::string origin;   // "already loaded", "CINCH_NVRTC", "pip wheel", …
  std::string path;     // what was opened
  std::string problem;  // empty: it worked
};

/// What was found where: for `cinch doctor` and messages.
struct NvrtcReport {
  bool is_found = false;
  std::string origin, path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // 75, 80, … as NVRTC lists them
  std::vector<LibraryAttempt> attempts;
};
const NvrtcReport& nvrtc_report();
/// Lines for people: the library found, its version and architectures; else every place looked at.
std::string describe(const NvrtcReport& report);

}  // namespace cinch::codegen
