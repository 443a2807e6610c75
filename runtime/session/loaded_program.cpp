// Loading: validation first, then the binary.
#include "runtime/session/loaded_program.h"

#include "runtime/image/validate.h"
#include "runtime/module/cpu_module.h"

namespace cinch::rt {

LoadedProgram::LoadedProgram() = default;
LoadedProgram::~LoadedProgram() = default;

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::load(ProgramImage image) {
  CINCH_TRY(validate_image(image));
  auto module = CpuModule::load(image);
  CINCH_TRY(module);
  std::shared_ptr<LoadedProgram> program(new LoadedProgram);
  for (std::size_t i = 0; i < image.kernels.size(); ++i) {
    program->kernels_.push_back(module->kernel(i));
  }
  program->module_ = std::make_unique<CpuModule>(std::move(*module));
  program->image_ = std::move(image);
  return program;
}

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::from_functions(
    ProgramImage image, std::vector<KernelFunction> kernels) {
  CINCH_TRY(validate_image(image));
  if (kernels.size() != image.kernels.size()) {
    return fail(ErrorKind::InvalidArgument, "as many functions as the image has kernels expected");
  }
  std::shared_ptr<LoadedProgram> program(new LoadedProgram);
  program->kernels_ = std::move(kernels);
  program->image_ = std::move(image);
  return program;
}

}  // namespace cinch::rt
