// An image that is ready to run: validated, its binary loaded and its kernels found. All sessions
// of one program share it. Code that was compiled quickly is replaced as soon as better code is
// found.
#pragma once
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/exec/executor.h"
#include "runtime/image/better_code.h"
#include "runtime/image/image.h"

namespace cinch::rt {

class CpuModule;

/// The kernels of an image, by kernel index.
struct LoadedCode {
  LoadedCode();
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  std::vector<KernelFunction> kernels;
  std::unique_ptr<CpuModule> module;  // null: the kernels are the process's own
};

class LoadedProgram {
 public:
  /// Errors: CorruptFile (not well formed, a kernel's symbol is missing), Unavailable (a target
  /// that this machine cannot run), and those of the module.
  static Result<std::shared_ptr<const LoadedProgram>> load(ProgramImage image,
                                                           FindBetterCode find_better = {});

  /// Loads a program whose kernels are already in this process: `kernels` by kernel index. Makes
  /// the same checks, but loads no binary.
  static Result<std::shared_ptr<const LoadedProgram>> from_functions(
      ProgramImage image, std::vector<KernelFunction> kernels);

  const ProgramImage& image() const { return image_; }
  const ProgramInfo& info() const { return image_.info; }

  /// The best code so far. Looks for better code as BetterCodeSearch does. From any thread.
  std::shared_ptr<const LoadedCode> code() const;

 private:
  LoadedProgram() = default;

  ProgramImage image_;
  mutable std::mutex mutex_;  // of what follows
  mutable std::shared_ptr<const LoadedCode> code_;
  mutable BetterCodeSearch search_;
};

/// Returns the program's image, which keeps the program alive.
inline std::shared_ptr<const ProgramImage> image_of(std::shared_ptr<const LoadedProgram> program) {
  const ProgramImage& image = program->image();
  return {std::move(program), &image};
}

}  // namespace cinch::rt
