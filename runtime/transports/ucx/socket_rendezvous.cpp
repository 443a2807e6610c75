// Ranks that meet over sockets, or over a store.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <list>
#include <thread>

#include "runtime/transports/ucx/sockets.h"

namespace cinch::rt {

std::string not_come(std::span<const std::uint32_t> ranks) {
  return fmt::format(
      "{} {} not come", ranks.size() == 1 ? "rank" : "ranks",
      fmt::format("{} {}", fmt::join(ranks, ", "), ranks.size() == 1 ? "has" : "have"));
}

namespace {

constexpr std::size_t kMostBodyOfStranger = 128;
// Limits for connections that have not said hello: for how long, and how many there may be.
constexpr std::chrono::seconds kPatienceWithStrangers{5};
constexpr int kMostSilent = 256, kMostAcceptedAtOnce = 256;
constexpr std::size_t kMostReasons = 4;

std::string other_secret(std::uint32_t rank, std::uint32_t world) {
  return fmt::format("rank {} of {} has another secret", rank, world);
}

// Rank 0 of a meeting. It listens until all ranks have connected. Strangers, who send anything or
// nothing, are disconnected; ranks do not notice, however many there are: who connects speaks
// first, and only who has said hello with the secret keeps a place.
class SocketHub : public Rendezvous {
 public:
  SocketHub(const JobRank& own, OwnedFile listener)
      : own_(own), listener_(std::move(listener)), members_(own.world) {}

  Result<std::vector<Part>> gather(std::span<const std::uint8_t> own) override {
    constexpr std::chrono::seconds kPatienceToTell{1};
    if (fault_) return tl::unexpected<Error>(*fault_);
    const SocketClock::time_point end = SocketClock::now() + own_.timeout;
    auto parts = wait_for_parts(own, end);
    if (!parts) fault_ = parts.error();
    // Counted before replying: the first ranks that get this round's result begin the next round
    // before the last one gets it.
    ++round_;
    tell_all(parts, std::max(end, SocketClock::now() + kPatienceToTell));
    if (fault_) close_listener();
    return parts;
  }

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
  bool drop_a_silent_one() {
    const auto oldest = std::ranges::find_if(connections_, &Connection::is_silent);
    if (oldest == connections_.end()) return false;
    send_away(*oldest, "it said nothing");
    connections_.erase(oldest);
    return true;
  }

  /// Accepts connections that wait, so many that those that are there are still served.
  // A rank's hello mostly comes with its connection, so it is read at once.
  void accept_some() {
    auto num_silent = std::ranges::count_if(connections_, &Connection::is_silent);
    for (int i = 0; i < kMostAcceptedAtOnce && listener_.is_open(); ++i) {
      std::string host;
      OwnedFile file = accept_one(listener_, host);
      if (!file.is_open()) {
        const bool is_full = errno == EMFILE || errno == ENFILE;
        if (!is_full || !drop_a_silent_one()) return;
        --num_silent;
        continue;
      }
      Connection& added = connections_.emplace_back();
      added.file = std::move(file);
      added.host = std::move(host);
      added.end = SocketClock::now() + kPatienceWithStrangers;
      receive(added);
      if (added.is_silent() && ++num_silent > kMostSilent && drop_a_silent_one()) --num_silent;
    }
  }

  void send_away(Connection& connection, const std::string& why) {
    ++num_sent_away_;
    const std::string reason = fmt::format("{}: {}", connection.host, why);
    const bool is_new = std::ranges::find(sent_away_, reason) == sent_away_.end();
    if (is_new && sent_away_.size() < kMostReasons) sent_away_.push_back(reason);
    send_unsent(connection);
    connection.is_over = true;
  }

  void close_listener() {
    listener_.close();
    for (Connection& each : connections_) {
      if (!each.is_member) each.is_over = true;
    }
  }

  void send_unsent(Connection& connection) {
    while (!connection.unsent.empty()) {
      const auto sent = send_some(connection.file, connection.unsent);
      if (!sent) {
        connection.is_over = true;
        connection.unsent.clear();
      }
      if (!sent || *sent == 0) return;
      connection.unsent.erase(connection.unsent.begin(),
                              connection.unsent.begin() + static_cast<std::ptrdiff_t>(*sent));
    }
  }

