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
#include "runtime/transports/mpi/mpi_device.h"

namespace cinch::rt {

/// What one rank tells another one, once: that it gives up, and why, or that it has left, and how
/// far it has come: what it had ended before the first that it had not.
struct MpiNotice {
  enum class Kind : std::uint32_t { None, GaveUp, Left };
  Kind kind = Kind::None;
  std::uint64_t num_collectives = 0;
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

/// What is to be sent when it lies where MPI takes it from.
struct MpiUnsent {
  std::uint32_t to = 0;
  std::span<std::uint8_t> bytes;
};

/// An exchange under way; its vectors keep their memory for the next one.
struct MpiPending {
  /// The device copies what is sent, MPI moves, the device copies what has come. On the host copies
  /// are made at once.
  enum class Stage : std::uint8_t { TakesInput, Moves, GivesOutput, IsOver };
  std::uint32_t index = 0;  // of its ticket
  bool is_used = false, gathers_next = false;
  Stage stage = Stage::Moves;
  Exchange exchange;
  MpiDevice* device = nullptr;  // whose memory it lies in; null: the host's
  MpiStaging* staging = nullptr;
  std::uint64_t number = 0;  // among the collectives, or the messages on its way
  std::int32_t tag = 0;
  std::vector<MpiLeg> legs;
  std::size_t num_left = 0;  // legs that have not ended
  std::vector<MpiUnsent> unsent;
  std::vector<std::uint8_t> bytes;  // of the host
  std::span<std::uint8_t> room;     // what is sent, and behind it what is received
  std::vector<ByteRange> received;  // by rank: where what comes lies in `room`
  std::vector<ByteRange> slices, expected;
  std::vector<std::span<const std::uint8_t>> inputs;
};

struct MpiMemory {
  std::deque<MpiPending> pending;      // by ticket
  std::vector<MpiNotice> told, heard;  // by rank
};

}  // namespace cinch::rt
