// Implements the driver's functions (runtime/gpu/driver.h) over one emulated device, on any
// machine: sessions use it like NVIDIA's driver. Enqueued work waits in its stream until somebody
// waits for the stream, so that a caller who changes memory too early is found out. Copies of up to
// 64 KiB from unpinned host memory read their bytes at once, as the real driver stages them.
// Streams can be captured into graphs; a call that is not allowed during a capture spoils it. A
// launch with findings fails when it runs; the error's text lists them.
#pragma once
#include "codegen/emulator/gpu.h"
#include "runtime/gpu/driver.h"

namespace cinch::emulator {

/// Makes a new device the process's emulated one and returns its functions. Everything of the
/// device before is then invalid. Not thread-safe.
const rt::GpuDriver& start_driver(const GpuOptions& options = {});
/// The device of start_driver.
Gpu& driver_gpu();
/// For tests: makes the call with this number from now on (0: the next) fail with the code, once.
void fail_call(std::uint64_t calls_from_now, rt::GpuCode code);

}  // namespace cinch::emulator
