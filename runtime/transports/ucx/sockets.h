// Frames that ranks send over the sockets on which they meet. Anybody may connect to these, so
// every length is checked before use. Numbers are little endian.
#pragma once

#include <set>
#include <utility>

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

// Non-blocking TCP sockets, and the network interfaces of this machine.

using SocketClock = std::chrono::steady_clock;

/// A file descriptor that is closed with its owner.
class OwnedFile {
 public:
  explicit OwnedFile(int number = -1) : number_(number) {}
  OwnedFile(OwnedFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OwnedFile();

  int number() const { return number_; }
  bool is_open() const { return number_ >= 0; }
  void close();

 private:
  int number_;
};

struct NetAddress {
  std::string host;
  std::uint16_t port = 0;
  std::string text() const;
};
/// Parses "HOST:PORT", "[::1]:PORT". Errors: InvalidArgument.
Result<NetAddress> parse_net_address(const std::string& text);

/// Checks that the interface exists and is up. Errors: InvalidArgument, which lists the interfaces
/// that are up.
Status check_interface(const std::string& name);

/// Listens. `interface`: the host's address must belong to it; empty: any. Errors: InvalidArgument,
/// Io.
Result<OwnedFile> listen_at(const NetAddress& address, const std::string& interface);
/// Connects; tries until somebody listens, or until `end`. `interface`: the socket uses an address
/// of it, if it has one of the host's family. Errors: TimedOut, InvalidArgument (no such host).
Result<OwnedFile> connect_to(const NetAddress& address, const std::string& interface,
                             SocketClock::time_point end);
/// Accepts a connection. The result is not open if nobody waits. `peer` gets the address of the
/// other side.
OwnedFile accept_one(const OwnedFile& listener, std::string& peer);

/// Returns how many bytes were sent or received; 0 if none can be now. Errors: Cancelled (the other
/// side closed the connection, or it was reset).
Result<std::size_t> send_some(const OwnedFile& file, std::span<const std::uint8_t> bytes);
Result<std::size_t> receive_some(const OwnedFile& file, std::span<std::uint8_t> room);

/// Waits until the file is readable (or writable); false after `end`.
bool wait_to_read(const OwnedFile& file, SocketClock::time_point end);
bool wait_to_write(const OwnedFile& file, SocketClock::time_point end);
/// For poll: not negative, rounded up.
int milliseconds_until(SocketClock::time_point end);

// The proofs that rank 0 and another rank give each other over a socket: each proves that it knows
// the secret, with a random number that the other has drawn for this connection. The proof of a
// hello has the rank's own number alone: somebody may have overheard it, so it gets a place in the
// queue and no more.

struct Introduction {
  Digest hub_nonce{}, rank_nonce{};
  std::uint32_t rank = 0, world = 0;

  HashedText text(std::string_view label) const {
    return HashedText(label).add(hub_nonce).add(rank_nonce).add(rank).add(world);
  }
  Digest proof_of_hello(const std::string& secret) const {
    return keyed_hash(secret, HashedText("cinch: hello").add(rank_nonce).add(rank).add(world));
  }
  Digest proof_of_rank(const std::string& secret) const {
    return keyed_hash(secret, text("cinch: rank"));
  }
  Digest proof_of_hub(const std::string& secret) const {
    return keyed_hash(secret, text("cinch: rank 0"));
  }
  /// The key for later bytes on this connection.
  Digest session_key(const std::string& secret) const {
    return keyed_hash(secret, text("cinch: session"));
  }
};

inline constexpr const char* kWayToHub = "cinch: to rank 0";
inline constexpr const char* kWayFromHub = "cinch: from rank 0";

}  // namespace cinch::rt
