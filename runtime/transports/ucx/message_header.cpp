// Bodies of message_header.h.
#include "runtime/transports/ucx/message_header.h"

#include <array>
#include <cstring>

#include "runtime/core/hash.h"

namespace cinch::rt {

SipKey direction_key(const Digest& job_key, std::uint32_t from, std::uint32_t to) {
  return sip_key(keyed_hash(job_key, HashedText("cinch: messages").add(from).add(to)));
}

std::uint64_t hash_of(const SipKey& key, const MessageHeader& header) {
  constexpr std::size_t kHashed = sizeof(MessageHeader) - sizeof header.hash;
  return sip_hash(key, {reinterpret_cast<const std::uint8_t*>(&header), kHashed});
}

std::uint64_t body_hash(const SipKey& key, std::uint64_t number,
                        std::span<const std::uint8_t> body) {
  const auto sip = [&key](const auto& words) {
    return sip_hash(key, {reinterpret_cast<const std::uint8_t*>(words.data()), sizeof words});
  };
  const std::uint64_t seed = sip(std::array{number});
  return sip(std::array{number, hash64(body.data(), body.size(), seed)});
}

std::optional<MessageHeader> read_header(std::span<const std::uint8_t> bytes,
                                         std::span<const SipKey> keys) {
  MessageHeader header;
  if (bytes.size() != sizeof header) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.from >= keys.size() || header.hash != hash_of(keys[header.from], header)) {
    return std::nullopt;
  }
  return header;
}

bool SeenNumbers::add(std::uint64_t number) {
  constexpr std::uint64_t kWindow = 64;
  if (number >= end_) {
    const std::uint64_t more = number + 1 - end_;
    seen_ = more < kWindow ? seen_ << more | 1 : 1;
    end_ = number + 1;
    return true;
  }
  const std::uint64_t age = end_ - 1 - number;
  if (age >= kWindow || (seen_ >> age & 1) != 0) return false;
  seen_ |= std::uint64_t{1} << age;
  return true;
}

}  // namespace cinch::rt