  void receive(Connection& connection) {
    std::array<std::uint8_t, 4096> room;
    const auto received = receive_some(connection.file, room);
    if (!received) {
      if (!connection.is_member) send_away(connection, "it said nothing");
      connection.is_over = true;
      return;
    }
    connection.reader.add(std::span(room).first(*received));
    while (!connection.is_over) {
      const std::size_t most =
          connection.is_member ? kMostPartBytes + sizeof(Digest) : kMostBodyOfStranger;
      const auto frame = connection.reader.next(most);
      if (!frame) return send_away(connection, frame.error().message);
      const std::optional<Frame>& whole = *frame;
      if (!whole) return;
      hear(connection, *whole);
    }
  }

  void hear(Connection& connection, const Frame& frame) {
    if (connection.is_member) {
      const auto body = unsealed(connection.key, kWayToHub, round_, frame.body);
      if (frame.kind != FrameKind::RankPart || !body || connection.part) {
        connection.is_over = true;
        return;
      }
      connection.part = Part(body->begin(), body->end());
      return;
    }
    const auto hello = read_hello(frame);
    const auto answer = read_answer(frame);
    if (hello && !connection.has_said_hello) return hear_hello(connection, *hello);
    if (answer && connection.has_said_hello) return hear_answer(connection, *answer);
    send_away(connection, "a message that no rank sends");
  }

  void reply(Connection& connection, FrameKind kind, std::span<const std::uint8_t> body) {
    const auto bytes = frame_bytes(kind, body);
    connection.unsent.insert(connection.unsent.end(), bytes.begin(), bytes.end());
    send_unsent(connection);
  }

  void hear_hello(Connection& connection, const Hello& hello) {
    Introduction& introduction = connection.introduction;
    introduction = {random_digest(), hello.nonce, hello.rank, hello.world};
    if (!are_equal(introduction.proof_of_hello(own_.secret), hello.proof)) {
      reply(connection, FrameKind::Verdict,
            body_of(Verdict{VerdictCode::OtherSecret, own_.world, {}}));
      return send_away(connection, other_secret(hello.rank, hello.world));
    }
    if (!heard_.insert(hello.nonce).second) {
      return send_away(connection, "it says what another one has said");
    }
    connection.has_said_hello = true;
    connection.end = SocketClock::now() + kPatienceWithStrangers;
    reply(connection, FrameKind::Challenge, body_of(Challenge{introduction.hub_nonce}));
  }

  VerdictCode verdict_on(const Connection& connection, const Answer& answer) const {
    const Digest wanted = connection.introduction.proof_of_rank(own_.secret);
    const Introduction& said = connection.introduction;
    if (!are_equal(wanted, answer.proof)) return VerdictCode::OtherSecret;
    if (said.world != own_.world) return VerdictCode::OtherWorld;
    if (said.rank == 0 || said.rank >= own_.world) return VerdictCode::NoSuchRank;
    return members_[said.rank] == nullptr ? VerdictCode::Welcome : VerdictCode::RankTaken;
  }

  void hear_answer(Connection& connection, const Answer& answer) {
    const Introduction& said = connection.introduction;
    Verdict verdict{verdict_on(connection, answer), own_.world, {}};
    const bool has_secret = verdict.code != VerdictCode::OtherSecret;
    if (has_secret) verdict.proof = said.proof_of_hub(own_.secret);
    if (verdict.code == VerdictCode::Welcome) {
      connection.key = said.session_key(own_.secret);
      connection.is_member = true;
      members_[said.rank] = &connection;
    }
    reply(connection, FrameKind::Verdict, body_of(verdict));
    if (connection.is_member) return;
    send_away(connection, has_secret ? fmt::format("rank {} of {}", said.rank, said.world)
                                     : other_secret(said.rank, said.world));
  }

  /// Waits for input, until `end` at most, and handles it.
  void move(SocketClock::time_point end) {
    std::vector<pollfd> polled;
    for (const Connection& each : connections_) {
      const int events = each.unsent.empty() ? POLLIN : POLLIN | POLLOUT;
      polled.push_back({each.file.number(), static_cast<short>(events), 0});
      if (!each.is_member) end = std::min(end, each.end);
    }
    if (listener_.is_open()) polled.push_back({listener_.number(), POLLIN, 0});
    if (::poll(polled.data(), polled.size(), milliseconds_until(end)) < 0) return;
    const SocketClock::time_point now = SocketClock::now();
    auto found = polled.begin();
    for (Connection& each : connections_) {
      const int events = (found++)->revents;
      if ((events & POLLOUT) != 0) send_unsent(each);
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0 && !each.is_over) receive(each);
      if (!each.is_member && !each.is_over && now >= each.end) send_away(each, "it said nothing");
    }
    accept_some();
    const auto num_members = std::ranges::count_if(members_, [](auto* each) { return each; });
    if (static_cast<std::uint32_t>(num_members) + 1 == own_.world) close_listener();
    std::erase_if(connections_,
                  [](const Connection& each) { return each.is_over && !each.is_member; });
  }

