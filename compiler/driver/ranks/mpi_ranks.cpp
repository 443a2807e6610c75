#include "compiler/driver/ranks/rank_transports.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <thread>
#include <utility>

#include "compiler/driver/process/interrupt.h"
#include "compiler/driver/process/json_output.h"
#include "compiler/driver/ranks/child_process.h"
#include "runtime/core/environment.h"
#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::driver {
namespace {

bool can_be_run(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

// The library that the transport has opened; empty if unknown.
std::filesystem::path mpi_file() {
  void* const entry = ::dlsym(RTLD_DEFAULT, "MPI_Init_thread");
  Dl_info info{};
  if (entry == nullptr || ::dladdr(entry, &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

std::filesystem::path find_mpirun() {
  if (const auto named = rt::environment_variable("CINCH_MPIRUN"); !named.empty()) {
    if (can_be_run(named)) return named;
    throw CommandError(ExitCode::Unavailable,
                       fmt::format("no mpirun: CINCH_MPIRUN is {}, which cannot be run", named));
  }
  std::vector<std::filesystem::path> folders;
  const std::filesystem::path library = mpi_file();
  std::error_code error;
  for (const auto& file : {library, std::filesystem::canonical(library, error)}) {
    if (!file.empty()) folders.push_back(file.parent_path().parent_path() / "bin");
  }
  std::istringstream searched(std::string(rt::environment_variable("PATH")));
  for (std::string folder; std::getline(searched, folder, ':');) folders.emplace_back(folder);
  for (const auto& folder : folders) {
    if (can_be_run(folder / "mpirun")) return folder / "mpirun";
  }
  throw CommandError(ExitCode::Unavailable,
                     fmt::format("no mpirun beside {} or in PATH; CINCH_MPIRUN may name it",
                                 library.empty() ? "the MPI library" : library.string()));
}

// Keeps what the user has set. There may be more ranks than cores, as with loopback, and each uses
// its share of all cores for its threads. The user of this command, even root, may also run it as
// ranks. Ranks report their own errors.
void set_environment() {
  constexpr std::array<std::pair<const char*, const char*>, 8> kVariables = {
      {{kLaunched, "1"},
       {"OMPI_MCA_rmaps_base_oversubscribe", "1"},
       {"OMPI_MCA_hwloc_base_binding_policy", "none"},
       {"OMPI_MCA_orte_execute_quiet", "1"},
       {"PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe"},
       {"PRTE_MCA_hwloc_default_binding_policy", "none"},
       {"OMPI_ALLOW_RUN_AS_ROOT", "1"},
       {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}}};
  for (const auto& [name, value] : kVariables) ::setenv(name, value, 0);
}

// mpirun would kill the ranks a second after SIGTERM, but passes on SIGUSR2 once they have started.
// So SIGUSR2 is sent repeatedly until they have ended.
int wait_for(pid_t child) {
  constexpr std::chrono::milliseconds kLook{10};
  constexpr int kLooksBetween = 25;
  const Cancellable scope;
  int status = 0;
  for (int num_looks = 0; ::waitpid(child, &status, WNOHANG) != child;) {
    if (*Cancellable::flag() && num_looks++ % kLooksBetween == 0) ::kill(child, SIGUSR2);
    std::this_thread::sleep_for(kLook);
  }
  return status;
}

}  // namespace

bool is_launched_rank() {
  // Set by Open MPI, by PMIx (srun, prun), by MPICH and by srun's PMI.
  return std::ranges::any_of(std::array{kLaunched, "OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK"},
                             [](const char* name) { return std::getenv(name) != nullptr; });
}

ExitCode launch_mpi_ranks(const std::vector<std::string>& words, std::uint32_t world) {
  value_or_throw(rt::mpi_library());
  std::vector<std::string> command = {find_mpirun().string(), "-n", std::to_string(world),
                                      std::filesystem::read_symlink("/proc/self/exe").string()};
  command.insert(command.end(), words.begin() + 1, words.end());
  set_environment();
  const pid_t child = start_child(command);
  if (child < 0) throw CommandError(ExitCode::Unavailable, "no process for mpirun can be made");
  const int status = wait_for(child);
  end_if_interrupted();
  keep_failure_message("a rank failed; its message is on standard error");
  if (WIFEXITED(status)) return static_cast<ExitCode>(WEXITSTATUS(status));
  throw CommandError(ExitCode::Unavailable,
                     fmt::format("mpirun was ended by signal {}", WTERMSIG(status)));
}

}  // namespace cinch::driver
