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

// ---- places to search for NVIDIA's libraries, in the order of NVIDIA's own tools
// (library_search.cpp). The caller opens them. ----

struct LibraryCandidate {
  std::string origin;           // for people: "pip wheel", "system loader"
  std::string path;             // a file, or a bare name for the loader
  bool only_if_loaded = false;  // use it only if the process has loaded it already
};

struct LibraryQuery {
  std::string stem;                  // "libnvrtc.so"
  std::vector<std::string> sonames;  // newest first: "libnvrtc.so.13"
  std::string override_variable;     // "CINCH_NVRTC": a file or a folder
};

/// Candidates in order; files in folders are listed only if they exist. Reads the environment
/// variables named in nvrtc.h.
std::vector<LibraryCandidate> library_candidates(const LibraryQuery& query);

// ---- what a cubin tells of its kernels, without a GPU or NVIDIA's tools (cubin.cpp) ----

struct KernelResources {
  std::string symbol;
  std::uint32_t registers = 0;     // per thread
  std::uint32_t shared_bytes = 0;  // per block, including what the system reserves
  std::uint32_t stack_bytes = 0;   // per thread: spilled registers and arrays, in local memory
};

/// In the order of the file. Errors: CorruptFile (not a cubin, or truncated).
rt::Result<std::vector<KernelResources>> cubin_resources(std::span<const std::uint8_t> cubin);

}  // namespace cinch::codegen
