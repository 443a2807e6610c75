// Rank 0 of a meeting over sockets. It listens until all ranks have connected. Strangers, who send
// anything or nothing, are disconnected; ranks do not notice.
#pragma once
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/transports/ucx/frames.h"
#include "runtime/transports/ucx/meeting_proofs.h"
#include "runtime/transports/ucx/rendezvous.h"
#include "runtime/transports/ucx/sockets.h"

namespace cinch::rt {

class SocketHub : public Rendezvous {
 public:
  SocketHub(const JobRank& own, OwnedFile listener)
      : own_(own), listener_(std::move(listener)), members_(own.world) {}

  Result<std::vector<Part>> gather(std::span<const std::uint8_t> own) override;

 private:
  struct Connection {
    OwnedFile file;
    std::string host;
    SocketClock::time_point end;  // deadline by which a stranger must identify itself
    FrameReader reader;
    Introduction introduction;
    Digest key{};  // only for a member
    bool is_member = false, is_over = false;
    std::vector<std::uint8_t> unsent;
    std::optional<Part> part;  // in this round
  };

  bool has_room_for_strangers();
  void accept_all();
  /// Waits for input, until `end` at most, and handles it.
  void move(SocketClock::time_point end);
  void send_unsent(Connection& connection);
  void receive(Connection& connection);
  void hear(Connection& connection, const Frame& frame);
  void hear_answer(Connection& connection, const Answer& answer);
  VerdictCode verdict_on(const Connection& connection, const Answer& answer) const;
  void hear_part(Connection& connection, const Frame& frame) const;
  void send_away(Connection& connection, const std::string& why);
  void close_listener();
  void forget_closed();
  bool has_all_parts() const;
  Result<std::vector<Part>> wait_for_parts(std::span<const std::uint8_t> own,
                                           SocketClock::time_point end);
  Error late_error() const;
  /// Sends the parts of the round before.
  void tell_all(const Result<std::vector<Part>>& parts, SocketClock::time_point end);

  JobRank own_;
  OwnedFile listener_;
  std::list<Connection> connections_;  // connections never move in memory
  std::vector<Connection*> members_;   // by rank; null: has not connected
  std::uint64_t round_ = 0;
  std::optional<Error> fault_;
  std::vector<std::string> sent_away_;  // reasons, of the first ones
  std::uint64_t num_sent_away_ = 0;
};

}  // namespace cinch::rt
