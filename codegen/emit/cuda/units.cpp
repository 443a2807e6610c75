// Kernels are compared as they are printed under one name, without the lines that say where their
// buffers and sizes are in the launch's tables. So the comparison covers everything that the
// emitter printed.
#include "codegen/emit/cuda/program.h"

#include <map>
#include <tuple>

#include "codegen/emit/cuda/kernel/kernel.h"

namespace cinch::codegen {
namespace {

// How a kernel is launched, which its text does not say.
auto launch_key(const CudaShape& shape, const kir::Kernel& kernel) {
  return std::tuple(shape.block_warps, shape.team_warps, shape.multiple, shape.is_single_block,
                    shape.shared_bytes, shape.resident_blocks, kernel.info.is_sequential);
}

}  // namespace

std::vector<CudaUnit> cuda_units(const kir::KernelProgram& program, std::uint32_t block_warps) {
  using Key = std::tuple<decltype(launch_key({}, {})), std::string, std::string, std::string>;
  std::map<Key, std::size_t> known;
  std::vector<CudaUnit> units;
  std::vector<std::vector<CudaPlaces>> places;
  for (std::size_t k = 0; k < program.kernels.size(); ++k) {
    const kir::Kernel& kernel = program.kernels[k];
    CudaFunction made = emit_cuda_kernel(program, kernel, block_warps, "kernel");
    Key key(launch_key(cuda_shape(program, kernel, block_warps), kernel), std::move(made.front),
            std::move(made.back), made.places.kinds());
    const auto [unit, is_new] = known.emplace(std::move(key), units.size());
    if (is_new) {
      units.emplace_back();
      places.emplace_back();
    }
    units[unit->second].kernels.push_back(k);
    places[unit->second].push_back(std::move(made.places));
  }
  for (std::size_t u = 0; u < units.size(); ++u) {
    const kir::Kernel& first = program.kernels[units[u].kernels[0]];
    const CudaFunction made = emit_cuda_kernel(program, first, block_warps, first.info.symbol);
    units[u].text = made.front + CudaPlaces::lines(places[u]) + made.back;
  }
  return units;
}

}  // namespace cinch::codegen
