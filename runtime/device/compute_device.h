// What a rank, or the owner of one tensor, computes on: the CPUs of this process,
// or one stream of a GPU, NVIDIA's or an emulated one. A device offers memory, copies, arithmetic
// on plain arrays, and sessions of programs, all in one order. Addresses are the device's: unless
// is_host(), this process does not access them.
#pragma once
#include <atomic>
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
#include "runtime/gpu/arrays.h"
#include "runtime/gpu/program.h"
#include "runtime/session/loaded_program.h"

namespace cinch::rt {

struct GpuQueue;

/// Pieces of memory on a device, at multiples of 64; undefined at first. Destroy them before the
/// device.
struct MemoryPieces {
  std::vector<std::uint8_t*> pieces;  // null for a piece of no bytes
  std::shared_ptr<void> owner;
};

/// Elements of two arrays, which are separate or the very same memory.
struct ArrayPair {
  std::uint8_t* to = nullptr;
  const std::uint8_t* from = nullptr;
  std::int64_t num_elems = 0;
};

struct ListOptions {
  std::uint32_t world = 1, worker = 0;
  std::uint32_t machine_ranks = 0;  // SessionOptions::machine_ranks
  std::uint64_t seed = 0;
  /// Initial values of run-time parameters, by name.
  std::vector<std::pair<std::string, double>> parameters = {};
  /// Will keep_states be called?
  bool keeps_states = false;
  /// SessionOptions::only_decodes.
  bool only_decodes = false;
};

class ComputeDevice {
 public:
  ComputeDevice() = default;
  ComputeDevice(const ComputeDevice&) = delete;
  ComputeDevice& operator=(const ComputeDevice&) = delete;
  virtual ~ComputeDevice() = default;

  /// Does this process itself compute? Then the device's memory is the process's, calls have ended
  /// when they return, and lists take tensors of every type that sessions take. Otherwise calls are
  /// only put on a stream, except for wait() and those that say so, and lists take f32.
  virtual bool is_host() const = 0;
  /// What only a GPU has; null on a host.
  virtual const GpuQueue* gpu() const { return nullptr; }
  /// Hold this mutex while you use the device, if only one user at a time may; else null.
  virtual std::mutex* turns() const { return nullptr; }

  virtual std::uint32_t num_programs() const = 0;
  virtual const ProgramInfo& info(std::uint32_t program) const = 0;
  /// Opens a list of sessions by the number of its program. Errors: those of Session::open and
  /// GpuSession::open, with the tensor's index if it is known.
  virtual ListResult<std::unique_ptr<ListSession>> open(std::uint32_t program,
                                                        const ListOptions& options,
                                                        std::span<const ListTensor> tensors) = 0;
  /// Allocates a piece for each size in bytes. Errors: OutOfMemory, Device.
  virtual Result<MemoryPieces> allocate(std::span<const std::size_t> sizes) = 0;
  /// Can the device use an address that a caller passed? Errors: InvalidArgument, Device.
  virtual Status check_memory(const void* data) const = 0;

  // Errors of all calls below: Device, Cancelled.

  /// Copies bytes: on the device, from this process's memory, or to it.
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
  /// divide: to[i] = from[i] / divisor, f32, with NaNs in their canonical form. multiply: to[i] =
  /// from[i] * factor.
  virtual Status divide(std::span<const ArrayPair> pairs, float divisor) = 0;
  virtual Status multiply(std::span<const ArrayPair> pairs, float factor) = 0;
  /// Converts f16 or bf16 to f32, and back.
  virtual Status widen(std::span<const ArrayPair> pairs, DType from) = 0;
  virtual Status narrow(std::span<const ArrayPair> pairs, DType to) = 0;
  /// Notes whether the array holds an infinite value or a NaN. Takes f32; on a host, any type that
  /// sessions take.
  virtual Status look_for_non_finite(const ConstTensorView& array) = 0;
  /// Was such a value found since the last call of this? Waits.
  virtual Result<bool> take_non_finite() = 0;

  /// Waits until the stream has done all its work.
  virtual Status wait() = 0;

 protected:
  enum class Way : std::uint8_t { Within, In, Out };
  virtual Status move(Way way, void* to, const void* from, std::size_t size) = 0;
};

/// Takes the device's turn, which ends with the returned lock.
inline std::unique_lock<std::mutex> take_turn(const ComputeDevice& device) {
  std::mutex* const turns = device.turns();
  return turns == nullptr ? std::unique_lock<std::mutex>() : std::unique_lock(*turns);
}

struct CpuDeviceOptions {
  std::vector<std::shared_ptr<const LoadedProgram>> programs;
  // Of each list, and for work that no program does; 0: all of the machine
  std::uint32_t threads = 0;
  /// Set to true from anywhere to end running work; outlives the device and its lists. May be null.
  const std::atomic<bool>* cancelled = nullptr;
};

std::unique_ptr<ComputeDevice> open_cpu_device(CpuDeviceOptions options);

// One stream of a GPU, NVIDIA's or an emulated one.

struct GpuQueueOptions {
  /// The programs, all loaded on one device.
  std::vector<std::shared_ptr<const GpuProgram>> programs;
  /// Any program for that device. It adds and converts tensors that no program works on. Null: the
  /// first of `programs`.
  std::shared_ptr<const GpuProgram> plain;
  /// The stream of all work; it outlives the queue. Null: the queue makes its own.
  GpuStream stream = nullptr;
  /// Shared by queues of a device that only one of them may use at a time (an emulated one). A
  /// queue holds it while it uses the device. Outlives the queue; may be null.
  std::mutex* turns = nullptr;
};

/// What transports, and sums of payloads that stay on a device, need of a queue.
struct GpuQueue {
  std::shared_ptr<const GpuDevice> device;
  GpuStream stream = nullptr;
  GpuArrays* arrays = nullptr;
  std::mutex* turns = nullptr;  // as in the options; may be null
};

/// Opens the queue. Errors: InvalidArgument (no program, programs for different devices),
/// OutOfMemory, Device.
Result<std::unique_ptr<ComputeDevice>> open_gpu_queue(const GpuQueueOptions& options);

}  // namespace cinch::rt
