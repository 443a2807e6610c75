// Bodies of entries.h.
#include "runtime/call/entries.h"

#include <algorithm>
#include <array>
#include <string>

#include "runtime/image/image.h"

namespace cinch::rt {
namespace {

// By EntryKind: what the call needs, and the name under which its absence is reported.
struct Need {
  EntryKind entry;
  const char* name;
};
constexpr std::array<Need, kNumEntries> kNeeds = {{
    {EntryKind::Init, "initial states"},
    {EntryKind::Encode, "encode"},
    {EntryKind::Decode, "decode"},
    {EntryKind::Decode, "decode"},
    {EntryKind::Decode, "finish"},
    {EntryKind::Sync, "sync"},
}};

bool uses_states(const ProgramImage& image, EntryKind kind) {
  return std::ranges::any_of(
      image.entries[static_cast<std::size_t>(kind)].buffers,
      [&image](BufferIndex index) { return is_state(image.buffers[index].role); });
}

}  // namespace

Status check_call(const ProgramImage& image, EntryKind kind, bool only_decodes) {
  const Need& need = kNeeds[static_cast<std::size_t>(kind)];
  if (!image.entries[static_cast<std::size_t>(need.entry)].present) {
    return fail(ErrorKind::InvalidArgument, image.info.name + " has no " + need.name);
  }
  if (!only_decodes) return Ok{};
  const bool is_encoders = kind == EntryKind::Encode || kind == EntryKind::Sync;
  if (!is_encoders && !uses_states(image, kind)) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              std::string(need.name) + ": the session was opened to decode only");
}

Status check_holds_states(bool only_decodes) {
  if (!only_decodes) return Ok{};
  return fail(ErrorKind::InvalidArgument,
              "the session was opened to decode only: it holds no states");
}

bool needs_copies_of_states(const ProgramImage& image) {
  const bool is_in_place = std::ranges::any_of(image.buffers, [](const BufferInfo& buffer) {
    return buffer.role == BufferRole::StateInPlace;
  });
  return is_in_place || (image.info.has_finish && !image.info.states.empty());
}

}  // namespace cinch::rt
