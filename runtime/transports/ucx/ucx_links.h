// One rank's connections to the others over UCX: messages with tags, matched to the receives that
// wait for them, and what ranks tell each other when they give up or leave.
#pragma once
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/transports/ucx/message_header.h"
#include "runtime/transports/ucx/ucx_library.h"

namespace cinch::rt {

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

  /// What the other ranks connect to.
  Result<std::vector<std::uint8_t>> address() const;
  /// `job_key`: all ranks have it, and nobody else. Errors: Device.
  Status connect(const std::vector<std::vector<std::uint8_t>>& addresses, const Digest& job_key);
  /// Those that have not said hello.
  std::vector<std::uint32_t> silent_ranks() const;
  /// Nobody can connect any more: once no rank has silent ones. Not where UCX listens at several
  /// interfaces, over which it may still be connecting.
  void stop_listening();

  /// Memory stays as it is until the message is over, or until `disconnect`. Tags: those of no
  /// other message in the same direction. The number is what `is_over` knows the message by.
  std::uint64_t send(std::uint32_t to, std::uint64_t tag, std::span<const std::uint8_t> bytes);
  std::uint64_t receive(std::uint32_t from, std::uint64_t tag, std::span<std::uint8_t> room);
  /// True once; then the number is nothing any more. Errors: Cancelled (the other rank gave up, has
  /// left, or cannot be reached), Internal (it has sent another size), Device.
  Result<bool> is_over(std::uint64_t number);

  /// Moves everything on; has something moved?
  bool progress();
  void wait(std::chrono::microseconds most);
  void wake();

  /// Tells all ranks that are there something about this one, and waits until they have heard, but
  /// not for longer than that.
  void tell_all(MessageKind kind, std::string_view text, std::chrono::milliseconds patience);
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
    std::uint64_t bytes_left = 0;       // that are still to be sent, or to arrive
    std::uint32_t parts_under_way = 0;  // whose end UCX has not reported
  };
  // A part of a message that has arrived before its receive was begun.
  struct Early {
    MessageHeader header;
    std::uint64_t number = 0;
  };
  struct Peer {
    SipKey key_to{};
    std::uint64_t num_sent = 0;
    SeenNumbers seen;
    bool has_said_hello = false, has_heard = false;
    std::optional<Error> gone;           // it gave up, has left, or cannot be reached
    std::vector<std::uint32_t> awaited;  // receives that have been begun
    std::vector<Early> early;
  };
  // What a rank says about itself, until it is sent or was received.
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
  void end_message(Message& message, std::int32_t error) const;
  void hear(const Notice& notice);
  void lose(std::uint32_t peer, std::int32_t error);

  std::uint32_t take_free_message();
  std::uint32_t take_free_notice();
  /// With its number and hash.
  MessageHeader header_to(std::uint32_t to, MessageHeader header);
  void tell(std::uint32_t to, MessageKind kind, std::string_view text);
  void answer_notices();
  /// Has the part a place in the message, which then waits for less?
  bool may_take(Message& message, const MessageHeader& part) const;
  std::string ucx_text(std::int32_t error) const;

  const cinch_ucx_calls& calls_;
  cinch_ucx_worker* worker_ = nullptr;
  std::uint32_t rank_;
  const std::uint64_t most_part_bytes_;
  std::vector<Peer> peers_;
  std::vector<SipKey> keys_from_;  // by rank
  std::deque<Message> messages_;
  std::vector<std::uint32_t> free_messages_;
  std::deque<Notice> notices_;
  std::vector<std::uint32_t> unanswered_;  // ranks
  bool is_connected_ = false;
};

}  // namespace cinch::rt
