// Body of program.h.
#include "runtime/gpu/program.h"

#include <fmt/format.h>

#include "runtime/gpu/beside_captures.h"
#include "runtime/image/validate.h"

namespace cinch::rt {
GpuKernels::~GpuKernels() {
  if (module_ == nullptr) return;
  const GpuDevice::Scope scope(device_);
  device_.freeing().unload(module_);
}

Status GpuKernels::find(const std::string& symbol, GpuFunction& function) const {
  const GpuCode code = device_.driver().module_function(&function, module_, symbol.c_str());
  if (code == kGpuNotFound)
    return fail(ErrorKind::CorruptFile, "image: its binary has no kernel " + symbol);
  return device_.status(code, "looking a kernel up");
}

Status GpuKernels::find_all(const ProgramImage& image) {
  for (const KernelInfo& kernel : image.kernels) {
    GpuFunction& function = kernels_.emplace_back();
    if (kernel.cuda.is_single_block) continue;
    CINCH_TRY(find(kernel.symbol, function));
  }
  CINCH_TRY(find(kGpuServeSymbol, serve_));
  return find(kGpuStepsSymbol, steps_);
}

Result<std::unique_ptr<const GpuKernels>> GpuKernels::load(const GpuDevice& device,
                                                           const ProgramImage& image) {
  std::unique_ptr<GpuKernels> kernels(new GpuKernels(device));
  const GpuDevice::Scope scope(device);
  const BesideCaptures beside(device.driver());
  const GpuCode code = device.driver().module_load(&kernels->module_, image.binary.data());
  CINCH_TRY(device.status(code, "loading kernels"));
  CINCH_TRY(kernels->find_all(image));
  return kernels;
}

GpuProgram::GpuProgram(std::shared_ptr<const GpuDevice> device, ProgramImage image)
    : device_(std::move(device)), image_(std::move(image)) {}

Result<std::shared_ptr<const GpuProgram>> GpuProgram::load(std::shared_ptr<const GpuDevice> device,
                                                           ProgramImage image,
                                                           FindBetterCode find_better) {
  CINCH_TRY(validate_image(image));
  const std::string wanted = "cuda:" + device->arch();
  if (image.target != wanted) {
    return fail(ErrorKind::Unavailable, fmt::format("an image for {}; the device {} takes {}",
                                                    image.target, device->name(), wanted));
  }
  auto kernels = GpuKernels::load(*device, image);
  CINCH_TRY(kernels);
  std::shared_ptr<GpuProgram> program(new GpuProgram(std::move(device), std::move(image)));
  program->kernels_.push_back(std::move(*kernels));
  program->search_ = BetterCodeSearch(std::move(find_better));
  return program;
}

const GpuKernels& GpuProgram::kernels() const {
  const std::lock_guard lock(mutex_);
  // Code that cannot be loaded is not an error: the present code serves.
  const auto better = search_.look(image_);
  if (better && has_object(*better)) {
    if (auto kernels = GpuKernels::load(*device_, *better)) kernels_.push_back(std::move(*kernels));
  }
  return *kernels_.back();
}

}  // namespace cinch::rt
