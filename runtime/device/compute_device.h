// What a rank, or whoever has one tensor, computes on: the CPUs of this process (cpu_device.h), or
// one stream of a GPU, NVIDIA's or an emulated one (gpu_queue.h). Memory, copies, arithmetic on
// plain arrays, and sessions of programs, all in one order. Addresses are the device's: what is not
// is_host() this process does not touch.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/list_session.h"
#include "runtime/core/error.h"

namespace cinch::rt {

struct GpuQueue;

/// Pieces of memory on a device, at multiples of 64; undefined at first. Goes before the device.
struct MemoryPieces {
  std::vector<std::uint8_t*> pieces;  // null: of no bytes
  std::shared_ptr<void> owner;
};

/// Elements, of different memory or of the very same.
struct ArrayPair {
  std::uint8_t* to = nullptr;
  const std::uint8_t* from = nullptr;
  std::int64_t num_elems = 0;
};

struct ListOptions {
  std::uint32_t world = 1, worker = 0;
  std::uint64_t seed = 0;
  /// Values that run-time parameters begin with, by name.
  std::vector<std::pair<std::string, double>> parameters = {};
  /// Is keep_states called?
  bool keeps_states = false;
};

class ComputeDevice {
 public:
  ComputeDevice() = default;
  ComputeDevice(const ComputeDevice&) = delete;
  ComputeDevice& operator=(const ComputeDevice&) = delete;
  virtual ~ComputeDevice() = default;

  /// This process computes: its memory is the device's, calls have ended when they return, and
  /// lists take tensors of every type that sessions do. Else calls are only put on a stream, but
  /// for wait() and those that say so, and lists take f32.
  virtual bool is_host() const = 0;
  /// What else a GPU has; null on a host.
  virtual const GpuQueue* gpu() const { return nullptr; }
  /// Held while the device is used, where only one may at a time; else null.
  virtual std::mutex* turns() const { return nullptr; }

  virtual std::uint32_t num_programs() const = 0;
  virtual const ProgramInfo& info(std::uint32_t program) const = 0;
  /// By number of its program. Errors: those of Session::open and GpuSession::open, with the place
  /// of the tensor if it is known.
  virtual ListResult<std::unique_ptr<ListSession>> open(std::uint32_t program,
                                                        const ListOptions& options,
                                                        std::span<const ListTensor> tensors) = 0;
  /// A piece for each size in bytes. Errors: OutOfMemory, Device.
  virtual Result<MemoryPieces> allocate(std::span<const std::size_t> sizes) = 0;
  /// Can it work at the address, which somebody else gave? Errors: InvalidArgument, Device.
  virtual Status check_memory(const void* data) const = 0;

  // Errors of all that follows: Device, Cancelled.

  /// Bytes on the device; from this process's memory; to it.
  Status copy(void* to, const void* from, std::size_t size) {
    return move(Way::Within, to, from, size);
  }
  Status copy_in(void* to, std::span<const std::uint8_t> from) {
    return move(Way::In, to, from.data(), from.size());
  }
  Status copy_out(std::span<std::uint8_t> to, const void* from) {
    return move(Way::Out, to.data(), from, to.size());
  }
  virtual Status clear(void* to, std::size_t size) = 0;

  /// to[i] += from[i], f32.
  virtual Status add(std::span<const ArrayPair> pairs) = 0;
  /// to[i] = from[i] / divisor, f32; NaNs in their canonical form. And to[i] = from[i] * factor.
  virtual Status divide(std::span<const ArrayPair> pairs, float divisor) = 0;
  virtual Status multiply(std::span<const ArrayPair> pairs, float factor) = 0;
  /// f16 or bf16 to f32, and back.
  virtual Status widen(std::span<const ArrayPair> pairs, DType from) = 0;
  virtual Status narrow(std::span<const ArrayPair> pairs, DType to) = 0;
  /// Notes whether the array holds an infinite value or a NaN: f32, on a host of any type that
  /// sessions take.
  virtual Status look_for_non_finite(const ConstTensorView& array) = 0;
  /// Was that so since the last call of this? Waits.
  virtual Result<bool> take_non_finite() = 0;

  /// Until all that was put on the stream has been done.
  virtual Status wait() = 0;

 protected:
  enum class Way : std::uint8_t { Within, In, Out };
  virtual Status move(Way way, void* to, const void* from, std::size_t size) = 0;
};

/// The device's turn, which ends with what is returned.
inline std::unique_lock<std::mutex> take_turn(const ComputeDevice& device) {
  std::mutex* const turns = device.turns();
  return turns == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*turns);
}

}  // namespace cinch::rt
