// The levels that this machine runs, and the kernels of images for it.
#include "runtime/module/cpu_module.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cinch::rt {
namespace {

bool has_v2() {
  return __builtin_cpu_supports("sse3") && __builtin_cpu_supports("ssse3") &&
         __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
         __builtin_cpu_supports("popcnt");
}

bool has_v3() {
  return has_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("f16c") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("movbe");
}

bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}

constexpr std::string_view kCpuPrefix = "cpu:";
constexpr std::string_view kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

}  // namespace

std::string_view host_level() {
  static const std::string_view kLevel = has_v4()   ? "x86-64-v4"
                                         : has_v3() ? "x86-64-v3"
                                         : has_v2() ? "x86-64-v2"
                                                    : "x86-64";
  return kLevel;
}

std::string_view host_cpu_arch() {
  return host_level() == "x86-64-v2" ? "x86-64" : host_level();
}

bool host_supports(std::string_view arch) {
  const auto* const end = std::end(kLevels);
  const auto* const wanted = std::find(std::begin(kLevels), end, arch);
  return wanted != end && wanted <= std::find(std::begin(kLevels), end, host_level());
}

Result<CpuModule> CpuModule::load(std::span<const std::uint8_t> shared_object) {
  Result<SharedObject> object = SharedObject::load(shared_object, "kernels");
  CINCH_TRY(object);
  return CpuModule(std::move(*object));
}

Result<CpuModule> CpuModule::load(const ProgramImage& image) {
  if (!image.target.starts_with(kCpuPrefix)) {
    return fail(ErrorKind::Unavailable, "image for target " + image.target + ", not a CPU");
  }
  const std::string_view arch = std::string_view(image.target).substr(kCpuPrefix.size());
  if (!host_supports(arch)) {
    return fail(ErrorKind::Unavailable,
                "image for " + image.target + ", this machine has " + std::string(host_cpu_arch()));
  }
  Result<CpuModule> module = load(image.binary);
  if (!module) return module;
  for (const KernelInfo& info : image.kernels) {
    const KernelFunction kernel = module->find(info.symbol);
    if (!kernel) return fail(ErrorKind::CorruptFile, "kernel " + info.symbol + " is missing");
    module->kernels_.push_back(kernel);
  }
  return module;
}

KernelFunction CpuModule::find(const std::string& symbol) const {
  return reinterpret_cast<KernelFunction>(object_.find(symbol.c_str()));
}

}  // namespace cinch::rt
