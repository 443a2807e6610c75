#include "compiler/driver/process/temporary_folder.h"

#include <stdlib.h>

#include <cerrno>
#include <cstring>

#include "compiler/driver/process/exit_code.h"

namespace cinch::driver {

TemporaryFolder::TemporaryFolder(const std::string& name) {
  std::error_code not_there;
  const auto parent = std::filesystem::temp_directory_path(not_there);
  std::string pattern = (parent / (name + "-XXXXXX")).string();
  if (not_there || !mkdtemp(pattern.data())) {
    throw CommandError(ExitCode::Unavailable, "no temporary folder can be made in " +
                                                  parent.string() + ": " + std::strerror(errno));
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace cinch::driver
