// Runs a fuzz target over files: the kept corpus as an ordinary test, without libFuzzer. Arguments:
// files and folders. Fails if one of them contains nothing to run.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "tests/fuzz/target.h"

namespace {

namespace fs = std::filesystem;

void run_file(const fs::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

/// The number of files run.
int run_path(const fs::path& path) {
  if (fs::is_regular_file(path)) return run_file(path), 1;
  if (!fs::is_directory(path)) return 0;
  int num_files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(path)) {
    if (!entry.is_regular_file()) continue;
    run_file(entry.path());
    ++num_files;
  }
  return num_files;
}

}  // namespace

int main(int num_args, char** args) {
  if (LLVMFuzzerInitialize != nullptr) LLVMFuzzerInitialize(&num_args, &args);
  for (int i = 1; i < num_args; ++i) {
    const int num_files = run_path(args[i]);
    std::printf("%s: %d files\n", args[i], num_files);
    if (num_files == 0) return 1;
  }
  return num_args > 1 ? 0 : 1;
}
