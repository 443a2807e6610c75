// The only file that knows NVRTC's C interface; it has its own prototypes.
#include "codegen/jit/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <mutex>

#include "runtime/core/library_symbols.h"

namespace cinch::codegen {
namespace {

// The part of NVRTC's C interface that is used here; all functions return 0 for success.
struct NvrtcApi {
  using Program = struct NvrtcProgram*;
  int (*version)(int* major, int* minor) = nullptr;
  int (*num_archs)(int* num) = nullptr;
  int (*archs)(int* archs) = nullptr;
  const char* (*error_string)(int code) = nullptr;
  int (*create)(Program* program, const char* text, const char* name, int num_headers,
                const char* const* headers, const char* const* include_names) = nullptr;
  int (*destroy)(Program* program) = nullptr;
  int (*compile)(Program program, int num_options, const char* const* options) = nullptr;
  int (*log_size)(Program program, std::size_t* size) = nullptr;
  int (*log)(Program program, char* text) = nullptr;
  int (*ptx_size)(Program program, std::size_t* size) = nullptr;
  int (*ptx)(Program program, char* bytes) = nullptr;
  int (*cubin_size)(Program program, std::size_t* size) = nullptr;
  int (*cubin)(Program program, char* bytes) = nullptr;
};

// Says which function is missing; empty if all are there.
std::string bind_all(void* handle, NvrtcApi& api) {
  rt::LibrarySymbols symbols(handle);
  symbols.find(api.version, "nvrtcVersion");
  symbols.find(api.num_archs, "nvrtcGetNumSupportedArchs");
  symbols.find(api.archs, "nvrtcGetSupportedArchs");
  symbols.find(api.error_string, "nvrtcGetErrorString");
  symbols.find(api.create, "nvrtcCreateProgram");
  symbols.find(api.destroy, "nvrtcDestroyProgram");
  symbols.find(api.compile, "nvrtcCompileProgram");
  symbols.find(api.log_size, "nvrtcGetProgramLogSize");
  symbols.find(api.log, "nvrtcGetProgramLog");
  symbols.find(api.ptx_size, "nvrtcGetPTXSize");
  symbols.find(api.ptx, "nvrtcGetPTX");
  symbols.find(api.cubin_size, "nvrtcGetCUBINSize");
  symbols.find(api.cubin, "nvrtcGetCUBIN");
  return symbols.missing() == nullptr ? "" : fmt::format("it has no {}", symbols.missing());
}

struct Library {
  NvrtcApi api;
  NvrtcReport report;
};

void* open_candidate(const LibraryCandidate& candidate, std::string& problem) {
  const int flags = RTLD_NOW | RTLD_LOCAL | (candidate.only_if_loaded ? RTLD_NOLOAD : 0);
  void* handle = dlopen(candidate.path.c_str(), flags);
  if (handle) return handle;
  const char* error = dlerror();
  problem = candidate.only_if_loaded ? "not loaded" : error ? error : "cannot be opened";
  return nullptr;
}

// NVRTC opens its second library by name when it first compiles. Some of its wheels have no run
// path for that (13.0), and AddressSanitizer's dlopen, which calls on behalf of the caller, loses
// one. So it is opened beforehand, from NVRTC's own folder. If it is not there, NVRTC searches
// itself.
void open_builtins(const Library& library) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(library.api.version), &info) == 0) return;
  const std::string name =
      fmt::format("libnvrtc-builtins.so.{}.{}", library.report.major, library.report.minor);
  const auto folder = std::filesystem::path(info.dli_fname).parent_path();
  dlopen((folder / name).c_str(), RTLD_NOW | RTLD_LOCAL);
}

Library find_library() {
  Library library;
  const LibraryQuery query{"libnvrtc.so", {"libnvrtc.so.13", "libnvrtc.so.12"}, "CINCH_NVRTC"};
  for (const LibraryCandidate& candidate : library_candidates(query)) {
    std::string problem;
    void* handle = open_candidate(candidate, problem);
    if (handle) problem = bind_all(handle, library.api);
    library.report.attempts.push_back({candidate.origin, candidate.path, problem});
    if (!problem.empty()) continue;
    library.report.is_found = true;
    library.report.origin = candidate.origin;
    library.report.path = candidate.path;
    library.api.version(&library.report.major, &library.report.minor);
    int num = 0;
    if (library.api.num_archs(&num) == 0 && num > 0) {
      library.report.archs.resize(static_cast<std::size_t>(num));
      library.api.archs(library.report.archs.data());
    }
    open_builtins(library);
    break;
  }
  return library;
}

const Library& library() {
  static const Library kFound = find_library();
  return kFound;
}

