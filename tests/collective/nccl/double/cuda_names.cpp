// The driver under NVIDIA's names, so that whole programs run over the fake: as libcuda.so.1 and
// libnccl.so.2. Functions that no transport calls exist by name only.
#include <utility>

#include "tests/collective/nccl/double/control.h"

using cinch::rt::GpuAddress;
using cinch::rt::GpuCode;
using cinch::rt::GpuContext;
using cinch::rt::GpuDriver;
using cinch::rt::GpuEvent;
using cinch::rt::GpuStream;

extern "C" const GpuDriver* nccl_double_driver();

namespace {

const GpuDriver& table() {
  return *nccl_double_driver();
}

constexpr GpuCode kNotSupported = 801;

}  // namespace

// The names are NVIDIA's. NOLINTBEGIN(readability-identifier-naming)
#pragma GCC visibility push(default)
extern "C" {

GpuCode cuInit(unsigned flags) {
  return table().init(flags);
}
GpuCode cuDriverGetVersion(int* version) {
  *version = 13000;
  return cinch::rt::kGpuSuccess;
}
GpuCode cuDeviceGetCount(int* count) {
  return table().device_count(count);
}
GpuCode cuDeviceGet(int* device, int ordinal) {
  return table().device_get(device, ordinal);
}
GpuCode cuDeviceGetName(char* name, int size, int device) {
  return table().device_name(name, size, device);
}
GpuCode cuDeviceGetAttribute(int* value, int attribute, int device) {
  return table().device_attribute(value, attribute, device);
}
GpuCode cuDevicePrimaryCtxRetain(GpuContext* context, int device) {
  return table().context_retain(context, device);
}
GpuCode cuDevicePrimaryCtxRelease_v2(int device) {
  return table().context_release(device);
}
GpuCode cuCtxPushCurrent_v2(GpuContext context) {
  return table().context_push(context);
}
GpuCode cuCtxPopCurrent_v2(GpuContext* context) {
  return table().context_pop(context);
}
GpuCode cuCtxSynchronize() {
  return table().context_synchronize();
}
GpuCode cuMemAlloc_v2(GpuAddress* address, std::size_t size_bytes) {
  return table().memory_alloc(address, size_bytes);
}
GpuCode cuMemFree_v2(GpuAddress address) {
  return table().memory_free(address);
}
GpuCode cuPointerGetAttribute(void* value, int attribute, GpuAddress address) {
  return table().pointer_attribute(value, attribute, address);
}
GpuCode cuMemcpyHtoDAsync_v2(GpuAddress to, const void* from, std::size_t size, GpuStream stream) {
  return table().copy_to_device(to, from, size, stream);
}
GpuCode cuMemcpyDtoHAsync_v2(void* to, GpuAddress from, std::size_t size, GpuStream stream) {
  return table().copy_to_host(to, from, size, stream);
}
GpuCode cuMemcpyDtoDAsync_v2(GpuAddress to, GpuAddress from, std::size_t size, GpuStream stream) {
  return table().copy_on_device(to, from, size, stream);
}
GpuCode cuMemsetD8Async(GpuAddress to, unsigned char byte, std::size_t size, GpuStream stream) {
  return table().fill(to, byte, size, stream);
}
GpuCode cuStreamCreate(GpuStream* stream, unsigned flags) {
  return table().stream_create(stream, flags);
}
GpuCode cuStreamDestroy_v2(GpuStream stream) {
  return table().stream_destroy(stream);
}
GpuCode cuStreamSynchronize(GpuStream stream) {
  return table().stream_synchronize(stream);
}
GpuCode cuThreadExchangeStreamCaptureMode(int* mode) {
  thread_local int own = 0;  // nothing is captured here
  std::swap(*mode, own);
  return cinch::rt::kGpuSuccess;
}
GpuCode cuStreamWaitEvent(GpuStream stream, GpuEvent event, unsigned flags) {
  return table().stream_wait_event(stream, event, flags);
}
GpuCode cuEventCreate(GpuEvent* event, unsigned flags) {
  return table().event_create(event, flags);
}
GpuCode cuEventDestroy_v2(GpuEvent event) {
  return table().event_destroy(event);
}
GpuCode cuEventRecord(GpuEvent event, GpuStream stream) {
  return table().event_record(event, stream);
}
GpuCode cuEventQuery(GpuEvent event) {
  return table().event_query(event);
}
GpuCode cuEventSynchronize(GpuEvent event) {
  return table().event_synchronize(event);
}
GpuCode cuGetErrorName(GpuCode code, const char** name) {
  return table().error_name(code, name);
}
GpuCode cuGetErrorString(GpuCode code, const char** text) {
  return table().error_text(code, text);
}

#define CINCH_ABSENT(name) \
  GpuCode name() {         \
    return kNotSupported;  \
  }
CINCH_ABSENT(cuMemHostRegister_v2)
CINCH_ABSENT(cuMemHostUnregister)
CINCH_ABSENT(cuMemGetInfo_v2)
CINCH_ABSENT(cuMemAllocAsync)
CINCH_ABSENT(cuMemFreeAsync)
CINCH_ABSENT(cuStreamIsCapturing)
CINCH_ABSENT(cuStreamBeginCapture_v2)
CINCH_ABSENT(cuStreamEndCapture)
CINCH_ABSENT(cuGraphInstantiateWithFlags)
CINCH_ABSENT(cuGraphLaunch)
CINCH_ABSENT(cuGraphExecDestroy)
CINCH_ABSENT(cuGraphDestroy)
CINCH_ABSENT(cuEventElapsedTime)
CINCH_ABSENT(cuModuleLoadData)
CINCH_ABSENT(cuModuleUnload)
CINCH_ABSENT(cuModuleGetFunction)
CINCH_ABSENT(cuLaunchKernel)
CINCH_ABSENT(cuFuncGetAttribute)
CINCH_ABSENT(cuOccupancyMaxActiveBlocksPerMultiprocessor)
#undef CINCH_ABSENT
}
#pragma GCC visibility pop
// NOLINTEND(readability-identifier-naming)
