// A GPU image that is ready to run on one device: its binary loaded, its kernels found. All
// sessions of one program on that device share it.
#pragma once
#include <memory>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/image/gpu_abi.h"
#include "runtime/image/image.h"

namespace cinch::rt {

class GpuProgram {
 public:
  /// Errors: CorruptFile (not well formed, a kernel's symbol is missing), Unavailable (an image for
  /// another device), Device.
  static Result<std::shared_ptr<const GpuProgram>> load(std::shared_ptr<const GpuDevice> device,
                                                        ProgramImage image);
  ~GpuProgram();
  GpuProgram(const GpuProgram&) = delete;
  GpuProgram& operator=(const GpuProgram&) = delete;

  const ProgramImage& image() const { return image_; }
  const ProgramInfo& info() const { return image_.info; }
  const std::shared_ptr<const GpuDevice>& device() const { return device_; }
  /// Null for a kernel of a single block, which steps() runs.
  GpuFunction kernel(std::size_t index) const { return kernels_[index]; }
  GpuFunction serve() const { return serve_; }  // kGpuServeSymbol
  GpuFunction steps() const { return steps_; }  // kGpuStepsSymbol

 private:
  GpuProgram(std::shared_ptr<const GpuDevice> device, ProgramImage image);
  Status find_functions();

  std::shared_ptr<const GpuDevice> device_;
  ProgramImage image_;
  GpuModuleHandle module_ = nullptr;
  std::vector<GpuFunction> kernels_;
  GpuFunction serve_ = nullptr, steps_ = nullptr;
};

}  // namespace cinch::rt