class Compilation {
 public:
  explicit Compilation(const NvrtcApi& api) : api_(api) {}
  ~Compilation() {
    if (program_) api_.destroy(&program_);
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;

  rt::Result<CudaBinary> run(const std::string& text, const std::vector<std::string>& options,
                             CudaOutput output) {
    const auto start = std::chrono::steady_clock::now();
    if (int code = api_.create(&program_, text.c_str(), "cinch.cu", 0, nullptr, nullptr)) {
      return failure("nvrtcCreateProgram", code);
    }
    std::vector<const char*> words;
    words.reserve(options.size());
    for (const std::string& option : options) words.push_back(option.c_str());
    const int code = api_.compile(program_, static_cast<int>(words.size()), words.data());
    CudaBinary binary;
    binary.log = log();
    if (code) return failure("nvrtcCompileProgram", code, binary.log);
    const bool is_ptx = output == CudaOutput::Ptx;
    std::size_t size = 0;
    if (int error = (is_ptx ? api_.ptx_size : api_.cubin_size)(program_, &size)) {
      return failure("size of the result", error);
    }
    binary.bytes.resize(size);
    auto* bytes = reinterpret_cast<char*>(binary.bytes.data());
    if (int error = (is_ptx ? api_.ptx : api_.cubin)(program_, bytes)) {
      return failure("result", error);
    }
    binary.compile_ms =
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    return binary;
  }

 private:
  std::string log() const {
    std::size_t size = 0;
    if (api_.log_size(program_, &size) != 0 || size <= 1) return {};
    std::string text(size, '\0');
    api_.log(program_, text.data());
    text.resize(size - 1);
    return text;
  }

  tl::unexpected<rt::Error> failure(const char* what, int code, const std::string& log = {}) const {
    return rt::fail(
        rt::ErrorKind::Internal,
        fmt::format("{}: {}{}{}", what, api_.error_string(code), log.empty() ? "" : "\n", log),
        code);
  }

  const NvrtcApi& api_;
  NvrtcApi::Program program_ = nullptr;
};

// "sm_90" as 90. The compiler option alone keeps a letter after the number ("sm_90a"). 0: not an
// architecture.
int arch_number(const std::string& arch) {
  if (!arch.starts_with("sm_")) return 0;
  int number = 0;
  for (std::size_t i = 3; i < arch.size() && arch[i] >= '0' && arch[i] <= '9' && number < 1000;
       ++i) {
    number = 10 * number + (arch[i] - '0');
  }
  return number;
}

std::string known_archs(const NvrtcReport& report) {
  std::string out;
  for (int arch : report.archs) out += fmt::format("{}sm_{}", out.empty() ? "" : ", ", arch);
  return out;
}

std::vector<std::string> compile_options(const std::string& arch,
                                         const CudaCompileOptions& options) {
  const std::string target = options.output == CudaOutput::Ptx ? "compute_" + arch.substr(3) : arch;
  // For exact bits: no contraction, subnormals are kept, division and root round correctly.
  std::vector<std::string> words = {
      "--gpu-architecture=" + target, "--std=c++17", "--fmad=false", "--ftz=false",
      "--prec-div=true", "--prec-sqrt=true",
      // Suppresses warnings about unused functions and values: the prelude is always whole, as are
      // kernels' results. NVRTC 13.0 and older also warn of loops over zero counts.
      "--diag-suppress=177,186"};
  if (options.effort == Effort::Quick) words.emplace_back("--define-macro=CINCH_QUICK");
  if (options.line_info) words.emplace_back("--generate-line-info");
  if (nvrtc_report().major >= 13) {
    // Optimises kernels in parallel on all cores.
    words.emplace_back("--split-compile=0");
    if (options.effort == Effort::Quick) words.emplace_back("--Ofast-compile=min");
  }
  return words;
}

}  // namespace

const NvrtcReport& nvrtc_report() {
  return library().report;
}

std::string describe(const NvrtcReport& report) {
  if (report.is_found) {
    return fmt::format("NVRTC {}.{} at {} ({}); architectures {}", report.major, report.minor,
                       report.path, report.origin, known_archs(report));
  }
  std::string out = "no NVRTC; looked at:";
  for (const LibraryAttempt& attempt : report.attempts) {
    out += fmt::format("\n  {}: {}: {}", attempt.origin, attempt.path, attempt.problem);
  }
  return out +
         "\nset CINCH_NVRTC to the library or its folder, or install the wheel nvidia-cuda-nvrtc";
}

rt::Result<CudaBinary> compile_cuda(const std::string& text, const std::string& arch,
                                    const CudaCompileOptions& options) {
  const Library& found = library();
  if (!found.report.is_found) {
    return rt::fail(rt::ErrorKind::Unavailable, describe(found.report));
  }
  const auto& archs = found.report.archs;
  if (std::find(archs.begin(), archs.end(), arch_number(arch)) == archs.end()) {
    return rt::fail(
        rt::ErrorKind::InvalidArgument,
        fmt::format("NVRTC {}.{} does not know the architecture \"{}\", but {}", found.report.major,
                    found.report.minor, arch, known_archs(found.report)));
  }
  // With NVRTC 13.0, two compilations at once take longer than one after the other; with 13.5 they
  // take equally long (measured). So they take turns.
  static std::mutex turn;
  const std::lock_guard lock(turn);
  return Compilation(found.api).run(text, compile_options(arch, options), options.output);
}

std::string ptx_arch_for(const std::string& arch, std::span<const int> known) {
  const int wanted = arch_number(arch);
  int highest = 0;
  for (const int number : known) {
    if (number == wanted) return {};
    // Renamed to 110 later, so that drivers may order it differently.
    if (number == 101) continue;
    if (number < wanted) highest = std::max(highest, number);
  }
  return highest == 0 ? std::string() : fmt::format("sm_{}", highest);
}

std::vector<std::string> archs_that_serve(const std::string& arch) {
  std::vector<std::string> archs = {arch};
  const int number = arch_number(arch);
  for (int minor = number - 1; minor >= 0 && minor / 10 == number / 10; --minor)
    archs.push_back(fmt::format("sm_{}", minor));
  if (number >= arch_number(kPtxArch)) archs.emplace_back(kPtx);
  return archs;
}

rt::Result<CudaBinary> compile_cuda_to_load(const KernelSource& source, Effort effort) {
  const std::string ptx_arch = ptx_arch_for(source.target.arch, nvrtc_report().archs);
  if (ptx_arch.empty()) return compile_cuda(source, {.effort = effort});
  return compile_cuda(source.text, ptx_arch, {.output = CudaOutput::Ptx, .effort = effort});
}

rt::Result<CudaBinary> compile_cuda(const KernelSource& source, const CudaCompileOptions& options) {
  return compile_cuda(source.text, source.target.arch, options);
}

}  // namespace cinch::codegen
