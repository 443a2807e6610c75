// A transport whose exchanges consist of messages between two ranks. It also joins the data when
// messages have arrived, floats in rank order. An all-reduce is a reduce-scatter and an all-gather,
// so collectives send as many bytes as rings would; a broadcast goes from its root to each rank.
#pragma once
#include <deque>

#include "runtime/collective/transport.h"

namespace cinch::rt {

class MessageTransport : public Transport {
 public:
  std::uint32_t rank() const final { return rank_; }
  std::uint32_t world() const final { return world_; }
  bool sums_in_rank_order() const final { return true; }
  std::uint64_t sent_bytes() const final { return sent_bytes_; }
  std::uint64_t num_moves() const final { return num_moves_; }
  std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const final;

 protected:
  using Bytes = std::span<const std::uint8_t>;
  using Room = std::span<std::uint8_t>;

  /// A message to or from another rank. Its tag is unique among messages in this direction.
  struct Leg {
    bool is_sent = false;
    std::uint32_t peer = 0;
    std::uint64_t tag = 0;
    std::uint64_t handle = 0;  // result of begin_send or begin_receive
  };

  MessageTransport(std::uint32_t rank, std::uint32_t world)
      : rank_(rank), world_(world), num_sent_(world), num_received_(world) {}

  /// Begins a message. The memory must stay as it is until the message is over, or until this rank
  /// gives up.
  virtual std::uint64_t begin_send(std::uint32_t to, std::uint64_t tag, Bytes bytes) = 0;
  virtual std::uint64_t begin_receive(std::uint32_t from, std::uint64_t tag, Room room) = 0;
  /// Is the message over? Returns true once. Errors: those of `test`.
  virtual Result<bool> is_over(const Leg& leg) = 0;

  /// Implements `start`: begins the first messages of the exchange.
  Result<Ticket> begin_exchange(const Exchange& exchange);
  /// Tests all messages under way, and begins those that follow them. Errors: of the first exchange
  /// that has one; the others go on.
  Status advance_all();
  bool is_under_way(Ticket ticket) const {
    return ticket.index < pending_.size() && pending_[ticket.index].is_used;
  }
  /// Has the exchange ended? Its ticket is then invalid. Errors: InvalidArgument; if it has not
  /// ended, the error of `advance_all`.
  Result<bool> take_end(Ticket ticket, const Status& advanced);
  /// Is any message under way?
  bool is_any_under_way() const;

 private:
  // An exchange under way; its vectors are reused for the next one.
  struct Pending {
    bool is_used = false, is_over = false, gathers_next = false;
    Exchange exchange;
    std::uint64_t tag = 0;  // of its messages
    std::vector<Leg> legs;  // messages that have not ended
    std::vector<ByteRange> slices;
    std::vector<std::uint8_t> scratch;
    std::vector<std::span<const std::uint8_t>> inputs;
  };

  void send(Pending& pending, std::uint32_t to, Bytes bytes);
  void receive(Pending& pending, std::uint32_t from, Room room);
  void begin(Pending& pending);
  void begin_gather(Pending& pending, Bytes own, std::span<const ByteRange> parts);
  void begin_reduce(Pending& pending, std::span<const ByteRange> parts);
  Status join(Pending& pending, std::span<const ByteRange> parts, Room to) const;
  /// Returns true if nothing is left to do.
  Result<bool> advance(Pending& pending);
  Result<bool> move_legs(Pending& pending);

  std::uint32_t rank_, world_;
  std::uint64_t sent_bytes_ = 0, num_moves_ = 0, num_collectives_ = 0;
  std::vector<std::uint64_t> num_sent_, num_received_;  // number of messages, by rank
  std::deque<Pending> pending_;                         // by ticket
};

/// This bit marks tags of messages that carry a part of a collective. In each direction between two
/// ranks, tags of either sort grow by one or two from one exchange to the next.
inline constexpr std::uint64_t kCollectiveTag = std::uint64_t{1} << 63;

}  // namespace cinch::rt
