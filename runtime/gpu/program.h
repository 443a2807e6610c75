// A GPU image that is ready to run on one device: its binary loaded, its kernels found. All
// sessions of one program on that device share it. Code that was compiled quickly is replaced as
// soon as better code is found.
#pragma once

#include "runtime/gpu/device.h"
#include "runtime/image/better_code.h"
#include "runtime/image/gpu_abi.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// The kernels of one binary on a device.
class GpuKernels {
 public:
  /// Errors: CorruptFile (a kernel's symbol is missing), Device.
  static Result<std::unique_ptr<const GpuKernels>> load(const GpuDevice& device,
                                                        const ProgramImage& image);
  ~GpuKernels();
  GpuKernels(const GpuKernels&) = delete;
  GpuKernels& operator=(const GpuKernels&) = delete;

  /// Null for a kernel of a single block, which steps() runs.
  GpuFunction kernel(std::size_t index) const { return kernels_[index]; }
  GpuFunction serve() const { return serve_; }  // kGpuServeSymbol
  GpuFunction steps() const { return steps_; }  // kGpuStepsSymbol

 private:
  explicit GpuKernels(const GpuDevice& device) : device_(device) {}
  Status find(const std::string& symbol, GpuFunction& function) const;
  Status find_all(const ProgramImage& image);

  const GpuDevice& device_;
  GpuModuleHandle module_ = nullptr;
  std::vector<GpuFunction> kernels_;
  GpuFunction serve_ = nullptr, steps_ = nullptr;
};

class GpuProgram {
 public:
  /// Errors: CorruptFile (not well formed), Unavailable (an image for another device), those of
  /// GpuKernels.
  static Result<std::shared_ptr<const GpuProgram>> load(std::shared_ptr<const GpuDevice> device,
                                                        ProgramImage image,
                                                        FindBetterCode find_better = {});

  const ProgramImage& image() const { return image_; }
  const ProgramInfo& info() const { return image_.info; }
  const std::shared_ptr<const GpuDevice>& device() const { return device_; }

  /// The best kernels so far. Looks for better code as BetterCodeSearch does. From any thread.
  /// Former kernels stay as long as the program, since a graph may have captured them. PTX that is
  /// found is not used: the driver would compile it during the call.
  const GpuKernels& kernels() const;

 private:
  GpuProgram(std::shared_ptr<const GpuDevice> device, ProgramImage image);

  std::shared_ptr<const GpuDevice> device_;
  ProgramImage image_;
  mutable std::mutex mutex_;                                        // of what follows
  mutable std::vector<std::unique_ptr<const GpuKernels>> kernels_;  // the last is the best
  mutable BetterCodeSearch search_;
};

}  // namespace cinch::rt
