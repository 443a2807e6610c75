// A private folder of this process, removed with its contents when the object is destroyed.
#pragma once
#include <filesystem>
#include <string>

namespace cinch::driver {

class TemporaryFolder {
 public:
  // Throws CommandError (Unavailable) if it cannot be made.
  explicit TemporaryFolder(const std::string& name);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace cinch::driver
