// The file form of a tensor's states, for checkpoints. Little endian, versioned, checksummed;
// reading treats bytes as hostile.
//
//   0  8 bytes "CINCHSTA"    8  u32 format version   12  u32 number of states
//   16 16 bytes fingerprint  32 u64 rows   40 u64 columns   48 u64 bytes of the file   56 XXH3 64
//   of all bytes from 64 on 64 each state: u32 bytes of its name, u32 bytes of its type's name, u64
//   bytes of its data; then the three
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/program_info.h"

namespace cinch::rt {

inline constexpr std::uint32_t kStateFormatVersion = 1;

struct StateFileKey {
  std::array<std::uint64_t, 2> fingerprint{};
  std::int64_t rows = 0, cols = 0;
  friend bool operator==(const StateFileKey&, const StateFileKey&) = default;
};

struct StateView {
  std::string name, dtype;
  std::span<const std::uint8_t> bytes;
};

/// Views of the states that are saved, in order. `states` are the stored bytes of each state, by
/// index of ProgramInfo::states.
template <typename States>
std::vector<StateView> state_views(const ProgramInfo& info, const States& states) {
  std::vector<StateView> views;
  views.reserve(info.states.size());
  for (std::size_t i = 0; i < info.states.size(); ++i) {
    if (info.states[i].is_input) continue;
    views.push_back({info.states[i].name, dtype_name(info.states[i].type.dtype), states[i]});
  }
  return views;
}

std::vector<std::uint8_t> write_states(const StateFileKey& key, std::span<const StateView> states);

/// Reads the bytes of a state file. If it is not a state file, reads only enough to show that.
/// Errors: Io.
Result<std::vector<std::uint8_t>> read_state_file(const std::filesystem::path& path);

/// The contents of the file, not yet compared with a program; views point into `file`.
struct StateFile {
  StateFileKey key;
  std::vector<StateView> states;
};
/// Errors: CorruptFile, VersionMismatch.
Result<StateFile> parse_states(std::span<const std::uint8_t> file);

/// The data of each state, in the order of `expected`; names, types and sizes must match. The views
/// point into `file`. Errors: CorruptFile, VersionMismatch, InvalidArgument (states of another
/// program, other constants or another shape).
Result<std::vector<std::span<const std::uint8_t>>> read_states(std::span<const std::uint8_t> file,
                                                               const StateFileKey& key,
                                                               std::span<const StateView> expected);

}  // namespace cinch::rt
