// An image that is ready to run: validated, its binary loaded and its kernels found. All sessions
// of one program share it.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/exec/executor.h"
#include "runtime/image/image.h"

namespace cinch::rt {

class CpuModule;

class LoadedProgram {
 public:
  /// Errors: CorruptFile (not well formed, a kernel's symbol is missing), Unavailable (a target
  /// that this machine cannot run), and those of the module.
  static Result<std::shared_ptr<const LoadedProgram>> load(ProgramImage image);

  /// Loads a program whose kernels are already in this process: `kernels` by kernel index. Makes
  /// the same checks, but loads no binary.
  static Result<std::shared_ptr<const LoadedProgram>> from_functions(
      ProgramImage image, std::vector<KernelFunction> kernels);

  ~LoadedProgram();
  const ProgramImage& image() const { return image_; }
  const ProgramInfo& info() const { return image_.info; }
  const std::vector<KernelFunction>& kernels() const { return kernels_; }

 private:
  LoadedProgram();
  ProgramImage image_;
  std::unique_ptr<CpuModule> module_;
  std::vector<KernelFunction> kernels_;
};

/// Returns the program's image, which keeps the program alive.
inline std::shared_ptr<const ProgramImage> image_of(std::shared_ptr<const LoadedProgram> program) {
  const ProgramImage& image = program->image();
  return {std::move(program), &image};
}

}  // namespace cinch::rt
