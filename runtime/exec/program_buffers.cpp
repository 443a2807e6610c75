// Own memory by role: states lie in two vectors by state, all other buffers by index.
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "runtime/core/sizes/host_expr.h"
#include "runtime/exec/program_buffers.h"

namespace cinch::rt {
namespace {

constexpr int kPoison = 0xa5;

const Entry& entry_of(const ProgramImage& image, EntryKind kind) {
  return image.entries[static_cast<std::size_t>(kind)];
}

// Runs the checks of the program's own sizes, in the steps that always run, before memory is
// allocated.
Status check_sizes(const ProgramImage& image, const Entry& entry, const HostEnv& env) {
  for (const Step& step : entry.steps) {
    if (step.kind != StepKind::CheckHost) continue;
    const auto holds = image.info.exprs->eval(step.expr, env);
    if (!holds || holds->as_bool()) continue;
    return fail(ErrorKind::CheckFailed,
                "this does not hold for " + shape_text(env) + ": " + image.messages[step.index]);
  }
  return Ok{};
}

constexpr std::size_t kHugePageBytes = std::size_t{1} << 21;

}  // namespace

ProgramBuffers::ProgramBuffers(const ProgramImage& image, const MemorySource& memory)
    : image_(image),
      pointers_(image.buffers.size(), nullptr),
      bytes_(image.buffers.size(), 0),
      own_(make_buffers(image.buffers.size(), memory, MemoryUse::Workspace)),
      states_(make_buffers(image.info.states.size(), memory, MemoryUse::State)),
      states_next_(make_buffers(image.info.states.size(), memory, MemoryUse::State)),
      inputs_(image.info.states.size()) {}

Status ProgramBuffers::prepare(EntryKind kind, const HostEnv& env, bool poison) {
  std::fill(pointers_.begin(), pointers_.end(), nullptr);
  std::fill(bytes_.begin(), bytes_.end(), 0);
  for (BufferIndex index : entry_of(image_, kind).buffers) {
    CINCH_TRY(prepare_one(entry_of(image_, kind), index, env, poison));
  }
  return Ok{};
}

Status ProgramBuffers::prepare_one(const Entry& entry, BufferIndex index, const HostEnv& env,
                                   bool poison) {
  const BufferInfo& buffer = image_.buffers[index];
  const auto size_bytes = TRY(buffer_bytes(image_, index, env));
  if (size_bytes == 0 && image_.info.exprs->eval_int(buffer.size_bytes, env).value_or(0) < 0)
    CINCH_TRY(check_sizes(image_, entry, env));
  bytes_[index] = size_bytes;
  if (buffer.role == BufferRole::Gradient || buffer.role == BufferRole::Output ||
      buffer.role == BufferRole::Field)
    return Ok{};
  if (buffer.role == BufferRole::State && image_.info.states[buffer.role_index].is_input) {
    const Input& input = inputs_[buffer.role_index];
    if (size_bytes > input.size_bytes) {
      return fail(ErrorKind::Overflow, fmt::format("input {} takes {} bytes, there are {}",
                                                   buffer.name, size_bytes, input.size_bytes));
    }
    // const_cast: the table of buffers has one type for all.
    pointers_[index] = const_cast<void*>(input.memory);
    return Ok{};
  }

  AlignedBuffer* memory = &own_[index];
  if (buffer.role == BufferRole::State || buffer.role == BufferRole::StateInPlace) {
    memory = &states_[buffer.role_index];
    CINCH_TRY(check_state(buffer, size_bytes));
  } else {
    if (buffer.role == BufferRole::StateNext) {
      memory = &states_next_[buffer.role_index];
      CINCH_TRY(check_state(buffer, size_bytes));
    }
    CINCH_TRY(memory->resize(size_bytes));
  }
  pointers_[index] = memory->data();

  // A valid image's buffer is as large as its constant.
  if (buffer.role == BufferRole::Constant) {
    const auto& bytes = image_.constants[image_.buffers[index].role_index];
    if (!bytes.empty()) std::memcpy(own_[index].data(), bytes.data(), bytes.size());
  }
  const bool is_written_first =
      buffer.role == BufferRole::Workspace || buffer.role == BufferRole::StateNext;
  if (poison && is_written_first)
    std::memset(memory->data(), kPoison, static_cast<std::size_t>(memory->size_bytes()));
  if (buffer.role == BufferRole::Count) {
    std::memset(memory->data(), 0, static_cast<std::size_t>(size_bytes));
  }
  return Ok{};
}

// A change of size would lose the state: its formula must not depend on values that change between
// calls.
Status ProgramBuffers::check_state(const BufferInfo& buffer, std::int64_t size_bytes) const {
  const std::int64_t held = states_[buffer.role_index].size_bytes();
  if (held == size_bytes) return Ok{};
  return fail(ErrorKind::Internal, fmt::format("state buffer {} of {} bytes, its state has {}",
                                               buffer.name, size_bytes, held));
}

Status ProgramBuffers::allocate_states(std::span<const std::int64_t> size_bytes) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    AlignedBuffer& memory = states_[i];
    CINCH_TRY(memory.resize(size_bytes[i]));
    std::memset(memory.data(), 0, static_cast<std::size_t>(memory.size_bytes()));
    state_bytes_ += memory.size_bytes();
  }
  return Ok{};
}

