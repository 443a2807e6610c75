// The part of the CUDA driver's C interface that Cinch calls, as a table of functions: NVIDIA's
// driver, opened at run time, or an emulated one. No header of NVIDIA's is needed. Names, types and
// meanings are those of the "CUDA Driver API" reference.
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
#define CINCH_GPU_CALL(member, symbol, parameters) GpuCode(*member) parameters;
#include "runtime/gpu/driver.def"
#undef CINCH_GPU_CALL
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
