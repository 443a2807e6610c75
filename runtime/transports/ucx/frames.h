// What ranks send each other over the sockets on which they meet. Anybody may connect to them, so
// every length is checked before it is believed. Numbers are little endian.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/transports/ucx/keyed_hash.h"
#include "runtime/transports/ucx/rendezvous.h"

namespace cinch::rt {

enum class FrameKind : std::uint8_t {
  Challenge = 1,  // of rank 0 to whoever connects
  Answer,         // of a rank, with a proof that it has the secret
  Verdict,        // of rank 0, with its own proof where the rank is welcome
  RankPart,       // what a rank gives in a round
  AllParts        // what rank 0 tells all ranks
};

struct Frame {
  FrameKind kind = FrameKind::Challenge;
  std::vector<std::uint8_t> body;
};

std::vector<std::uint8_t> frame_bytes(FrameKind kind, std::span<const std::uint8_t> body);

/// Cuts what arrives into frames.
class FrameReader {
 public:
  /// The next bytes of the stream.
  void add(std::span<const std::uint8_t> bytes);
  /// Nothing where bytes are missing. `most_bytes`: of a body. Errors: CorruptPayload, after which
  /// the stream has no more frames.
  Result<std::optional<Frame>> next(std::size_t most_bytes);

 private:
  std::vector<std::uint8_t> bytes_;
};

struct Challenge {
  Digest nonce{};
};
struct Answer {
  std::uint32_t rank = 0, world = 0;
  Digest nonce{}, proof{};
};
enum class VerdictCode : std::uint8_t { Welcome, OtherSecret, OtherWorld, NoSuchRank, RankTaken };
struct Verdict {
  VerdictCode code = VerdictCode::Welcome;
  std::uint32_t world = 0;  // that rank 0 has
  Digest proof{};
};

std::vector<std::uint8_t> body_of(const Challenge& challenge);
std::vector<std::uint8_t> body_of(const Answer& answer);
std::vector<std::uint8_t> body_of(const Verdict& verdict);
/// Nothing: the frame is none of these.
std::optional<Challenge> read_challenge(const Frame& frame);
std::optional<Answer> read_answer(const Frame& frame);
std::optional<Verdict> read_verdict(const Frame& frame);

/// The result of a round: the parts of all ranks, or why there are none.
std::vector<std::uint8_t> body_of(const Result<std::vector<Part>>& round);
std::size_t most_round_bytes(std::uint32_t world);
/// Errors: that of the round; CorruptPayload.
Result<std::vector<Part>> read_round(std::span<const std::uint8_t> body, std::uint32_t world);

/// A body, and behind it a keyed hash of it, of the round and of the way that it goes.
std::vector<std::uint8_t> sealed(const Digest& key, std::string_view way, std::uint64_t round,
                                 std::span<const std::uint8_t> body);
/// The body; nothing where the hash is another one.
std::optional<std::span<const std::uint8_t>> unsealed(const Digest& key, std::string_view way,
                                                      std::uint64_t round,
                                                      std::span<const std::uint8_t> bytes);

}  // namespace cinch::rt
