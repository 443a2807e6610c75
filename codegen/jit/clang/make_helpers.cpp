// make_helpers FOLDER: compiles the prelude's helpers for each CPU architecture into FOLDER,
// precompiles the prelude for compiling kernels, and records their sources and compiler. Runs while
// Cinch is built.
#include <cstdio>
#include <fstream>

#include "codegen/emit/cpu.h"
#include "codegen/emit/cpu/prelude.h"
#include "codegen/jit/clang/stages.h"

namespace {

using namespace cinch;

bool write(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file << bytes;
  file.close();
  return file.good();
}

CinchClangRequest request_for(const codegen::CpuArch& arch, const char* file_name) {
  CinchClangRequest request{.num_sources = 1,
                            .file_name = file_name,
                            .cpu = arch.name,
                            .lanes = arch.lanes,
                            .output = kCinchObject,
                            .optimization_level = 3};
  return request;
}

bool write_made(const std::string& path, const std::string& bytes, const std::string& log) {
  if (bytes.empty()) std::fputs(log.c_str(), stderr);
  return !bytes.empty() && write(path, bytes);
}

bool make_object(const std::string& folder, const std::string& text, const codegen::CpuArch& arch) {
  const auto made = clang_backend::compile_source(request_for(arch, "helpers.cpp"),
                                                  {text.data(), text.size()}, {});
  return write_made(folder + "/helpers-" + arch.name + ".o", made.bytes, made.log);
}

bool make_prelude(const std::string& folder, const std::string& text,
                  const codegen::CpuArch& arch) {
  std::string log;
  const std::string bytes =
      clang_backend::precompile(request_for(arch, "prelude.h"), {text.data(), text.size()}, log);
  return write_made(folder + "/prelude-" + arch.name + ".pch", bytes, log);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string folder = argv[1];
  const std::string helpers = codegen::cpu_helpers_text(codegen::HelpersMode::Made);
  const std::string prelude = codegen::cpu_helpers_text(codegen::HelpersMode::Linked);
  for (const codegen::CpuArch& arch : codegen::kCpuArchs) {
    if (!arch.has_images) continue;
    if (!make_object(folder, helpers, arch) || !make_prelude(folder, prelude, arch)) return 1;
  }
  const bool ok = write(folder + "/helpers-digest", codegen::cpu_helpers_digest()) &&
                  write(folder + "/helpers-clang", clang_backend::clang_version());
  return ok ? 0 : 1;
}
