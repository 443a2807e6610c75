// The driver's functions (runtime/gpu/driver.h) over one emulated device: what NVIDIA's driver is
// to a session on a GPU, on any machine. Work that is enqueued waits in its stream until somebody
// waits for the stream, so that a caller who changes memory too early is found out; copies from the
// host of up to 64 KiB take their bytes at once, as the driver stages them, unless they are pinned.
// Streams can be captured into graphs; what may not be done beside a capture spoils it. A launch
// with findings fails when it runs: the error's text holds them.
#pragma once
#include "codegen/emulator/gpu.h"
#include "runtime/gpu/driver.h"

namespace cinch::emulator {

/// Makes a fresh device the process's emulated one and gives its functions. What the device before
/// it had is gone: nothing of it may be used any more. Not thread-safe.
const rt::GpuDriver& start_driver(const GpuOptions& options = {});
/// The device of start_driver.
Gpu& driver_gpu();
/// For tests: the call with this number from now on (0: the next) fails with the code, once.
void fail_call(std::uint64_t calls_from_now, rt::GpuCode code);

}  // namespace cinch::emulator
