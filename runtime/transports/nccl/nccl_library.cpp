// Opens NCCL's library at run time.
#include "runtime/transports/nccl/nccl_abi.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <mutex>

#include "runtime/core/library_symbols.h"
#include "runtime/module/shared_object.h"

namespace cinch::rt {
namespace {

constexpr const char* kNcclFile = "libnccl.so.2";

Result<NcclCalls> open_nccl_file(const std::string& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const reason = ::dlerror();
    return fail(ErrorKind::Unavailable, reason != nullptr ? reason : file);
  }
  NcclCalls calls{};
  LibrarySymbols symbols(library);
#define CINCH_NCCL_CALL(result, member, symbol, parameters) symbols.find(calls.member, symbol);
#define CINCH_NCCL_CALL_IF_ANY(result, member, symbol, parameters) \
  symbols.find_if_any(calls.member, symbol);
#include "runtime/transports/nccl/nccl_calls.def"
#undef CINCH_NCCL_CALL
#undef CINCH_NCCL_CALL_IF_ANY
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
