// A folder of this process's own, removed with all it holds when this ends.
#pragma once
#include <filesystem>
#include <string>

namespace cinch::driver {

class TemporaryFolder {
 public:
  // Throws CommandError (Unavailable) where none can be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace cinch::driver
