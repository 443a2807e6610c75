// The few functions of the driver's C interface that this takes are declared here.
#include "runtime/module/cuda_device.h"

#include <dlfcn.h>

namespace cinch::rt {
namespace {

constexpr const char* kDriver = "libcuda.so.1";
constexpr int kNoDevice = 100;  // CUDA_ERROR_NO_DEVICE
constexpr int kMajorAttribute = 75, kMinorAttribute = 76;

// Looked up by name; each gives a CUresult, 0 on success.
struct DriverFunctions {
  int (*init)(unsigned flags);
  int (*device_get)(int* device, int ordinal);
  int (*device_get_name)(char* name, int size, int device);
  int (*device_get_attribute)(int* value, int attribute, int device);
};

template <typename F>
bool look_up(void* library, const char* name, F*& function) {
  function = reinterpret_cast<F*>(::dlsym(library, name));
  return function != nullptr;
}

// Never closed: the driver keeps threads.
Result<DriverFunctions> open_driver() {
  void* library = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorKind::Unavailable,
                std::string("no CUDA driver: ") + (reason != nullptr ? reason : kDriver));
  }
  DriverFunctions driver{};
  const bool has_all = look_up(library, "cuInit", driver.init) &&
                       look_up(library, "cuDeviceGet", driver.device_get) &&
                       look_up(library, "cuDeviceGetName", driver.device_get_name) &&
                       look_up(library, "cuDeviceGetAttribute", driver.device_get_attribute);
  if (!has_all) return fail(ErrorKind::Unavailable, std::string(kDriver) + " is no CUDA driver");
  return driver;
}

}  // namespace

Result<CudaDevice> find_cuda_device() {
  const auto driver = open_driver();
  if (!driver) return tl::unexpected<Error>(driver.error());
  int device = 0, major = 0, minor = 0;
  char name[256] = {};
  int code = driver->init(0);
  if (code == 0) code = driver->device_get(&device, 0);
  if (code == 0) code = driver->device_get_name(name, sizeof name, device);
  if (code == 0) code = driver->device_get_attribute(&major, kMajorAttribute, device);
  if (code == 0) code = driver->device_get_attribute(&minor, kMinorAttribute, device);
  if (code == kNoDevice) return fail(ErrorKind::Unavailable, "the CUDA driver lists no device");
  if (code != 0) return fail(ErrorKind::Device, "CUDA driver: error " + std::to_string(code), code);
  return CudaDevice{name, "sm_" + std::to_string(10 * major + minor)};
}

}  // namespace cinch::rt
