// Data of exchanges over MPI while they are under way. MPI can cancel neither a message that was
// sent nor a collective, so bytes are exchanged from and to memory of the transport. Memory that is
// still in use when the transport ends is never freed.
#pragma once
#include <array>
#include <cstdint>
#include <deque>
#include <string_view>
#include <vector>

#include "runtime/collective/transport.h"
#include "runtime/transports/mpi/mpi_device.h"

namespace cinch::rt {

/// A notice from one rank to another, sent once: that it gives up, and why, or that it has left. It
/// also tells how far the rank got: how many exchanges had ended before the first that had not.
struct MpiNotice {
  enum class Kind : std::uint32_t { None, GaveUp, Left };
  Kind kind = Kind::None;
  std::uint64_t num_collectives = 0;
  std::uint64_t num_sent = 0, num_received = 0;  // messages to and from the receiver of the notice
  std::array<char, 400> text{};

  void set_text(std::string_view why) { text[why.copy(text.data(), text.size() - 1)] = '\0'; }
};

/// The part of an exchange that one MPI operation does.
struct MpiLeg {
  enum class Kind : std::uint8_t { Send, Receive, Collective };
  Kind kind = Kind::Send;
  std::uint32_t peer = 0;  // for a message
  std::uint64_t size = 0;
  bool is_over = false;
};

/// Bytes to send once they lie in memory that MPI can use.
struct MpiUnsent {
  std::uint32_t to = 0;
  std::span<std::uint8_t> bytes;
};

/// An exchange under way; its vectors are reused for the next one.
struct MpiPending {
  /// On a device: the device copies the input, MPI moves it, the device copies the output. On the
  /// host copies are made at once.
  enum class Stage : std::uint8_t { TakesInput, Moves, GivesOutput, IsOver };
  std::uint32_t index = 0;  // of its ticket
  bool is_used = false, gathers_next = false;
  Stage stage = Stage::Moves;
  Exchange exchange;
  MpiDevice* device = nullptr;  // whose memory it uses; null: the host's
  MpiStaging* staging = nullptr;
  std::uint64_t number = 0;  // index among the collectives, or among the messages in its direction
  std::int32_t tag = 0;
  std::vector<MpiLeg> legs;
  std::size_t num_left = 0;  // legs that have not ended
  std::vector<MpiUnsent> unsent;
  std::vector<std::uint8_t> bytes;  // on the host
  std::span<std::uint8_t> room;     // sent bytes, followed by received bytes
  std::vector<ByteRange> received;  // by rank: the place of its bytes in `room`
  std::vector<ByteRange> slices, expected;
  std::vector<std::span<const std::uint8_t>> inputs;
};

struct MpiMemory {
  std::deque<MpiPending> pending;      // by ticket
  std::vector<MpiNotice> told, heard;  // by rank
};

}  // namespace cinch::rt
