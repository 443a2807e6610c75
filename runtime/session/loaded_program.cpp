// Loading: validation first, then the binary.
#include "runtime/session/loaded_program.h"

#include "runtime/image/validate.h"
#include "runtime/module/cpu_module.h"

namespace cinch::rt {
namespace {

Result<std::shared_ptr<const LoadedCode>> load_code(const ProgramImage& image) {
  auto module = CpuModule::load(image);
  CINCH_TRY(module);
  auto code = std::make_shared<LoadedCode>();
  for (std::size_t i = 0; i < image.kernels.size(); ++i) {
    code->kernels.push_back(module->kernel(i));
  }
  code->module = std::make_unique<CpuModule>(std::move(*module));
  return code;
}

}  // namespace

LoadedCode::LoadedCode() = default;
LoadedCode::~LoadedCode() = default;

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::load(ProgramImage image,
                                                                 FindBetterCode find_better) {
  CINCH_TRY(validate_image(image));
  auto code = load_code(image);
  CINCH_TRY(code);
  std::shared_ptr<LoadedProgram> program(new LoadedProgram);
  program->code_ = std::move(*code);
  program->image_ = std::move(image);
  program->search_ = BetterCodeSearch(std::move(find_better));
  return program;
}

Result<std::shared_ptr<const LoadedProgram>> LoadedProgram::from_functions(
    ProgramImage image, std::vector<KernelFunction> kernels) {
  CINCH_TRY(validate_image(image));
  if (kernels.size() != image.kernels.size()) {
    return fail(ErrorKind::InvalidArgument, "as many functions as the image has kernels expected");
  }
  auto code = std::make_shared<LoadedCode>();
  code->kernels = std::move(kernels);
  std::shared_ptr<LoadedProgram> program(new LoadedProgram);
  program->code_ = std::move(code);
  program->image_ = std::move(image);
  return program;
}

std::shared_ptr<const LoadedCode> LoadedProgram::code() const {
  const std::lock_guard lock(mutex_);
  // Code that cannot be loaded is not an error: the present code serves.
  if (const auto better = search_.look(image_)) {
    if (auto code = load_code(*better)) code_ = std::move(*code);
  }
  return code_;
}

}  // namespace cinch::rt
