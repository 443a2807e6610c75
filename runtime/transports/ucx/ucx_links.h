// One rank's connections to the others over UCX: messages with tags, matched to the receives that
// wait for them, and notices by which ranks give up or leave.
#pragma once

#include <deque>

#include "runtime/transports/ucx/sockets.h"
#include "runtime/transports/ucx/ucx_abi.h"
#include "runtime/transports/ucx/ucx_transport.h"

namespace cinch::rt {
// Tells when the process of another rank on this machine has ended. UCX asks whether there is such
// a process, and over shared memory it takes one that has ended, but that nobody has waited for
// yet, for one that lives. The system takes a process's locks back when it ends.

class RankPresence {
 public:
  /// Null if ranks have no common folder for it; a rank that ends is then found as UCX finds it.
  /// `job_key`: known to all ranks, and to nobody else.
  static std::unique_ptr<RankPresence> open(const Digest& job_key, std::uint32_t rank,
                                            std::uint32_t world);
  ~RankPresence() { forget_name(); }
  RankPresence(const RankPresence&) = delete;
  RankPresence& operator=(const RankPresence&) = delete;

  /// Has the rank been seen here, and has its process ended since? Ranks of other machines are
  /// never seen.
  bool has_ended(std::uint32_t rank);
  /// The file needs no name when all ranks have opened it.
  void forget_name();

 private:
  RankPresence(std::string name, OwnedFile file, std::uint32_t world)
      : name_(std::move(name)), file_(std::move(file)), was_seen_(world) {}

  std::string name_;
  OwnedFile file_;  // each rank that lives holds a lock on the byte of its number
  std::vector<bool> was_seen_;
};

// The header of each message between two ranks. UCX takes messages from whoever connects, so a rank
// accepts only headers with a valid keyed hash, and each number once.

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

struct UcxLinkOptions {
  std::uint32_t rank = 0, world = 1;
  std::string transports;  // as UCX_TLS
  std::string devices;     // as UCX_NET_DEVICES; empty: all
  bool is_one_machine = false;
};

class UcxLinks {
 public:
  /// Errors: Device (UCX's).
  static Result<std::unique_ptr<UcxLinks>> open(const cinch_ucx_calls& calls,
                                                const UcxLinkOptions& options);
  ~UcxLinks();
  UcxLinks(const UcxLinks&) = delete;
  UcxLinks& operator=(const UcxLinks&) = delete;

  /// The address to which the other ranks connect.
  Result<std::vector<std::uint8_t>> address() const;
  /// Connects. `job_key`: known to all ranks, and to nobody else. Errors: Device.
  Status connect(const std::vector<std::vector<std::uint8_t>>& addresses, const Digest& job_key);
  /// Ranks that have not said hello.
  std::vector<std::uint32_t> silent_ranks() const;
  /// Are all connections there that this rank has begun, over every interface? Errors: Device.
  Result<bool> are_settled();
  /// Accepts no more connections. Call it when no rank has silent ones, and those of all are
  /// settled.
  void stop_listening();

  /// Begins to send; receive begins to receive. Memory must stay as it is until the message is
  /// over, or until `disconnect`. Tags are unique among messages in the same direction. Returns the
  /// message's number, for `is_over`.
  std::uint64_t send(std::uint32_t to, std::uint64_t tag, std::span<const std::uint8_t> bytes);
  std::uint64_t receive(std::uint32_t from, std::uint64_t tag, std::span<std::uint8_t> room);
  /// Is the message over? Returns true once; the number is then invalid. Errors: Cancelled (the
  /// other rank gave up, left, or cannot be reached), CorruptPayload (the body was altered on its
  /// way over a network), Internal (it sent another size), Device.
  Result<bool> is_over(std::uint64_t number);

  /// Looks from now on for processes that have ended. Call it when no rank is silent.
  void watch();
  /// Advances everything. Returns whether anything progressed.
  bool progress();
  void wait(std::chrono::microseconds most);
  void wake();

  /// Sends all reachable ranks a notice about this one, and waits until they have heard, but not
  /// longer than `patience`.
  void tell_all(MessageKind kind, std::string_view text, std::chrono::milliseconds patience);
  /// Why a rank has gone: it gave up, left, or cannot be reached.
  const std::optional<Error>& gone(std::uint32_t peer) const { return peers_[peer].gone; }
  /// Ends all connections. No memory is in use afterwards.
  void disconnect();

 private:
  struct Message {
    enum class State : std::uint8_t { Free, UnderWay, Over, Failed };
    State state = State::Free;
    bool is_sent = false;
    std::uint32_t peer = 0;
    std::uint64_t tag = 0;
    std::span<std::uint8_t> room;
    std::optional<Error> error;
    std::uint64_t bytes_left = 0;       // not yet sent, or not yet arrived
    std::uint32_t parts_under_way = 0;  // parts whose end UCX has not reported
  };
  // A part on its way to its place in a message.
  struct Landing {
    std::uint32_t message = 0;
    MessageHeader header;
  };
  // A part of a message that arrived before its receive was begun.
  struct Early {
    MessageHeader header;
    std::uint64_t number = 0;
  };
  struct Peer {
    SipKey key_to{};
    std::uint64_t num_sent = 0;
    SeenNumbers seen;
    bool has_said_hello = false, has_heard = false;
    std::optional<Error> gone;           // it gave up, left, or cannot be reached
    std::vector<std::uint32_t> awaited;  // receives that were begun
    std::vector<Early> early;
  };
  // A rank's notice about itself, until it is sent or was received.
  struct Notice {
    bool is_used = false, is_sent = false;
    MessageHeader header;
    std::vector<char> text;
  };

  UcxLinks(const cinch_ucx_calls& calls, const UcxLinkOptions& options);

  std::int32_t arrive(cinch_ucx_arrival& arrival);
  std::int32_t arrive_data(const MessageHeader& header, cinch_ucx_arrival& arrival);
  std::int32_t arrive_notice(const MessageHeader& header, cinch_ucx_arrival& arrival);
  void end(std::uint64_t token, std::int32_t error);
  void end_landing(std::uint32_t index, std::int32_t error);
  void end_message(Message& message, std::int32_t error) const;
  void hear(const Notice& notice);
  void lose(std::uint32_t peer, std::int32_t error);

  std::uint32_t take_free_notice();
  /// The token of a part that is taken.
  std::uint64_t land(std::uint32_t message, const MessageHeader& part);
  /// Fills in number and hashes.
  MessageHeader header_to(std::uint32_t to, MessageHeader header,
                          std::span<const std::uint8_t> body);
  void tell(std::uint32_t to, MessageKind kind, std::string_view text);
  void look_for_ended();
  /// Does the part belong in the message? If so, reserves it: the message then waits for less.
  bool may_take(Message& message, const MessageHeader& part) const;
  std::string ucx_text(std::int32_t error) const;

  const cinch_ucx_calls& calls_;
  cinch_ucx_worker* worker_ = nullptr;
  std::uint32_t rank_;
  const bool hashes_bodies_;
  const std::uint64_t most_part_bytes_;
  std::vector<Peer> peers_;
  std::vector<SipKey> keys_from_;  // by rank
  std::deque<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::deque<Landing> landings_;
  std::vector<std::uint32_t> free_landings_;
  std::deque<Notice> notices_;
  std::vector<std::uint32_t> unanswered_;  // ranks
  bool is_connected_ = false;
  std::unique_ptr<RankPresence> presence_;  // may be null
  std::chrono::steady_clock::time_point next_look_ = std::chrono::steady_clock::time_point::max();
};

}  // namespace cinch::rt
