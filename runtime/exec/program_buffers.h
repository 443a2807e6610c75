// The memory of one session. Each buffer of an image has memory of its own (states, workspace,
// counts, constants) or is bound to the caller's (gradient, output, fields). Own memory is kept
// across calls and changes only when a size does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/memory_source.h"
#include "runtime/image/image.h"

namespace cinch::rt {
// Memory of exactly the requested bytes, 64-byte aligned. Each buffer is one allocation, so that an
// address sanitizer sees every access outside.

inline constexpr std::size_t kBufferAlignment = 64;

class AlignedBuffer {
 public:
  explicit AlignedBuffer(MemorySource source = {}, MemoryUse use = MemoryUse::Workspace)
      : source_(std::move(source)), use_(use) {}
  ~AlignedBuffer() { release(); }
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : source_(std::exchange(other.source_, {})),
        use_(other.use_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(source_, other.source_);
    std::swap(use_, other.use_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  /// Makes the buffer exactly size_bytes large. If it already is, keeps memory and bytes; otherwise
  /// the bytes are undefined. Errors: InvalidArgument (negative), OutOfMemory; the buffer is then
  /// empty.
  Status resize(std::int64_t size_bytes);

  std::uint8_t* data() { return data_; }
  const std::uint8_t* data() const { return data_; }
  std::int64_t size_bytes() const { return size_; }
  std::span<std::uint8_t> bytes() { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const std::uint8_t> bytes() const { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  void release();
  void* allocate(std::size_t size_bytes) const;

  MemorySource source_;
  MemoryUse use_ = MemoryUse::Workspace;
  std::uint8_t* data_ = nullptr;
  std::int64_t size_ = 0;
};

/// `count` empty buffers.
std::vector<AlignedBuffer> make_buffers(std::size_t count, const MemorySource& memory,
                                        MemoryUse use);

class ProgramBuffers {
 public:
  explicit ProgramBuffers(const ProgramImage& image, const MemorySource& memory = {});

  /// Makes all states, all zero; size_bytes by state. Call it once, before the first prepare.
  /// Errors: OutOfMemory.
  Status allocate_states(std::span<const std::int64_t> size_bytes);

  /// Makes the entry's buffers, with the sizes for `env`; drops bindings of earlier calls. New
  /// states are zero. With `poison`, memory that a call must write before it reads is filled with a
  /// pattern (tests). Errors: CheckFailed (a size is negative), Overflow, OutOfMemory, Internal (a
  /// state of another size than its buffer).
  Status prepare(EntryKind kind, const HostEnv& env, bool poison);

  /// Points every buffer of the role (and role_index) at the caller's memory of `size_bytes` bytes.
  /// Errors: Overflow (the entry's formula is larger).
  Status bind(BufferRole role, std::uint32_t role_index, void* memory, std::int64_t size_bytes);
  /// Points a field's buffer at a payload's bytes, which may be fewer than its formula gives.
  void bind_field(BufferIndex buffer, void* memory, std::int64_t size_bytes);
  std::span<void* const> pointers() const { return pointers_; }
  std::span<const std::int64_t> bytes() const { return bytes_; }

  /// The u32 of a count; 0 if the entry has no such buffer.
  std::uint32_t count(std::uint32_t index) const;
  void set_count(std::uint32_t index, std::uint32_t value);

  /// Points an input's buffers, in this call and later ones, at the caller's memory, which kernels
  /// only read. A call fails if its formula is larger.
  void bind_input(std::uint32_t state, const void* memory, std::int64_t size_bytes) {
    inputs_[state] = {memory, size_bytes};
  }
  /// Own memory for an input that the caller has in another form. Errors: OutOfMemory.
  Result<std::span<std::uint8_t>> own_input(std::uint32_t state, std::int64_t size_bytes);

  /// The stored bytes of a state.
  std::span<std::uint8_t> state(std::uint32_t index) { return states_[index].bytes(); }
  std::span<const std::uint8_t> state(std::uint32_t index) const { return states_[index].bytes(); }
  /// Makes the new values that the entry wrote the current values of states.
  void commit_states(EntryKind kind);
  /// Undoes this, if no entry ran since.
  void take_back_states(EntryKind kind) { commit_states(kind); }

  /// Bytes of all own memory except states.
  std::int64_t workspace_bytes() const;
  /// Bytes of all states. They never change once allocated, so another thread may ask during a
  /// call, which swaps the buffers themselves.
  std::int64_t state_bytes() const { return state_bytes_; }

 private:
  Status prepare_one(const Entry& entry, BufferIndex index, const HostEnv& env, bool poison);
  Status check_state(const BufferInfo& buffer, std::int64_t size_bytes) const;

  const ProgramImage& image_;
  std::vector<void*> pointers_;
  std::vector<std::int64_t> bytes_;
  std::vector<AlignedBuffer> own_;  // by BufferIndex
  std::vector<AlignedBuffer> states_, states_next_;
  struct Input {
    const void* memory = nullptr;
    std::int64_t size_bytes = 0;
  };
  std::vector<Input> inputs_;  // by state
  std::int64_t state_bytes_ = 0;
};

}  // namespace cinch::rt
