// What tests ask of the double, a shared library with NCCL's C interface whose ranks are threads of
// one process and whose devices are memory of the host. It is opened as NCCL is; these functions
// are found by name.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/gpu/driver.h"

extern "C" {

enum NcclDoubleFault : int {
  kDoubleNoFault,
  kDoubleFails,       // the call returns an error
  kDoubleFailsLater,  // the communicator has an error when the work's turn comes
  kDoubleHangs,       // the work never begins
  kDoubleLate         // the work begins 50 ms later
};

using NcclDoubleDriverFn = const cinch::rt::GpuDriver*();
/// The call with this number (0: the next) on communicators of a device does this, once.
using NcclDoublePlantFn = void(int device, int fault, std::uint64_t call);
/// Writes what was used wrongly since the last time, a line each; how many there were.
using NcclDoubleWrongUsesFn = std::size_t(char* text, std::size_t room);
/// Work that only takes time.
using NcclDoubleSleepFn = void(cinch::rt::GpuStream stream, int milliseconds);
/// While it is set, a communicator that is aborted or destroyed waits until all of its ranks are
/// there, as NCCL does for those of one machine.
using NcclDoubleLeaveTogetherFn = void(bool waits);
/// Registrations since the library was opened.
using NcclDoubleCountFn = std::uint64_t();
// For a driver whose devices compute, and that has streams, events and contexts of the double: its
// memory, on the device whose context is current, becomes memory of the double, which calls back
// when it has written there; and work of its own goes on streams.
using NcclDoubleAdoptFn = void(cinch::rt::GpuAddress memory, std::size_t size_bytes);
using NcclDoubleForgetFn = void(cinch::rt::GpuAddress memory);
using NcclDoubleOnWriteFn = void(void (*note)(void* memory, std::size_t size_bytes));
using NcclDoubleEnqueueFn = void(cinch::rt::GpuStream stream, const std::function<void()>& work);
}

// nccl_double_driver: a driver with kDoubleDevices devices, whose streams are threads. Its
// addresses cannot be read or written by anyone else. As NVIDIA's may, it waits in copies of
// ordinary memory of the host: for the stream if it copies to the host, or more than 64 KiB from
// it.
inline constexpr int kDoubleDevices = 8;
