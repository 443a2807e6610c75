// NVIDIA's driver behind driver.h.
#include "runtime/gpu/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace cinch::rt {
namespace {

constexpr const char* kDriver = "libcuda.so.1";

// Looks up functions and remembers the first that is missing.
class Symbols {
 public:
  explicit Symbols(void* library) : library_(library) {}

  template <typename F>
  void find(F*& function, const char* name) {
    function = reinterpret_cast<F*>(::dlsym(library_, name));
    if (function == nullptr && missing_ == nullptr) missing_ = name;
  }
  const char* missing() const { return missing_; }

 private:
  void* library_;
  const char* missing_ = nullptr;
};

void find_device_functions(Symbols& symbols, GpuDriver& driver) {
  symbols.find(driver.init, "cuInit");
  symbols.find(driver.driver_version, "cuDriverGetVersion");
  symbols.find(driver.device_count, "cuDeviceGetCount");
  symbols.find(driver.device_get, "cuDeviceGet");
  symbols.find(driver.device_name, "cuDeviceGetName");
  symbols.find(driver.device_attribute, "cuDeviceGetAttribute");
  symbols.find(driver.context_retain, "cuDevicePrimaryCtxRetain");
  symbols.find(driver.context_release, "cuDevicePrimaryCtxRelease_v2");
  symbols.find(driver.context_push, "cuCtxPushCurrent_v2");
  symbols.find(driver.context_pop, "cuCtxPopCurrent_v2");
  symbols.find(driver.host_register, "cuMemHostRegister_v2");
  symbols.find(driver.host_unregister, "cuMemHostUnregister");
  symbols.find(driver.memory_info, "cuMemGetInfo_v2");
  symbols.find(driver.memory_alloc, "cuMemAlloc_v2");
  symbols.find(driver.memory_free, "cuMemFree_v2");
  symbols.find(driver.memory_alloc_async, "cuMemAllocAsync");
  symbols.find(driver.memory_free_async, "cuMemFreeAsync");
  symbols.find(driver.context_synchronize, "cuCtxSynchronize");
  symbols.find(driver.pointer_attribute, "cuPointerGetAttribute");
  symbols.find(driver.copy_to_device, "cuMemcpyHtoDAsync_v2");
  symbols.find(driver.copy_to_host, "cuMemcpyDtoHAsync_v2");
  symbols.find(driver.copy_on_device, "cuMemcpyDtoDAsync_v2");
  symbols.find(driver.fill, "cuMemsetD8Async");
  symbols.find(driver.error_name, "cuGetErrorName");
  symbols.find(driver.error_text, "cuGetErrorString");
}

void find_launch_functions(Symbols& symbols, GpuDriver& driver) {
  symbols.find(driver.stream_create, "cuStreamCreate");
  symbols.find(driver.stream_destroy, "cuStreamDestroy_v2");
  symbols.find(driver.stream_synchronize, "cuStreamSynchronize");
  symbols.find(driver.stream_is_capturing, "cuStreamIsCapturing");
  symbols.find(driver.capture_begin, "cuStreamBeginCapture_v2");
  symbols.find(driver.capture_end, "cuStreamEndCapture");
  symbols.find(driver.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  symbols.find(driver.graph_instantiate, "cuGraphInstantiateWithFlags");
  symbols.find(driver.graph_launch, "cuGraphLaunch");
  symbols.find(driver.graph_exec_destroy, "cuGraphExecDestroy");
  symbols.find(driver.graph_destroy, "cuGraphDestroy");
  symbols.find(driver.event_create, "cuEventCreate");
  symbols.find(driver.event_destroy, "cuEventDestroy_v2");
  symbols.find(driver.event_record, "cuEventRecord");
  symbols.find(driver.event_synchronize, "cuEventSynchronize");
  symbols.find(driver.event_query, "cuEventQuery");
  symbols.find(driver.stream_wait_event, "cuStreamWaitEvent");
  symbols.find(driver.event_elapsed_time, "cuEventElapsedTime");
  symbols.find(driver.module_load, "cuModuleLoadData");
  symbols.find(driver.module_unload, "cuModuleUnload");
  symbols.find(driver.module_function, "cuModuleGetFunction");
  symbols.find(driver.launch, "cuLaunchKernel");
  symbols.find(driver.function_attribute, "cuFuncGetAttribute");
  symbols.find(driver.occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
}

Result<GpuDriver> open_driver() {
  void* library = ::dlopen(kDriver, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorKind::Unavailable,
                fmt::format("no CUDA driver: {}", reason != nullptr ? reason : kDriver));
  }
  GpuDriver driver{};
  Symbols symbols(library);
  find_device_functions(symbols, driver);
  find_launch_functions(symbols, driver);
  if (symbols.missing() != nullptr) {
    return fail(ErrorKind::Unavailable,
                fmt::format("{} has no {}: a driver of CUDA 12 or newer is needed", kDriver,
                            symbols.missing()));
  }
  return driver;
}

ErrorKind kind_of(GpuCode code) {
  switch (code) {
    case kGpuOutOfMemory:
      return ErrorKind::OutOfMemory;
    case kGpuNoDevice:
    case kGpuNoBinary:
    case kGpuUnsupportedPtx:
      return ErrorKind::Unavailable;
    case kGpuInvalidValue:
    case kGpuInvalidHandle:
      return ErrorKind::InvalidArgument;
    default:
      return ErrorKind::Device;
  }
}

const char* advice(GpuCode code) {
  switch (code) {
    case kGpuOutOfMemory:
      return "; free memory of the device, or use fewer or smaller tensors";
    case kGpuNoDevice:
      return "; the driver lists no device (see nvidia-smi, CUDA_VISIBLE_DEVICES)";
    case kGpuNoBinary:
      return "; the code was compiled for another architecture: compile for this device";
    case kGpuUnsupportedPtx:
      return "; the driver is older than the NVRTC that compiled this: update the driver, or set "
             "CINCH_NVRTC to an older NVRTC";
    case kGpuInvalidHandle:
      return "; was the stream destroyed?";
    case kGpuIllegalAddress:
    case kGpuLaunchFailed:
      return "; the device's context can no longer be used: end the process";
    default:
      return "";
  }
}

}  // namespace

Result<const GpuDriver*> open_cuda_driver() {
  static const Result<GpuDriver> kOpened = open_driver();
  CINCH_TRY(kOpened);
  return &*kOpened;
}

Status gpu_status(const GpuDriver& driver, GpuCode code, const char* what) {
  if (code == kGpuSuccess) return Ok{};
  const char* name = nullptr;
  const char* text = nullptr;
  driver.error_name(code, &name);
  driver.error_text(code, &text);
  return fail(kind_of(code),
              fmt::format("{}: {} ({}){}", what, name != nullptr ? name : "unknown error",
                          text != nullptr ? text : std::to_string(code), advice(code)),
              code);
}

}  // namespace cinch::rt