  Error late_error() const {
    std::vector<std::uint32_t> missing;
    for (std::uint32_t rank = 1; rank < own_.world; ++rank) {
      if (members_[rank] == nullptr || !members_[rank]->part) missing.push_back(rank);
    }
    std::string text = fmt::format("{} within {} ms", not_come(missing), own_.timeout.count());
    if (num_sent_away_ > 0) {
      text += fmt::format("; {} {} sent away: {}", num_sent_away_,
                          num_sent_away_ == 1 ? "stranger was" : "strangers were",
                          fmt::join(sent_away_, ", "));
    }
    return {ErrorKind::TimedOut, text};
  }

  Result<std::vector<Part>> wait_for_parts(std::span<const std::uint8_t> own,
                                           SocketClock::time_point end) {
    const auto has_part = [](const Connection* each) { return each != nullptr && each->part; };
    while (!std::ranges::all_of(members_.begin() + 1, members_.end(), has_part)) {
      if (SocketClock::now() >= end) return tl::unexpected<Error>(late_error());
      move(end);
      for (std::uint32_t rank = 1; rank < own_.world; ++rank) {
        if (members_[rank] == nullptr || !members_[rank]->is_over || members_[rank]->part) continue;
        return fail(ErrorKind::Cancelled, fmt::format("rank {} has gone while ranks met", rank));
      }
    }
    std::vector<Part> parts{Part(own.begin(), own.end())};
    for (std::uint32_t rank = 1; rank < own_.world; ++rank) {
      std::optional<Part>& part = members_[rank]->part;
      if (part) parts.push_back(std::move(*part));
      part.reset();
    }
    return parts;
  }

  /// Sends the parts of the round before.
  void tell_all(const Result<std::vector<Part>>& parts, SocketClock::time_point end) {
    const auto body = body_of(parts);
    for (Connection* member : members_) {
      if (member == nullptr || member->is_over) continue;
      const auto bytes =
          frame_bytes(FrameKind::AllParts, sealed(member->key, kWayFromHub, round_ - 1, body));
      member->unsent.insert(member->unsent.end(), bytes.begin(), bytes.end());
      send_unsent(*member);
    }
    const auto is_told = [](const Connection* each) {
      return each == nullptr || each->unsent.empty();
    };
    while (!std::ranges::all_of(members_, is_told) && SocketClock::now() < end) move(end);
  }

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

// The side of those that connect to rank 0.
class SocketSpoke : public Rendezvous {
 public:
  SocketSpoke(JobRank own, NetAddress address, std::string interface)
      : own_(std::move(own)), address_(std::move(address)), interface_(std::move(interface)) {}

  Result<std::vector<Part>> gather(std::span<const std::uint8_t> own) override {
    if (fault_) return tl::unexpected<Error>(*fault_);
    auto parts = take_round(own);
    if (!parts) fault_ = parts.error();
    ++round_;
    return parts;
  }

 private:
  Result<std::vector<Part>> take_round(std::span<const std::uint8_t> own) {
    // Rank 0 must notice a missing rank first, so that it can name it.
    constexpr std::chrono::seconds kGrace{2};
    const SocketClock::time_point end = SocketClock::now() + own_.timeout;
    const auto of_hub = [&](const Error& error) {
      return fail(error.kind == ErrorKind::TimedOut ? ErrorKind::TimedOut : ErrorKind::Cancelled,
                  fmt::format("rank 0, at {}, has gone while ranks met: {}", address_.text(),
                              error.message));
    };
    if (!file_.is_open()) {
      CINCH_TRY(join(end));
    }
    const Status sent = send(FrameKind::RankPart, sealed(key_, kWayToHub, round_, own), end);
    if (!sent) return of_hub(sent.error());
    const auto frame = receive(most_round_bytes(own_.world), end + kGrace);
    if (!frame) return of_hub(frame.error());
    const auto body = unsealed(key_, kWayFromHub, round_, frame->body);
    if (frame->kind != FrameKind::AllParts || !body) {
      return fail(ErrorKind::CorruptPayload, "what rank 0 tells of a round is corrupt");
    }
    return read_round(*body, own_.world);
  }

