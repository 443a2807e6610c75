// The header of each message between two ranks. UCX takes messages from whoever connects, so a rank
// accepts only headers with a valid keyed hash, and each number once.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "runtime/transports/ucx/keyed_hash.h"

namespace cinch::rt {

enum class MessageKind : std::uint32_t {
  Data = 1,
  Hello,   // the connection works
  GaveUp,  // the rank gives up; the body says why
  Left,
  Heard  // the answer to GaveUp and Left
};

struct MessageHeader {
  std::uint32_t from = 0;
  MessageKind kind = MessageKind::Data;
  std::uint64_t number = 0;  // counts the parts of messages in this direction
  std::uint64_t tag = 0;     // of data
  std::uint64_t body = 0;    // body_hash; 0: the body has none, since it passes no network
  std::uint64_t bytes = 0;   // of the body
  std::uint64_t first = 0;   // offset of the body in the whole message
  std::uint64_t all = 0;     // bytes of the whole message
  std::uint64_t hash = 0;    // of all fields above
};
static_assert(sizeof(MessageHeader) == 64);

/// The keys of one direction between two ranks.
SipKey direction_key(const Digest& job_key, std::uint32_t from, std::uint32_t to);
std::uint64_t hash_of(const SipKey& key, const MessageHeader& header);
/// A keyed hash of the body of the message with this number: XXH3 with a seed that nobody else
/// knows, whose result nobody else sees either, since SipHash hides it.
std::uint64_t body_hash(const SipKey& key, std::uint64_t number,
                        std::span<const std::uint8_t> body);

/// Nothing if the bytes are not a header with the key of their sender. `keys`: by sender.
std::optional<MessageHeader> read_header(std::span<const std::uint8_t> bytes,
                                         std::span<const SipKey> keys);

/// Numbers of messages that have arrived. Messages may overtake each other a little.
class SeenNumbers {
 public:
  /// Returns true the first time. Numbers far behind the newest one count as seen.
  bool add(std::uint64_t number);

 private:
  std::uint64_t end_ = 0;   // one more than the newest
  std::uint64_t seen_ = 0;  // bit i: number end_ - 1 - i
};

}  // namespace cinch::rt
