// Gpu: one emulated device. It runs kernels thread by thread on the caller's thread, in an order
// that a seed chooses, and finds faults in their use of memory and in their cooperation
// (Finding). Use a Gpu from one thread at a time; launches on several take turns within a
// process.
#pragma once
#include <cstddef>
#include <memory>

#include "codegen/emulator/module.h"

namespace cinch::emulator {

enum class FindingKind : std::uint8_t {
  OutOfBounds,       // global or shared memory, or memory that is not the device's
  UseAfterFree,      // of freed memory
  Misaligned,        // an address that is not a multiple of its type's alignment
  Uninitialised,     // a read of bytes that nobody wrote
  Race,              // two unordered accesses, at least one of them a write, not both strong
  DivergentBarrier,  // threads of a block at different barriers, or ended
  DivergentWarp,     // lanes in a mask that are elsewhere or ended; a mask without its own lane
  Hang,              // threads that wait for ever, endless loops
  Trap,              // __trap()
};

/// The name in messages: "out of bounds".
const char* finding_kind_name(FindingKind kind);

/// A fault of a kernel.
struct Finding {
  FindingKind kind = FindingKind::Trap;
  std::string kernel;
  int line = 0;      // of the emitted text; 0 if unknown
  std::string text;  // for people: who, where, what else; quotes the line
};

struct GpuOptions {
  std::uint64_t schedule_seed = 0;
  bool checks = true;  // false: modules with checks run without them
  std::size_t memory_bytes = std::size_t{1} << 30;
  unsigned max_resident_blocks = 8;  // at a time; at least 2; each launch draws a number up to it
  /// The most back edges that a thread may take between two meetings with others; beyond it, its
  /// loop counts as endless.
  std::uint64_t max_loop_steps = std::uint64_t{1} << 26;
};

class Gpu {
 public:
  /// Throws std::bad_alloc if there is no address range for the device's memory.
  explicit Gpu(const GpuOptions& options = {});
  ~Gpu();
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;

  // ---- memory ----
  // Addresses are those of this process: the host may read and write there, unchecked.

  /// Aligned to 256 bytes; the contents count as never written. Errors: OutOfMemory.
  rt::Result<void*> allocate(std::size_t size_bytes);
  /// Errors: InvalidArgument (no allocation begins there).
  rt::Status free(void* memory);
  std::size_t allocated_bytes() const;
  std::size_t memory_bytes() const;

  /// Errors of these: InvalidArgument (a range that is not within one allocation).
  rt::Status copy_to(void* device, const void* host, std::size_t size_bytes);
  rt::Status copy_from(void* host, const void* device, std::size_t size_bytes) const;
  /// Bytes that were never written still count so in the copy. Ranges may overlap.
  rt::Status copy(void* to, const void* from, std::size_t size_bytes);
  rt::Status fill(void* device, std::uint8_t byte, std::size_t size_bytes);
  /// mark_initialised: for memory that the host wrote itself. mark_uninitialised: for memory whose
  /// contents are no longer meaningful.
  rt::Status mark_initialised(void* device, std::size_t size_bytes);
  rt::Status mark_uninitialised(void* device, std::size_t size_bytes);
  /// Makes allocated memory out of bounds for kernels and copies, until it is marked uninitialised.
  rt::Status mark_absent(void* device, std::size_t size_bytes);

  /// contains: is the range within one allocation? The other: were all of its bytes written?
  bool contains(const void* p, std::size_t size_bytes) const;
  bool is_initialised(const void* p, std::size_t size_bytes) const;

  // ---- launches ----

  /// Runs a kernel to its end. params[i] points to the value of parameter i. The Gpu stays usable
  /// after errors. Errors: InvalidArgument (no such kernel; a grid or block with no or too many
  /// threads; more shared memory than a block has); CheckFailed (findings of this launch, all in
  /// the message: after races and uninitialised reads the launch ran to its end, after others it
  /// was cut off); Internal (threads that would run or wait for ever).
  rt::Status launch(const Module& module, std::string_view kernel, void** params, Dim grid,
                    Dim block, std::size_t shared_bytes = 0);

  const std::vector<Finding>& findings() const;
  void clear_findings();

 private:
  struct Device;
  std::unique_ptr<Device> device_;
};

}  // namespace cinch::emulator
