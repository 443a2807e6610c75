// Runs programs of kernel IR; see kernel_run.h.
#include <array>
#include <utility>

#include "runtime/image/image.h"
#include "tests/programs/harness/kernel_run.h"

namespace cinch::testing {
namespace {

// Functions have no context: the executor knows nothing of a machine.
const kir::KernelProgram* loaded_kernels = nullptr;
std::uint64_t loaded_seed = 0;

template <std::size_t Index>
void run_kernel(const rt::KernelArgs* args, std::uint64_t begin, std::uint64_t end) {
  const kir::Kernel& kernel = loaded_kernels->kernels[Index];
  KernelRun(*loaded_kernels, kernel, *args).run(begin, end, loaded_seed += 0x9e3779b97f4a7c15ull);
}

constexpr std::size_t kMaxKernels = 1024;

template <std::size_t... Index>
constexpr std::array<rt::KernelFunction, sizeof...(Index)> kernel_functions(
    std::index_sequence<Index...>) {
  return {run_kernel<Index>...};
}

rt::ProgramImage image_without_code(const kir::KernelProgram& kernels) {
  rt::ProgramImage image;
  image.info = kernels.info;
  image.target = "cpu:x86-64";
  image.fingerprint = rt::fingerprint(kernels.info);
  image.buffers = kernels.buffers;
  image.size_exprs = kernels.size_exprs;
  for (const kir::Kernel& kernel : kernels.kernels) image.kernels.push_back(kernel.info);
  image.messages = kernels.messages;
  image.constants = kernels.constants;
  image.entries = kernels.entries;
  return image;
}

}  // namespace

rt::Result<std::shared_ptr<const rt::LoadedProgram>> load_on_machine(
    const kir::KernelProgram& kernels, std::uint64_t order_seed) {
  static constexpr auto kFunctions = kernel_functions(std::make_index_sequence<kMaxKernels>());
  const std::size_t count = kernels.kernels.size();
  if (count > kMaxKernels) return rt::fail(rt::ErrorKind::Unavailable, "too many kernels");
  loaded_kernels = &kernels;
  loaded_seed = order_seed;
  return rt::LoadedProgram::from_functions(image_without_code(kernels),
                                           {kFunctions.begin(), kFunctions.begin() + count});
}

}  // namespace cinch::testing
