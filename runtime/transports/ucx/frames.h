// Frames that ranks send over the sockets on which they meet. Anybody may connect to these, so
// every length is checked before use. Numbers are little endian.
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
  Hello = 1,  // from a rank, as soon as it has connected, with a proof that it knows the secret
  Challenge,  // from rank 0 to a rank that has said hello
  Answer,     // from the rank, with a proof for this connection
  Verdict,    // from rank 0, with its own proof if the rank has the secret
  RankPart,   // a rank's part of a round
  AllParts    // from rank 0 to all ranks
};

struct Frame {
  FrameKind kind = FrameKind::Hello;
  std::vector<std::uint8_t> body;
};

std::vector<std::uint8_t> frame_bytes(FrameKind kind, std::span<const std::uint8_t> body);

/// Splits incoming bytes into frames.
class FrameReader {
 public:
  /// Adds the next bytes of the stream.
  void add(std::span<const std::uint8_t> bytes);
  /// The next frame; nothing if bytes are missing. `most_bytes`: limit for a body. Errors:
  /// CorruptPayload; the stream then has no more frames.
  Result<std::optional<Frame>> next(std::size_t most_bytes);

 private:
  std::vector<std::uint8_t> bytes_;
};

struct Hello {
  std::uint32_t rank = 0, world = 0;
  Digest nonce{}, proof{};
};
struct Challenge {
  Digest nonce{};
};
struct Answer {
  Digest proof{};
};
enum class VerdictCode : std::uint8_t { Welcome, OtherSecret, OtherWorld, NoSuchRank, RankTaken };
struct Verdict {
  VerdictCode code = VerdictCode::Welcome;
  std::uint32_t world = 0;  // as rank 0 knows it
  Digest proof{};
};

std::vector<std::uint8_t> body_of(const Hello& hello);
std::vector<std::uint8_t> body_of(const Challenge& challenge);
std::vector<std::uint8_t> body_of(const Answer& answer);
std::vector<std::uint8_t> body_of(const Verdict& verdict);
/// Nothing if the frame is of another kind or malformed.
std::optional<Hello> read_hello(const Frame& frame);
std::optional<Challenge> read_challenge(const Frame& frame);
std::optional<Answer> read_answer(const Frame& frame);
std::optional<Verdict> read_verdict(const Frame& frame);

/// The result of a round as bytes: the parts of all ranks, or the error.
std::vector<std::uint8_t> body_of(const Result<std::vector<Part>>& round);
std::size_t most_round_bytes(std::uint32_t world);
/// Errors: that of the round; CorruptPayload.
Result<std::vector<Part>> read_round(std::span<const std::uint8_t> body, std::uint32_t world);

/// A body followed by a keyed hash of it, of the round and of its direction.
std::vector<std::uint8_t> sealed(const Digest& key, std::string_view way, std::uint64_t round,
                                 std::span<const std::uint8_t> body);
/// The body; nothing if the hash does not match.
std::optional<std::span<const std::uint8_t>> unsealed(const Digest& key, std::string_view way,
                                                      std::uint64_t round,
                                                      std::span<const std::uint8_t> bytes);

}  // namespace cinch::rt
