// What exchanges over MPI use while they are under way. MPI can take back no message that was sent
// and no collective: so bytes are exchanged from and to memory of the transport, and what is still
// in use when it ends lives on.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "runtime/collective/transport.h"

namespace cinch::rt {

/// What one rank tells another one, once: that it gives up, and why, or that it has left, and how
/// far it has come.
struct MpiNotice {
  enum class Kind : std::uint32_t { None, GaveUp, Left };
  Kind kind = Kind::None;
  std::uint64_t num_collectives = 0;             // that it has begun
  std::uint64_t num_sent = 0, num_received = 0;  // messages to and from the one who is told
  std::array<char, 400> text{};

  void set_text(std::string_view why) { text[why.copy(text.data(), text.size() - 1)] = '\0'; }
};

/// A part of an exchange that MPI does.
struct MpiLeg {
  enum class Kind : std::uint8_t { Send, Receive, Collective };
  Kind kind = Kind::Send;
  std::uint32_t peer = 0;  // of a message
  std::uint64_t size = 0;
  bool is_over = false;
};

/// An exchange under way; its vectors keep their memory for the next one.
struct MpiPending {
  std::uint32_t index = 0;  // of its ticket
  bool is_used = false, is_over = false, gathers_next = false;
  Exchange exchange;
  std::uint64_t number = 0;  // among the collectives, or the messages on its way
  std::int32_t tag = 0;
  std::vector<MpiLeg> legs;
  std::size_t num_left = 0;         // legs that have not ended
  std::vector<std::uint8_t> bytes;  // what is sent, and behind it what is received
  std::vector<ByteRange> received;  // by rank: where what comes lies in `bytes`
  std::vector<ByteRange> slices, expected;
  std::vector<std::span<const std::uint8_t>> inputs;

  /// Memory that only grows.
  std::span<std::uint8_t> room(std::uint64_t size) {
    if (bytes.size() < size) bytes.resize(size);
    return std::span(bytes).first(size);
  }
};

struct MpiMemory {
  std::deque<MpiPending> pending;      // by ticket
  std::vector<MpiNotice> told, heard;  // by rank
};

}  // namespace cinch::rt
