#include "compiler/driver/ranks/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string_view>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

bool is_started_by_command() {
  return std::getenv(kLaunched) != nullptr;
}

bool is_started_by_mpirun() {
  return std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr;
}

bool is_first_rank() {
  const auto is_other = [](const char* name) {
    const char* const rank = std::getenv(name);
    return rank != nullptr && std::string_view(rank) != "0";
  };
  if (is_other("OMPI_COMM_WORLD_RANK") || is_other("PMIX_RANK") || is_other("PMI_RANK"))
    return false;
  // Launchers of other programs set RANK, too.
  return !is_started_by_command() || !is_other("RANK");
}

pid_t start_child(std::vector<std::string> command) {
  std::vector<char*> words;
  words.reserve(command.size() + 1);
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t own = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  if (::getppid() == own) ::execv(words[0], words.data());
  ::_exit(static_cast<int>(ExitCode::Unavailable));
}

}  // namespace cinch::driver
