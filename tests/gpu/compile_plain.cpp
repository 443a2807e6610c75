// compile_plain TEXT ARCH OUTPUT: compiles the plain loops of gpu_bench (plain_loops.cu) to a
// binary for an architecture, "sm_90" or "emulated"; it belongs to the files for a machine with a
// GPU.
#include <fmt/format.h>

#include <fstream>
#include <sstream>

#include "codegen/jit/clang_jit.h"
#include "codegen/jit/nvrtc.h"

namespace {

using namespace cinch;

rt::Result<std::vector<std::uint8_t>> compile(const codegen::KernelSource& source) {
  if (source.target.arch == codegen::kEmulatedArch) return codegen::compile_emulated(source);
  auto binary = codegen::compile_cuda(source);
  if (!binary) return tl::unexpected<rt::Error>(binary.error());
  return std::move(binary->bytes);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "compile_plain TEXT ARCH OUTPUT\n");
    return 2;
  }
  std::ostringstream text;
  text << std::ifstream(argv[1]).rdbuf();
  codegen::KernelSource source;
  source.target = {codegen::TargetKind::Cuda, argv[2]};
  source.text = text.str();
  source.symbols = {"plain_sweep_4", "plain_sweep_1"};
  const auto binary = compile(source);
  if (!binary) {
    fmt::print(stderr, "compile_plain: {}\n", binary.error().message);
    return 1;
  }
  std::ofstream out(argv[3], std::ios::binary);
  out.write(reinterpret_cast<const char*>(binary->data()),
            static_cast<std::streamsize>(binary->size()));
  return out ? 0 : 1;
}
