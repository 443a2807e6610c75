// The states of one rank by tensor, site and elements, so that another plan or number of ranks can
// restore them. The bytes are little endian, versioned and checksummed; reading treats them as
// untrusted.
//
//   0  8 bytes "CINCHSYN"   8  u32 format version   12  u32 0   16  u64 bytes of all   24  XXH3 64
//   of all bytes from 32 on   32  u64 bytes of a description (JSON)   40  the description, then the
//   state files (state_file.h) of its sites, one behind the other, and those of `later`
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/plan/plan.h"

namespace cinch::rt {

/// The newest. Checkpoints without `later` have version 1.
inline constexpr std::uint32_t kCheckpointFormatVersion = 2;

/// States of some elements of one tensor.
struct SavedSite {
  std::string tensor;
  std::int64_t rows = 0, cols = 1;
  Site site = Site::Worker;
  std::int64_t first = 0, num_elems = 0;
  std::vector<std::uint8_t> states;  // a state file
  friend bool operator==(const SavedSite&, const SavedSite&) = default;
};

/// Some elements of one tensor.
struct SavedPiece {
  std::string tensor;
  std::int64_t first = 0;
  friend bool operator==(const SavedPiece&, const SavedPiece&) = default;
};

struct RankCheckpoint {
  std::string plan;  // its name
  std::uint32_t world = 1, rank = 0;
  std::uint64_t next_step = 0;  // one more than the last completed step
  std::vector<SavedSite> sites;
  /// Pieces that the rank finishes, of programs whose `finish` has states, by tensor.
  std::vector<SavedPiece> finished;
  /// Pieces whose states the last completed step left as they were, on all ranks. Saved when a
  /// later step has failed: sizes of other checkpoints do not depend on the step.
  std::optional<std::vector<SavedPiece>> left;
  /// If the rank has done its part of the step `next_step`, and does not know whether others have
  /// completed it: the states after that step, had it left none of them.
  std::optional<std::vector<SavedSite>> later;
  friend bool operator==(const RankCheckpoint&, const RankCheckpoint&) = default;
};

std::vector<std::uint8_t> write_checkpoint(const RankCheckpoint& checkpoint);
/// Reads the bytes of a checkpoint file. If it is not a checkpoint, reads only enough to show that.
/// Errors: Io.
Result<std::vector<std::uint8_t>> read_checkpoint_file(const std::filesystem::path& path);
/// Parses a checkpoint. Errors: CorruptFile, VersionMismatch.
Result<RankCheckpoint> read_checkpoint(std::span<const std::uint8_t> bytes);

}  // namespace cinch::rt
