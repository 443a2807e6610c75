// make_helpers FOLDER: compiles the prelude's helpers for each CPU architecture into FOLDER, and
// writes their digest there. Runs while Cinch is built.
#include <cstdio>
#include <fstream>
#include <string>

#include "codegen/emit/cpu.h"
#include "codegen/emit/cpu_helpers.h"
#include "codegen/jit/clang/stages.h"

namespace {

using namespace cinch;

bool write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  return file.good();
}

bool make_object(const std::string& folder, const std::string& text, const codegen::CpuArch& arch) {
  const CinchClangText source = {text.data(), text.size()};
  CinchClangRequest request{};
  request.sources = &source;
  request.num_sources = 1;
  request.file_name = "helpers.cpp";
  request.cpu = arch.name;
  request.lanes = arch.lanes;
  request.optimization_level = 3;
  const clang_backend::Compiled compiled = clang_backend::compile_source(request, source);
  if (compiled.bytes.empty()) std::fputs(compiled.log.c_str(), stderr);
  return !compiled.bytes.empty() && write(folder + "/helpers-" + arch.name + ".o", compiled.bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1], text = codegen::cpu_helpers_text();
  for (const codegen::CpuArch& arch : codegen::kCpuArchs) {
    if (arch.has_images && !make_object(folder, text, arch)) return 1;
  }
  return write(folder + "/helpers-digest", codegen::cpu_helpers_digest() + '\0') ? 0 : 1;
}