  /// Finds rank 0; both prove that they know the secret.
  // Another program may have the port until rank 0 starts, and may send nothing.
  Status join(SocketClock::time_point end) {
    constexpr std::chrono::seconds kPatience{5};
    constexpr std::chrono::milliseconds kNap{100};
    for (;;) {
      file_ = TRY(connect_to(address_, interface_, end));
      Status status = introduce(std::min(end, SocketClock::now() + kPatience));
      if (status || status.error().kind != ErrorKind::Unavailable) return status;
      if (SocketClock::now() + kNap >= end) {
        return fail(ErrorKind::TimedOut, fmt::format("who answers at {} is not rank 0: {}",
                                                     address_.text(), status.error().message));
      }
      std::this_thread::sleep_for(kNap);
    }
  }

  /// Tries once. Errors: Unavailable (the listener is not, or not yet, rank 0); InvalidArgument.
  Status introduce(SocketClock::time_point end) {
    constexpr std::size_t kMostBody = 128;
    const auto not_rank_0 = [](const Error& error) {
      return fail(ErrorKind::Unavailable, error.message);
    };
    reader_ = {};
    Introduction introduction{{}, random_digest(), own_.rank, own_.world};
    const Hello hello{own_.rank, own_.world, introduction.rank_nonce,
                      introduction.proof_of_hello(own_.secret)};
    if (Status sent = send(FrameKind::Hello, body_of(hello), end); !sent) {
      return not_rank_0(sent.error());
    }
    const auto first = receive(kMostBody, end);
    if (!first) return not_rank_0(first.error());
    const auto refusal = read_verdict(*first);
    if (refusal && refusal->code == VerdictCode::OtherSecret) {
      return check_verdict(*refusal, introduction);
    }
    const auto challenge = read_challenge(*first);
    if (!challenge) return fail(ErrorKind::Unavailable, "a message that rank 0 does not send");
    introduction.hub_nonce = challenge->nonce;
    const Answer answer{introduction.proof_of_rank(own_.secret)};
    if (Status sent = send(FrameKind::Answer, body_of(answer), end); !sent) {
      return not_rank_0(sent.error());
    }
    const auto second = receive(kMostBody, end);
    if (!second) return not_rank_0(second.error());
    const auto verdict = read_verdict(*second);
    if (!verdict) return fail(ErrorKind::Unavailable, "a message that rank 0 does not send");
    key_ = introduction.session_key(own_.secret);
    return check_verdict(*verdict, introduction);
  }

  Status check_verdict(const Verdict& verdict, const Introduction& introduction) {
    const auto refuse = [&](const std::string& why) {
      return fail(ErrorKind::InvalidArgument, fmt::format("rank 0, at {}, sends rank {} away: {}",
                                                          address_.text(), own_.rank, why));
    };
    if (verdict.code == VerdictCode::OtherSecret) return refuse("their secrets differ");
    if (!are_equal(verdict.proof, introduction.proof_of_hub(own_.secret))) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("who answers at {} does not have the secret", address_.text()));
    }
    switch (verdict.code) {
      case VerdictCode::OtherWorld:
        return refuse(fmt::format("it knows of {} ranks, not {}", verdict.world, own_.world));
      case VerdictCode::NoSuchRank:
        return refuse("there is no such rank");
      case VerdictCode::RankTaken:
        return refuse("another process is that rank");
      case VerdictCode::Welcome:
      case VerdictCode::OtherSecret:
        break;
    }
    return Ok{};
  }

  Status send(FrameKind kind, std::span<const std::uint8_t> body, SocketClock::time_point end) {
    const auto frame = frame_bytes(kind, body);
    for (std::span<const std::uint8_t> unsent = frame; !unsent.empty();) {
      const auto sent = TRY(send_some(file_, unsent));
      unsent = unsent.subspan(sent);
      if (sent == 0 && !wait_to_write(file_, end)) {
        return fail(ErrorKind::TimedOut, "it takes nothing");
      }
    }
    return Ok{};
  }

  Result<Frame> receive(std::size_t most_bytes, SocketClock::time_point end) {
    std::array<std::uint8_t, 16384> room;
    for (;;) {
      std::optional<Frame> whole = TRY(reader_.next(most_bytes));
      if (whole) return std::move(*whole);
      if (!wait_to_read(file_, end)) return fail(ErrorKind::TimedOut, "it says nothing");
      reader_.add(std::span(room).first(TRY(receive_some(file_, room))));
    }
  }

  JobRank own_;
  NetAddress address_;
  std::string interface_;
  OwnedFile file_;
  FrameReader reader_;
  Digest key_{};
  std::uint64_t round_ = 0;
  std::optional<Error> fault_;
};
}  // namespace

