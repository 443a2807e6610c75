// Opens NCCL's library at run time.
#include "runtime/transports/nccl/nccl_abi.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "runtime/module/shared_object.h"

namespace cinch::rt {
namespace {

constexpr const char* kNcclFile = "libnccl.so.2";

// Looks up functions and remembers the first required one that is missing.
class NcclSymbols {
 public:
  explicit NcclSymbols(void* library) : library_(library) {}

  template <typename F>
  void find_if_any(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library_, name));
  }
  template <typename F>
  void find(F*& function, const char* name) {
    find_if_any(function, name);
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

void find_functions(NcclSymbols& symbols, NcclCalls& calls) {
  symbols.find(calls.get_version, "ncclGetVersion");
  symbols.find(calls.get_unique_id, "ncclGetUniqueId");
  symbols.find(calls.error_string, "ncclGetErrorString");
  symbols.find(calls.init_rank, "ncclCommInitRank");
  symbols.find(calls.destroy, "ncclCommDestroy");
  symbols.find(calls.abort, "ncclCommAbort");
  symbols.find(calls.async_error, "ncclCommGetAsyncError");
  symbols.find(calls.count, "ncclCommCount");
  symbols.find(calls.user_rank, "ncclCommUserRank");
  symbols.find(calls.device, "ncclCommCuDevice");
  symbols.find(calls.group_start, "ncclGroupStart");
  symbols.find(calls.group_end, "ncclGroupEnd");
  symbols.find(calls.all_reduce, "ncclAllReduce");
  symbols.find(calls.broadcast, "ncclBroadcast");
  symbols.find(calls.reduce, "ncclReduce");
  symbols.find(calls.all_gather, "ncclAllGather");
  symbols.find(calls.reduce_scatter, "ncclReduceScatter");
  symbols.find(calls.send, "ncclSend");
  symbols.find(calls.receive, "ncclRecv");
  symbols.find_if_any(calls.last_error, "ncclGetLastError");
  symbols.find_if_any(calls.init_rank_config, "ncclCommInitRankConfig");
  symbols.find_if_any(calls.finalize, "ncclCommFinalize");
  symbols.find_if_any(calls.register_memory, "ncclCommRegister");
  symbols.find_if_any(calls.deregister_memory, "ncclCommDeregister");
}

Result<NcclCalls> open_nccl_file(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    return fail(ErrorKind::Unavailable, reason != nullptr ? reason : file);
  }
  NcclCalls calls{};
  NcclSymbols symbols(library);
  find_functions(symbols, calls);
  if (symbols.missing() != nullptr) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{} has no {}: NCCL 2.7 or newer is needed", file, symbols.missing()));
  }
  if (const NcclCode code = calls.get_version(&calls.version); code != kNcclSuccess) {
    return fail(ErrorKind::Unavailable, nccl_error(calls, nullptr, code, file.c_str()).message);
  }
  return calls;
}

Result<NcclCalls> open_first(const std::string& file) {
  std::string tried;
  const auto files = file.empty() ? library_paths(kNcclFile, "CINCH_NCCL") : std::vector{file};
  for (const std::string& path : files) {
    auto opened = open_nccl_file(path);
    if (opened) return opened;
    tried += (tried.empty() ? "" : "; ") + opened.error().message;
  }
  return fail(ErrorKind::Unavailable, "no NCCL: " + tried);
}

}  // namespace

Result<const NcclCalls*> open_nccl_library(const std::string& file) {
  static std::mutex mutex;
  static auto* const kOpened = new std::map<std::string, Result<NcclCalls>>;
  const std::lock_guard lock(mutex);
  const auto found = kOpened->find(file);
  const auto& opened =
      (found != kOpened->end() ? found : kOpened->emplace(file, open_first(file)).first)->second;
  CINCH_TRY(opened);
  return &*opened;
}

// Up to version 2.8 the number had one digit less.
std::string nccl_version_text(int version) {
  const int major_unit = version < 10000 ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major_unit, version % major_unit / 100, version % 100);
}

Error nccl_error(const NcclCalls& calls, NcclComm comm, NcclCode code, const char* what) {
  const char* const name = calls.error_string(code);
  const char* const last = calls.last_error != nullptr ? calls.last_error(comm) : nullptr;
  std::string message =
      fmt::format("NCCL, {}: {}", what, name != nullptr ? name : std::to_string(code));
  if (last != nullptr && *last != '\0') message += fmt::format(" ({})", last);
  return {ErrorKind::Device, message, code};
}

}  // namespace cinch::rt