Result<std::span<std::uint8_t>> ProgramBuffers::own_input(std::uint32_t state,
                                                          std::int64_t size_bytes) {
  CINCH_TRY(states_[state].resize(size_bytes));
  bind_input(state, states_[state].data(), size_bytes);
  return states_[state].bytes();
}

Status ProgramBuffers::bind(BufferRole role, std::uint32_t role_index, void* memory,
                            std::int64_t size_bytes) {
  for (std::size_t i = 0; i < image_.buffers.size(); ++i) {
    const BufferInfo& buffer = image_.buffers[i];
    if (buffer.role != role || buffer.role_index != role_index) continue;
    if (bytes_[i] > size_bytes) {
      return fail(ErrorKind::Overflow, fmt::format("buffer {} takes {} bytes, there are {}",
                                                   buffer.name, bytes_[i], size_bytes));
    }
    pointers_[i] = memory;
  }
  return Ok{};
}

void ProgramBuffers::bind_field(BufferIndex buffer, void* memory, std::int64_t size_bytes) {
  pointers_[buffer] = memory;
  bytes_[buffer] = std::min(bytes_[buffer], size_bytes);
}

std::uint32_t ProgramBuffers::count(std::uint32_t index) const {
  for (std::size_t i = 0; i < image_.buffers.size(); ++i) {
    const BufferInfo& buffer = image_.buffers[i];
    if (buffer.role != BufferRole::Count || buffer.role_index != index) continue;
    if (pointers_[i] == nullptr) continue;
    std::uint32_t value = 0;
    std::memcpy(&value, pointers_[i], sizeof value);
    return value;
  }
  return 0;
}

void ProgramBuffers::set_count(std::uint32_t index, std::uint32_t value) {
  for (std::size_t i = 0; i < image_.buffers.size(); ++i) {
    const BufferInfo& buffer = image_.buffers[i];
    if (buffer.role == BufferRole::Count && buffer.role_index == index && pointers_[i] != nullptr) {
      std::memcpy(pointers_[i], &value, sizeof value);
    }
  }
}

void ProgramBuffers::commit_states(EntryKind kind) {
  for (BufferIndex index : entry_of(image_, kind).buffers) {
    const BufferInfo& buffer = image_.buffers[index];
    if (buffer.role != BufferRole::StateNext) continue;
    std::swap(states_[buffer.role_index], states_next_[buffer.role_index]);
  }
}

std::int64_t ProgramBuffers::workspace_bytes() const {
  std::int64_t total = 0;
  for (const AlignedBuffer& buffer : own_) total += buffer.size_bytes();
  for (const AlignedBuffer& buffer : states_next_) total += buffer.size_bytes();
  return total;
}

// One allocation per buffer. Large ones start at a huge page and ask for huge pages: first touch of
// 256 MiB then costs 128 faults instead of 65536.

Status AlignedBuffer::resize(std::int64_t size_bytes) {
  if (data_ != nullptr && size_bytes == size_) return Ok{};
  release();
  if (size_bytes < 0) {
    return fail(ErrorKind::InvalidArgument, fmt::format("a buffer of {} bytes", size_bytes));
  }
  void* const memory = allocate(static_cast<std::size_t>(size_bytes));
  if (memory == nullptr) {
    return fail(ErrorKind::OutOfMemory, fmt::format("no memory for {} bytes", size_bytes));
  }
  data_ = static_cast<std::uint8_t*>(memory);
  size_ = size_bytes;
  return Ok{};
}

void* AlignedBuffer::allocate(std::size_t size_bytes) const {
  if (source_.allocate != nullptr) {
    // A source may return null for 0 bytes, which would mean that there is no memory.
    return source_.allocate(source_.context.get(), std::max(size_bytes, std::size_t{1}),
                            kBufferAlignment, use_);
  }
  const bool is_large = size_bytes >= 2 * kHugePageBytes;
  const std::size_t alignment = is_large ? kHugePageBytes : kBufferAlignment;
  void* memory = nullptr;
  if (::posix_memalign(&memory, alignment, size_bytes) != 0) return nullptr;
  if (is_large) ::madvise(memory, size_bytes, MADV_HUGEPAGE);
  return memory;
}

void AlignedBuffer::release() {
  if (data_ != nullptr && source_.release != nullptr) {
    const auto size_bytes = static_cast<std::size_t>(std::max(size_, std::int64_t{1}));
    source_.release(source_.context.get(), data_, size_bytes, use_);
  } else {
    std::free(data_);
  }
  data_ = nullptr;
  size_ = 0;
}

std::vector<AlignedBuffer> make_buffers(std::size_t count, const MemorySource& memory,
                                        MemoryUse use) {
  std::vector<AlignedBuffer> buffers;
  buffers.reserve(count);
  for (std::size_t i = 0; i < count; ++i) buffers.emplace_back(memory, use);
  return buffers;
}

}  // namespace cinch::rt
