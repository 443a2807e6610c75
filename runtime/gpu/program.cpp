// Body of program.h.
#include "runtime/gpu/program.h"

#include <fmt/format.h>

#include "runtime/image/validate.h"

namespace cinch::rt {

GpuProgram::GpuProgram(std::shared_ptr<const GpuDevice> device, ProgramImage image)
    : device_(std::move(device)), image_(std::move(image)) {}

GpuProgram::~GpuProgram() {
  if (module_ == nullptr) return;
  const GpuDevice::Scope scope(*device_);
  device_->freeing().unload(module_);
}

Status GpuProgram::find_functions() {
  const GpuDriver& driver = device_->driver();
  const auto find = [&](const std::string& symbol, GpuFunction& function) -> Status {
    const GpuCode code = driver.module_function(&function, module_, symbol.c_str());
    if (code == kGpuNotFound) {
      return fail(ErrorKind::CorruptFile, "image: its binary has no kernel " + symbol);
    }
    return device_->status(code, "looking a kernel up");
  };
  for (const KernelInfo& kernel : image_.kernels) {
    GpuFunction& function = kernels_.emplace_back();
    if (kernel.cuda.is_single_block) continue;
    CINCH_TRY(find(kernel.symbol, function));
  }
  Status status = find(kGpuServeSymbol, serve_);
  return status ? find(kGpuStepsSymbol, steps_) : status;
}

Result<std::shared_ptr<const GpuProgram>> GpuProgram::load(std::shared_ptr<const GpuDevice> device,
                                                           ProgramImage image) {
  CINCH_TRY(validate_image(image));
  const std::string wanted = "cuda:" + device->arch();
  if (image.target != wanted) {
    return fail(ErrorKind::Unavailable, fmt::format("an image for {}; the device {} takes {}",
                                                    image.target, device->name(), wanted));
  }
  std::shared_ptr<GpuProgram> program(new GpuProgram(std::move(device), std::move(image)));
  const GpuDevice::Scope scope(*program->device_);
  const GpuCode code =
      program->device_->driver().module_load(&program->module_, program->image_.binary.data());
  CINCH_TRY(program->device_->status(code, "loading kernels"));
  CINCH_TRY(program->find_functions());
  return program;
}

}  // namespace cinch::rt