Result<std::unique_ptr<Rendezvous>> meet_over_socket(const JobRank& own, const std::string& address,
                                                     const std::string& interface) {
  auto parsed = TRY(parse_net_address(address));
  if (own.rank != 0) {
    return std::make_unique<SocketSpoke>(own, std::move(parsed), interface);
  }
  return std::make_unique<SocketHub>(own, TRY(listen_at(parsed, interface)));
}

// Ranks that meet over a store that the caller provides: rank 0 reads every rank's value, and puts
// all of them under one key.

namespace {

class StoreRendezvous : public Rendezvous {
 public:
  StoreRendezvous(const JobRank& own, std::shared_ptr<KeyValueStore> store)
      : own_(own),
        store_(std::move(store)),
        key_(keyed_hash(own.secret, HashedText("cinch: store").add(own.world))) {}

  Result<std::vector<Part>> gather(std::span<const std::uint8_t> own) override {
    if (fault_) return tl::unexpected<Error>(*fault_);
    auto parts = own_.rank == 0 ? take_all(own) : take_round(own);
    if (!parts) fault_ = parts.error();
    ++round_;
    return parts;
  }

 private:
  std::string key_of(std::uint32_t rank) const { return fmt::format("cinch/{}/{}", round_, rank); }
  std::string key_of_all() const { return fmt::format("cinch/{}/all", round_); }

  Result<std::vector<Part>> take_all(std::span<const std::uint8_t> own) {
    auto parts = take_parts(own);
    const Status put = store_->put(key_of_all(), sealed(key_, kOfAll, round_, body_of(parts)));
    if (!put && parts) return tl::unexpected<Error>(put.error());
    return parts;
  }

  Result<std::vector<Part>> take_parts(std::span<const std::uint8_t> own) {
    std::vector<Part> parts{Part(own.begin(), own.end())};
    std::vector<std::uint32_t> missing;
    const SocketClock::time_point end = SocketClock::now() + own_.timeout;
    for (std::uint32_t rank = 1; rank < own_.world; ++rank) {
      const std::chrono::milliseconds left(milliseconds_until(end));
      const std::optional<Part> found = TRY(store_->get(key_of(rank), left));
      if (!found) {
        missing.push_back(rank);
        continue;
      }
      const auto body = unsealed(key_, way_of(rank), round_, *found);
      if (!body || body->size() > kMostPartBytes) {
        return fail(ErrorKind::InvalidArgument,
                    fmt::format("the secrets of ranks 0 and {} differ", rank));
      }
      parts.emplace_back(body->begin(), body->end());
    }
    if (missing.empty()) return parts;
    return fail(ErrorKind::TimedOut,
                fmt::format("{} within {} ms", not_come(missing), own_.timeout.count()));
  }

  Result<std::vector<Part>> take_round(std::span<const std::uint8_t> own) {
    // Rank 0 must notice a missing rank first, so that it can name it.
    constexpr std::chrono::seconds kGrace{2};
    CINCH_TRY(store_->put(key_of(own_.rank), sealed(key_, way_of(own_.rank), round_, own)));
    const std::optional<Part> found = TRY(store_->get(key_of_all(), own_.timeout + kGrace));
    if (!found) {
      const std::uint32_t hub[] = {0};
      return fail(ErrorKind::TimedOut,
                  fmt::format("{} within {} ms", not_come(hub), own_.timeout.count()));
    }
    const auto body = unsealed(key_, kOfAll, round_, *found);
    if (!body) {
      return fail(ErrorKind::InvalidArgument,
                  fmt::format("the secrets of ranks 0 and {} differ", own_.rank));
    }
    auto parts = read_round(*body, own_.world);
    // What ranks with the same secret left in the store when they met before is no result of this
    // meeting.
    const bool is_of_now = !parts || std::ranges::equal((*parts)[own_.rank], own);
    if (is_of_now) return parts;
    return fail(ErrorKind::InvalidArgument,
                fmt::format("the store has an earlier meeting under {}: each needs keys of its own",
                            key_of_all()));
  }

  static std::string way_of(std::uint32_t rank) { return fmt::format("cinch: of rank {}", rank); }
  static constexpr const char* kOfAll = "cinch: of all ranks";

  JobRank own_;
  std::shared_ptr<KeyValueStore> store_;
  Digest key_;
  std::uint64_t round_ = 0;
  std::optional<Error> fault_;
};

}  // namespace

std::unique_ptr<Rendezvous> meet_over_store(const JobRank& own,
                                            std::shared_ptr<KeyValueStore> store) {
  return std::make_unique<StoreRendezvous>(own, std::move(store));
}

}  // namespace cinch::rt
