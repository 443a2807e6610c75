#include "codegen/jit/nvrtc.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "runtime/core/log.h"

namespace cinch::codegen {
namespace {

namespace fs = std::filesystem;

std::string variable(const char* name) {
  return std::string(rt::environment_variable(name));
}

// Sub-folders and files of a folder in a fixed order; nothing if it cannot be read.
std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    out.push_back(it->path());
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool is_folder(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

class Search {
 public:
  explicit Search(const LibraryQuery& query) : query_(query) {}

  std::vector<LibraryCandidate> run() {
    for (const std::string& name : query_.sonames) out_.push_back({"already loaded", name, true});
    const std::string place = variable(query_.override_variable.c_str());
    if (!place.empty() && is_folder(place)) {
      folder(query_.override_variable, place);
    } else if (!place.empty()) {
      out_.push_back({query_.override_variable, place});
    }
    for (const fs::path& site : site_packages()) {
      for (const fs::path& package : entries(site / "nvidia")) folder("pip wheel", package / "lib");
    }
    const std::string conda = variable("CONDA_PREFIX");
    if (!conda.empty()) {
      folder("conda", fs::path(conda) / "lib");
      folder("conda", fs::path(conda) / "targets/x86_64-linux/lib");
    }
    for (const std::string& name : query_.sonames) out_.push_back({"system loader", name});
    for (const char* name : {"CUDA_PATH", "CUDA_HOME"}) {
      const std::string root = variable(name);
      if (!root.empty()) folder(name, fs::path(root) / "lib64");
    }
    return std::move(out_);
  }

 private:
  // Known names first, then all files that begin with the stem (newer major versions), highest name
  // first.
  void folder(const std::string& origin, const fs::path& path) {
    std::vector<std::string> names = query_.sonames;
    std::vector<fs::path> files = entries(path);
    std::reverse(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::string name = file.filename().string();
      const bool is_known = std::find(names.begin(), names.end(), name) != names.end();
      if (name.starts_with(query_.stem) && !is_known) names.push_back(name);
    }
    for (const std::string& name : names) {
      std::error_code error;
      if (fs::exists(path / name, error)) out_.push_back({origin, (path / name).string()});
    }
  }

  static std::vector<fs::path> site_packages() {
    std::vector<fs::path> out;
    const std::string env = variable("VIRTUAL_ENV");
    if (!env.empty()) {
      for (const fs::path& python : entries(fs::path(env) / "lib")) {
        if (is_folder(python / "site-packages")) out.push_back(python / "site-packages");
      }
    }
    std::string list = variable("CINCH_SITE_PACKAGES");
    while (!list.empty()) {
      const std::size_t colon = list.find(':');
      if (colon != 0) out.emplace_back(list.substr(0, colon));
      list = colon == std::string::npos ? "" : list.substr(colon + 1);
    }
    return out;
  }

  const LibraryQuery& query_;
  std::vector<LibraryCandidate> out_;
};

}  // namespace

std::vector<LibraryCandidate> library_candidates(const LibraryQuery& query) {
  return Search(query).run();
}

}  // namespace cinch::codegen
