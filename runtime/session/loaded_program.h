// An image that is ready to run: validated, its binary loaded and its kernels found. All sessions
// of one program share it. Code that was compiled quickly is replaced as soon as better code is
// found.
#pragma once
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/exec/executor.h"
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

/// Returns an image of the same program with better code, if there is one yet.
using FindBetterCode = std::function<std::optional<ProgramImage>()>;

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

  /// The best code so far. Now and then the call asks `find_better`: a tenth of a second after
  /// loading, then ever less often, until it finds an image or half an hour has passed. An image of
  /// another program is not used. From any thread.
  std::shared_ptr<const LoadedCode> code() const;

 private:
  using Clock = std::chrono::steady_clock;
  LoadedProgram() = default;
  void look_for_better_code(Clock::time_point now) const;

  ProgramImage image_;
  Clock::time_point loaded_at_ = Clock::now();
  mutable std::mutex mutex_;  // of what follows
  mutable std::shared_ptr<const LoadedCode> code_;
  mutable FindBetterCode find_better_;  // empty: nothing to look for
  mutable Clock::time_point next_look_;
};

/// Returns the program's image, which keeps the program alive.
inline std::shared_ptr<const ProgramImage> image_of(std::shared_ptr<const LoadedProgram> program) {
  const ProgramImage& image = program->image();
  return {std::move(program), &image};
}

}  // namespace cinch::rt
