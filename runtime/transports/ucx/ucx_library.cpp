// Opens the module that calls UCX.
#include "runtime/transports/ucx/ucx_transport.h"

#include <dlfcn.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/module/shared_object.h"
#include "runtime/transports/ucx/ucx_abi.h"

namespace cinch::rt {
namespace {

// Keeps the process's signal handlers. UCX installs its own when it is opened, to print where a
// process ended; the destructor restores the process's.
class KeptSignals {
 public:
  KeptSignals() {
    for (int number = 1; number < SIGRTMIN; ++number) {
      struct sigaction action = {};
      if (::sigaction(number, nullptr, &action) == 0) actions_[number] = action;
    }
  }
  ~KeptSignals() {
    for (const auto& [number, action] : actions_) ::sigaction(number, &action, nullptr);
  }
  KeptSignals(const KeptSignals&) = delete;
  KeptSignals& operator=(const KeptSignals&) = delete;

 private:
  std::map<int, struct sigaction> actions_;
};

constexpr const char* kWhereItIs =
    " (Debian's package libucx0 has UCX; of a wheel, such as libucx-cu12, CINCH_UCX_LIBRARY names "
    "the file libucp.so.0)";

// The module then finds the library, which is open already.
std::string open_named_library() {
  const char* const file = std::getenv("CINCH_UCX_LIBRARY");
  if (file == nullptr || *file == '\0') return {};
  if (::dlopen(file, RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  return ::dlerror();
}

Result<const cinch_ucx_calls*> open_ucx_module() {
  const KeptSignals kept;
  std::string tried = open_named_library();
  if (!tried.empty()) return fail(ErrorKind::Unavailable, "no UCX: " + tried + kWhereItIs);
  for (const std::string& path : library_paths(CINCH_UCX_MODULE, "CINCH_UCX")) {
    void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const entry = library == nullptr ? nullptr : ::dlsym(library, CINCH_UCX_ENTRY);
    const auto* const calls =
        entry == nullptr ? nullptr
                         : reinterpret_cast<cinch_ucx_calls_of_fn>(entry)(CINCH_UCX_ABI_VERSION);
    if (calls != nullptr) return calls;
    const char* const reason = ::dlerror();
    tried += (tried.empty() ? "" : "; ") +
             (reason == nullptr ? path + ": of another version" : std::string(reason));
  }
  return fail(ErrorKind::Unavailable, "no UCX: " + tried + kWhereItIs);
}

}  // namespace

const Result<const cinch_ucx_calls*>& ucx_library() {
  static const Result<const cinch_ucx_calls*> kCalls = open_ucx_module();
  return kCalls;
}

}  // namespace cinch::rt
