// Loading: validation first, then the binary. Then the search for better code.
#include "runtime/session/loaded_program.h"

#include <algorithm>

#include "runtime/image/image_file.h"
#include "runtime/image/validate.h"
#include "runtime/module/cpu_module.h"

namespace cinch::rt {
namespace {

using std::chrono::milliseconds;

// A look opens a file. Compiling takes some tenths of a second if the machine has a processor to
// spare, and much longer if it has none.
constexpr milliseconds kFirstLook{100}, kLongestPause{5000};
constexpr int kPauseShare = 4;  // of the time since loading
constexpr std::chrono::minutes kGivesUpAfter{30};

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

// Do the images differ in their code only? Bound values of parameters do not count: callers take
// them from the image that they have.
bool is_same_program(const ProgramImage& a, ProgramImage b) {
  if (a.fingerprint != b.fingerprint) return false;
  ProgramImage without_code = a;
  without_code.binary.clear();
  b.binary.clear();
  b.info = a.info;
  return write_image(without_code) == write_image(b);
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
  program->find_better_ = std::move(find_better);
  program->next_look_ = program->loaded_at_ + kFirstLook;
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
  if (find_better_) {
    if (const auto now = Clock::now(); now >= next_look_) look_for_better_code(now);
  }
  return code_;
}

// Code that cannot be loaded is no error: the present code serves.
void LoadedProgram::look_for_better_code(Clock::time_point now) const {
  const auto pause = std::chrono::duration_cast<milliseconds>((now - loaded_at_) / kPauseShare);
  next_look_ = now + std::clamp(pause, kFirstLook, kLongestPause);
  const std::optional<ProgramImage> better = find_better_();
  if (!better && now - loaded_at_ < kGivesUpAfter) return;
  find_better_ = nullptr;
  if (!better || !is_same_program(image_, *better)) return;
  if (auto code = load_code(*better)) code_ = std::move(*code);
}

}  // namespace cinch::rt
