// The tasks around an all-reduce of payloads if payloads and arrays stay on a device. Fields that
// travel in their own type are moved, in a few launches for all pieces of a task. The host waits
// for nothing: the device itself finds out which payloads are marked.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/call/summed_arrays.h"
#include "runtime/gpu/arrays.h"

namespace cinch::rt {

/// A payload and the arrays of its fields, on the device or on the host.
struct DeviceSum {
  std::span<std::uint8_t> payload;
  PayloadLayout layout;
  PayloadHeader header;  // without flags
  std::vector<std::span<std::uint8_t>> arrays;
};

/// The largest sizes for one task.
struct DeviceSumsRoom {
  std::size_t num_payloads = 0, payload_bytes = 0;
};

class DeviceSums {
 public:
  /// Takes floats of 16 and 32 bits, whose NaNs it can make canonical on the device, and integers.
  static bool can_take(const SummedArrays& summed);
  /// `arrays`, which have flags, outlives this. Errors: OutOfMemory, Device.
  static Result<std::unique_ptr<DeviceSums>> make(GpuArrays& arrays,
                                                  std::shared_ptr<const GpuDevice> device,
                                                  GpuStream stream, const DeviceSumsRoom& room);

  /// As SummedArrays::spread and join. For join, the payload holds that of one rank before. Errors:
  /// Device.
  Status spread(const SummedArrays& summed, std::span<const DeviceSum> sums);
  Status join(const SummedArrays& summed, std::span<const DeviceSum> sums);

 private:
  DeviceSums(GpuArrays& arrays, std::shared_ptr<const GpuDevice> device, GpuStream stream)
      : arrays_(arrays), device_(std::move(device)), stream_(stream) {}
  Status write_constants();
  /// Copies arrays to payloads.
  Status move_back(const SummedArrays& summed, std::span<const DeviceSum> sums);
  Status move_halves(DType dtype);
  /// Replaces payloads that a rank has marked by its header and zeros.
  Status take_marks(const SummedArrays& summed, std::span<const DeviceSum> sums);
  Status send_marked_headers(std::span<const DeviceSum> sums);

  GpuArrays& arrays_;
  std::shared_ptr<const GpuDevice> device_;
  GpuStream stream_;
  GpuArena arena_;
  GpuArena::Piece constants_ = GpuArena::kNone, headers_ = GpuArena::kNone;
  GpuArena::Piece widened_ = GpuArena::kNone;
  // Data of the running task; the vectors keep their memory.
  std::vector<SummedField> fields_;
  std::vector<GpuArrayPair> moves_, floats_, halves_, wide_;
  std::vector<std::uint8_t> header_bytes_;
};

}  // namespace cinch::rt
