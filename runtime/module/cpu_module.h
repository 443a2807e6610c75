// CpuModule: the kernels of a CPU image, loaded from the bytes of a shared object. No compiler
// is involved. Also: which x86-64 level this machine has.
#pragma once
#include <string_view>
#include <utility>

#include "runtime/image/image.h"
#include "runtime/module/shared_object.h"

namespace cinch::rt {

/// The highest level of x86-64 that this processor and system can run: "x86-64", "x86-64-v2",
/// "x86-64-v3" or "x86-64-v4".
std::string_view host_level();
/// The highest of them for which images are made; "x86-64-v2" is not used.
std::string_view host_cpu_arch();
/// Can this machine run code for `arch`? False for names that are not levels of x86-64.
bool host_supports(std::string_view arch);

class CpuModule {
 public:
  /// Errors: CorruptFile (not a loadable shared object), Unavailable (no memory file).
  static Result<CpuModule> load(std::span<const std::uint8_t> shared_object);
  /// Loads image.binary and looks up every kernel of image.kernels, in order. Errors: as above;
  /// Unavailable (the image's target is not a CPU, or this machine lacks its instructions);
  /// CorruptFile (a kernel's symbol is missing).
  static Result<CpuModule> load(const ProgramImage& image);

  /// Null if there is no such symbol.
  KernelFunction find(const std::string& symbol) const;
  /// Kernel `index` of the image that the module was loaded from.
  KernelFunction kernel(std::size_t index) const { return kernels_[index]; }

 private:
  explicit CpuModule(SharedObject object) : object_(std::move(object)) {}
  SharedObject object_;
  std::vector<KernelFunction> kernels_;
};

}  // namespace cinch::rt
