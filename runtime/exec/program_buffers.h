// The memory of one session: for every buffer of an image either memory of its own (states,
// workspace, counts, constants) or what the caller binds (gradient, output, fields). Own memory is
// kept across calls and changes only when a size does.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/exec/aligned_buffer.h"
#include "runtime/image/image.h"

namespace cinch::rt {

class ProgramBuffers {
 public:
  explicit ProgramBuffers(const ProgramImage& image, const MemorySource& memory = {});

  /// Makes all states exist, all zero; size_bytes by state. Once, before the first prepare. Errors:
  /// OutOfMemory.
  Status allocate_states(std::span<const std::int64_t> size_bytes);

  /// Makes the entry's buffers exist with the sizes that `env` gives; bindings of earlier calls are
  /// dropped. States that are new are zero. With `poison`, all that a call must write before it
  /// reads is filled with a pattern (tests). Errors: CheckFailed (a size is negative), Overflow,
  /// OutOfMemory, Internal (a state of another size than its buffer).
  Status prepare(EntryKind kind, const HostEnv& env, bool poison);

  /// Points every buffer of the role (and role_index) at the caller's memory of so many bytes.
  /// Errors: Overflow (the entry's formula gives more).
  Status bind(BufferRole role, std::uint32_t role_index, void* memory, std::int64_t size_bytes);
  /// Points a field's buffer at a payload's bytes, which may be fewer than its formula gives.
  void bind_field(BufferIndex buffer, void* memory, std::int64_t size_bytes);
  std::span<void* const> pointers() const { return pointers_; }
  std::span<const std::int64_t> bytes() const { return bytes_; }

  /// The u32 of a count; 0 where the entry has no such buffer.
  std::uint32_t count(std::uint32_t index) const;
  void set_count(std::uint32_t index, std::uint32_t value);

  /// The stored bytes of a state.
  std::span<std::uint8_t> state(std::uint32_t index) { return states_[index].bytes(); }
  std::span<const std::uint8_t> state(std::uint32_t index) const { return states_[index].bytes(); }
  /// Makes the new values that the entry wrote the states' values.
  void commit_states(EntryKind kind);
  /// Takes that back, as long as no entry ran since.
  void take_back_states(EntryKind kind) { commit_states(kind); }

  /// Bytes of all own memory but states.
  std::int64_t workspace_bytes() const;
  /// Bytes of all states. They stay as they are once allocated, so another thread may ask during a
  /// call, which swaps the buffers themselves.
  std::int64_t state_bytes() const { return state_bytes_; }

 private:
  Status prepare_one(const Entry& entry, BufferIndex index, const HostEnv& env, bool poison);
  void fill_constant(BufferIndex index);
  Status check_state(const BufferInfo& buffer, std::int64_t size_bytes) const;

  const ProgramImage& image_;
  std::vector<void*> pointers_;
  std::vector<std::int64_t> bytes_;
  std::vector<AlignedBuffer> own_;  // by BufferIndex
  std::vector<AlignedBuffer> states_, states_next_;
  std::int64_t state_bytes_ = 0;
};

}  // namespace cinch::rt
