// Controls of the fake NCCL: a shared library with NCCL's C interface whose ranks are threads of
// one process and whose devices are host memory. It is opened like NCCL; tests find these functions
// by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/gpu/driver.h"

extern "C" {

enum NcclDoubleFault : int {
  kDoubleNoFault,
  kDoubleFails,       // the call returns an error
  kDoubleFailsLater,  // the communicator has an error when the work begins
  kDoubleHangs,       // the work never begins
  kDoubleLate         // the work begins 50 ms later
};

using NcclDoubleDriverFn = const cinch::rt::GpuDriver*();
/// Plants a fault in the call with this number (0: the next) on communicators of a device, once.
using NcclDoublePlantFn = void(int device, int fault, std::uint64_t call);
/// Writes wrong uses since the last call, one a line; returns their number.
using NcclDoubleWrongUsesFn = std::size_t(char* text, std::size_t room);
/// Adds work that only takes time.
using NcclDoubleSleepFn = void(cinch::rt::GpuStream stream, int milliseconds);
/// While it is set, a communicator that is aborted or destroyed waits until all of its ranks are
/// there, as NCCL does for ranks of one machine.
using NcclDoubleLeaveTogetherFn = void(bool waits);
/// Number of registrations since the library was opened.
using NcclDoubleCountFn = std::uint64_t();
// For a driver whose devices compute, and which uses streams, events and contexts of the fake. Its
// memory, on the device whose context is current, becomes memory of the fake, which calls back
// after it has written there. Its own work goes on streams.
using NcclDoubleAdoptFn = void(cinch::rt::GpuAddress memory, std::size_t size_bytes);
using NcclDoubleForgetFn = void(cinch::rt::GpuAddress memory);
using NcclDoubleOnWriteFn = void(void (*note)(void* memory, std::size_t size_bytes));
using NcclDoubleEnqueueFn = void(cinch::rt::GpuStream stream, const std::function<void()>& work);
}

// nccl_double_driver: a driver with kDoubleDevices devices, whose streams are threads. Nobody else
// can read or write its addresses. As NVIDIA's driver may, it waits in copies of unpinned host
// memory: for the stream, if it copies to the host, or more than 64 KiB from it.
inline constexpr int kDoubleDevices = 8;
