// Compiles CUDA C++ text to PTX or a cubin by NVRTC, which is opened at run time.
//
// It needs neither a GPU nor a driver, nor NVIDIA's headers: nvrtc.cpp declares the few C
// functions. The library is searched once per process and never closed. The search order is: a
// library that the process has loaded; the file or folder that CINCH_NVRTC names; pip wheels
// (nvidia/*/lib below site-packages of VIRTUAL_ENV and of CINCH_SITE_PACKAGES, a colon-separated
// list); CONDA_PREFIX; the system loader; CUDA_PATH and CUDA_HOME.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "codegen/emit/kernel_source.h"
#include "runtime/core/error.h"

namespace cinch::codegen {

enum class CudaOutput : std::uint8_t { Ptx, Cubin };

struct CudaCompileOptions {
  CudaOutput output = CudaOutput::Cubin;
  bool line_info = false;
  Effort effort = Effort::Full;
};

struct CudaBinary {
  std::vector<std::uint8_t> bytes;  // PTX ends with a zero byte
  std::string log;                  // warnings; empty if there are none
  double compile_ms = 0;
};

/// Compiles. `arch` is "sm_90"; PTX is for the virtual architecture of that number. Errors:
/// Unavailable (no NVRTC: lists the searched places), InvalidArgument (an architecture that this
/// NVRTC does not know: lists those it does), Internal (the text does not compile: the message has
/// NVRTC's log).
rt::Result<CudaBinary> compile_cuda(const std::string& text, const std::string& arch,
                                    const CudaCompileOptions& options = {});
/// The same for the source's target.
rt::Result<CudaBinary> compile_cuda(const KernelSource& source,
                                    const CudaCompileOptions& options = {});

/// The architecture whose PTX runs on `arch`: the highest of `known` (75, 80, …) below it. Empty if
/// `arch` is known itself, is invalid, or is below all.
std::string ptx_arch_for(const std::string& arch, std::span<const int> known);
/// Architectures whose code runs on a device of `arch` ("sm_86"), its own first: earlier minors of
/// its major, then PTX (kPtx), if that is old enough.
std::vector<std::string> archs_that_serve(const std::string& arch);
/// Makes code that the driver of a device of the source's target can load: a cubin, or for an
/// architecture newer than this NVRTC the PTX of ptx_arch_for, which the driver then compiles.
rt::Result<CudaBinary> compile_cuda_to_load(const KernelSource& source,
                                            Effort effort = Effort::Full);

struct LibraryAttempt {
  std::string origin;   // "already loaded", "CINCH_NVRTC", "pip wheel", …
  std::string path;     // the opened file
  std::string problem;  // empty: it was opened
};

/// What was found where, for `cinch doctor` and messages.
struct NvrtcReport {
  bool is_found = false;
  std::string origin, path;
  int major = 0, minor = 0;
  std::vector<int> archs;  // 75, 80, … as NVRTC lists them
  std::vector<LibraryAttempt> attempts;
};
const NvrtcReport& nvrtc_report();
/// Lines for people: the library, its version and architectures; or every place that was searched.
std::string describe(const NvrtcReport& report);

}  // namespace cinch::codegen
