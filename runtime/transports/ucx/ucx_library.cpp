// Opens the module that calls UCX.
#include "runtime/transports/ucx/ucx_transport.h"

#include <dlfcn.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <string>

#include "runtime/core/environment.h"
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
  const std::string file(environment_variable("CINCH_UCX_LIBRARY"));
  if (file.empty()) return {};
  if (::dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return {};
  return ::dlerror();
}

Result<const cinch_ucx_calls*> open_ucx_module() {
  const KeptSignals kept;
  const std::string problem = open_named_library();
  if (!problem.empty()) return fail(ErrorKind::Unavailable, "no UCX: " + problem + kWhereItIs);
  auto opened = open_first_library(
      library_paths(CINCH_UCX_MODULE, "CINCH_UCX"), RTLD_NOW | RTLD_LOCAL, CINCH_UCX_ENTRY, "UCX",
      [](void* entry) {
        return reinterpret_cast<cinch_ucx_calls_of_fn>(entry)(CINCH_UCX_ABI_VERSION);
      });
  if (!opened) opened.error().message += kWhereItIs;
  CINCH_TRY(opened);
  return static_cast<const cinch_ucx_calls*>(opened->table);
}

}  // namespace

const Result<const cinch_ucx_calls*>& ucx_library() {
  static const Result<const cinch_ucx_calls*> kCalls = open_ucx_module();
  return kCalls;
}

}  // namespace cinch::rt
