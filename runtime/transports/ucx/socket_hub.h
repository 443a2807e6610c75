// Rank 0 of a meeting over sockets. It listens until all ranks have connected. Strangers, who send
// anything or nothing, are disconnected; ranks do not notice, however many there are: who connects
// speaks first, and only who has said hello with the secret keeps a place.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "runtime/transports/ucx/frames.h"
#include "runtime/transports/ucx/keyed_hash.h"
#include "runtime/transports/ucx/rendezvous.h"
#include "runtime/transports/ucx/sockets.h"

namespace cinch::rt {

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
    bool has_said_hello = false, is_member = false, is_over = false;
    std::vector<std::uint8_t> unsent;
    std::optional<Part> part;  // in this round

    bool is_silent() const { return !has_said_hello && !is_over; }
  };

  /// Disconnects the connection that has been silent for longest; false: there is none.
  bool drop_a_silent_one();
  /// Accepts connections that wait, so many that those that are there are still served.
  void accept_some();
  /// Waits for input, until `end` at most, and handles it.
  void move(SocketClock::time_point end);
  void send_unsent(Connection& connection);
  void receive(Connection& connection);
  void hear(Connection& connection, const Frame& frame);
  void hear_hello(Connection& connection, const Hello& hello);
  void hear_answer(Connection& connection, const Answer& answer);
  void reply(Connection& connection, FrameKind kind, std::span<const std::uint8_t> body);
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
  std::set<Digest> heard_;             // numbers of hellos: nobody says one again
  std::uint64_t round_ = 0;
  std::optional<Error> fault_;
  std::vector<std::string> sent_away_;  // reasons, of the first ones
  std::uint64_t num_sent_away_ = 0;
};

}  // namespace cinch::rt
