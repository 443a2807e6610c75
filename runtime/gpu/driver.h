// The part of the CUDA driver's C interface that Cinch calls, as a table of functions: NVIDIA's
// driver, opened at run time, or an emulated one. No header of NVIDIA's is needed. Names, types and
// meanings are those of the "CUDA Driver API" reference; the symbols in driver.cpp name the
// versions.
#pragma once
#include <cstddef>
#include <cstdint>

#include "runtime/core/error.h"

namespace cinch::rt {

using GpuCode = int;  // CUresult
using GpuContext = struct GpuContextObject*;
using GpuStream = struct GpuStreamObject*;  // null: the default stream
using GpuEvent = struct GpuEventObject*;
using GpuModuleHandle = struct GpuModuleObject*;
using GpuFunction = struct GpuFunctionObject*;
using GpuGraph = struct GpuGraphObject*;
using GpuGraphExec = struct GpuGraphExecObject*;
using GpuAddress = std::uint64_t;  // CUdeviceptr

// CUresult values that Cinch tells apart.
inline constexpr GpuCode kGpuSuccess = 0;
inline constexpr GpuCode kGpuInvalidValue = 1;
inline constexpr GpuCode kGpuOutOfMemory = 2;
inline constexpr GpuCode kGpuNoDevice = 100;
inline constexpr GpuCode kGpuNoBinary = 209;
inline constexpr GpuCode kGpuUnsupportedPtx = 222;
inline constexpr GpuCode kGpuNotFound = 500;
inline constexpr GpuCode kGpuInvalidHandle = 400;
inline constexpr GpuCode kGpuNotReady = 600;
inline constexpr GpuCode kGpuIllegalAddress = 700;
inline constexpr GpuCode kGpuLaunchFailed = 719;
inline constexpr GpuCode kGpuCaptureUnsupported = 900;
inline constexpr GpuCode kGpuCaptureInvalidated = 901;

// The handle that names each thread's own default stream.
inline const auto kGpuStreamOfThread =
    reinterpret_cast<GpuStream>(std::uintptr_t{2});  // NOLINT(performance-no-int-to-ptr)

// CUstreamCaptureMode values that Cinch tells apart.
inline constexpr int kGpuCaptureGlobal = 0;
inline constexpr int kGpuCaptureRelaxed = 2;

// CUstream_flags and CUevent_flags that Cinch uses.
inline constexpr unsigned kGpuStreamNonBlocking = 1;
inline constexpr unsigned kGpuEventWithoutTiming = 2;

// CUdevice_attribute values.
enum class GpuAttribute : int {
  ClockRate = 13,
  Multiprocessors = 16,
  ComputeMajor = 75,
  ComputeMinor = 76,
  MemoryPools = 115,
};

// CUpointer_attribute values, and the CUmemorytype values that Cinch tells apart.
enum class GpuPointerAttribute : int { MemoryType = 2, IsManaged = 8, DeviceOrdinal = 9 };
inline constexpr unsigned kGpuHostMemory = 1;

// CUfunction_attribute values.
enum class GpuFunctionAttribute : int { SharedBytes = 1, LocalBytes = 3, Registers = 4 };

struct GpuDriver {
  GpuCode (*init)(unsigned flags);
  GpuCode (*driver_version)(int* version);
  GpuCode (*device_count)(int* count);
  GpuCode (*device_get)(int* device, int ordinal);
  GpuCode (*device_name)(char* name, int size, int device);
  GpuCode (*device_attribute)(int* value, int attribute, int device);
  GpuCode (*context_retain)(GpuContext* context, int device);
  GpuCode (*context_release)(int device);
  GpuCode (*context_push)(GpuContext context);
  GpuCode (*context_pop)(GpuContext* context);
  // Pins host memory: copies then access it directly, when their stream reaches them. Null if the
  // driver cannot.
  GpuCode (*host_register)(void* memory, std::size_t size_bytes, unsigned flags);
  GpuCode (*host_unregister)(void* memory);
  GpuCode (*memory_info)(std::size_t* free_bytes, std::size_t* total_bytes);
  GpuCode (*memory_alloc)(GpuAddress* address, std::size_t size_bytes);
  GpuCode (*memory_free)(GpuAddress address);
  GpuCode (*memory_alloc_async)(GpuAddress* address, std::size_t size_bytes, GpuStream stream);
  GpuCode (*memory_free_async)(GpuAddress address, GpuStream stream);
  GpuCode (*context_synchronize)();
  GpuCode (*pointer_attribute)(void* value, int attribute, GpuAddress address);
  GpuCode (*copy_to_device)(GpuAddress to, const void* from, std::size_t size_bytes,
                            GpuStream stream);
  GpuCode (*copy_to_host)(void* to, GpuAddress from, std::size_t size_bytes, GpuStream stream);
  GpuCode (*copy_on_device)(GpuAddress to, GpuAddress from, std::size_t size_bytes,
                            GpuStream stream);
  GpuCode (*fill)(GpuAddress to, unsigned char byte, std::size_t size_bytes, GpuStream stream);
  GpuCode (*stream_create)(GpuStream* stream, unsigned flags);
  GpuCode (*stream_destroy)(GpuStream stream);
  GpuCode (*stream_synchronize)(GpuStream stream);
  GpuCode (*stream_is_capturing)(GpuStream stream, int* status);
  GpuCode (*capture_begin)(GpuStream stream, int mode);
  GpuCode (*capture_end)(GpuStream stream, GpuGraph* graph);
  // Sets what the calling thread may do during captures. Null: it may do anything.
  GpuCode (*exchange_capture_mode)(int* mode);
  GpuCode (*graph_instantiate)(GpuGraphExec* exec, GpuGraph graph, unsigned long long flags);
  GpuCode (*graph_launch)(GpuGraphExec exec, GpuStream stream);
  GpuCode (*graph_exec_destroy)(GpuGraphExec exec);
  GpuCode (*graph_destroy)(GpuGraph graph);
  GpuCode (*event_create)(GpuEvent* event, unsigned flags);
  GpuCode (*event_destroy)(GpuEvent event);
  GpuCode (*event_record)(GpuEvent event, GpuStream stream);
  GpuCode (*event_synchronize)(GpuEvent event);
  GpuCode (*event_query)(GpuEvent event);  // kGpuNotReady: not reached
  GpuCode (*stream_wait_event)(GpuStream stream, GpuEvent event, unsigned flags);
  GpuCode (*event_elapsed_time)(float* milliseconds, GpuEvent start, GpuEvent end);
  GpuCode (*module_load)(GpuModuleHandle* module, const void* image);
  GpuCode (*module_unload)(GpuModuleHandle module);
  GpuCode (*module_function)(GpuFunction* function, GpuModuleHandle module, const char* name);
  GpuCode (*launch)(GpuFunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                    GpuStream stream, void** params, void** extra);
  GpuCode (*function_attribute)(int* value, int attribute, GpuFunction function);
  GpuCode (*occupancy)(int* num_blocks, GpuFunction function, int block_threads,
                       std::size_t shared_bytes);
  GpuCode (*error_name)(GpuCode code, const char** name);
  GpuCode (*error_text)(GpuCode code, const char** text);
  // Only for emulators. Each allocation then gets an address range of its own, so that an access
  // beyond one cannot land in another. And the architecture of images (null: from the device's
  // compute capability).
  bool allocates_apart;
  const char* arch;
};

/// Returns NVIDIA's driver. It is searched once per process and never closed. Errors: Unavailable
/// (no driver; a driver that lacks a function: names it).
Result<const GpuDriver*> open_cuda_driver();

/// Ok for kGpuSuccess. Otherwise an error with the failed call, the driver's name for the code, and
/// advice if there is any.
Status gpu_status(const GpuDriver& driver, GpuCode code, const char* what);

}  // namespace cinch::rt
