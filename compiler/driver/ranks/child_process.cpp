// Bodies of child_process.h.
#include "compiler/driver/ranks/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

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
