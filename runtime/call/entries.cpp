// Bodies of entries.h.
#include "runtime/call/entries.h"

#include <algorithm>
#include <array>

namespace cinch::rt {
namespace {

// By EntryKind: what the call needs, and what it is missed as.
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

}  // namespace

Status check_call(const ProgramImage& image, EntryKind kind) {
  const Need& need = kNeeds[static_cast<std::size_t>(kind)];
  if (image.entries[static_cast<std::size_t>(need.entry)].present) return Ok{};
  return fail(ErrorKind::InvalidArgument, image.info.name + " has no " + need.name);
}

bool needs_copies_of_states(const ProgramImage& image) {
  const bool is_in_place = std::ranges::any_of(image.buffers, [](const BufferInfo& buffer) {
    return buffer.role == BufferRole::StateInPlace;
  });
  return is_in_place || (image.info.has_finish && !image.info.states.empty());
}

}  // namespace cinch::rt
