#include "runtime/transports/ucx/socket_hub.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>

namespace cinch::rt {
namespace {

constexpr std::size_t kMostBodyOfStranger = 128;
// Limits for connections that have not said hello: for how long, and how many there may be.
constexpr std::chrono::seconds kPatienceWithStrangers{5};
constexpr int kMostSilent = 256, kMostAcceptedAtOnce = 256;
constexpr std::size_t kMostReasons = 4;

std::string other_secret(std::uint32_t rank, std::uint32_t world) {
  return fmt::format("rank {} of {} has another secret", rank, world);
}

}  // namespace

std::string not_come(std::span<const std::uint32_t> ranks) {
  return fmt::format(
      "{} {} not come", ranks.size() == 1 ? "rank" : "ranks",
      fmt::format("{} {}", fmt::join(ranks, ", "), ranks.size() == 1 ? "has" : "have"));
}

bool SocketHub::drop_a_silent_one() {
  const auto oldest = std::ranges::find_if(connections_, &Connection::is_silent);
  if (oldest == connections_.end()) return false;
  send_away(*oldest, "it said nothing");
  connections_.erase(oldest);
  return true;
}

// A rank's hello mostly comes with its connection, so it is read at once.
void SocketHub::accept_some() {
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

void SocketHub::send_away(Connection& connection, const std::string& why) {
  ++num_sent_away_;
  const std::string reason = fmt::format("{}: {}", connection.host, why);
  const bool is_new = std::ranges::find(sent_away_, reason) == sent_away_.end();
  if (is_new && sent_away_.size() < kMostReasons) sent_away_.push_back(reason);
  send_unsent(connection);
  connection.is_over = true;
}

void SocketHub::close_listener() {
  listener_.close();
  for (Connection& each : connections_) {
    if (!each.is_member) each.is_over = true;
  }
}

void SocketHub::send_unsent(Connection& connection) {
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

void SocketHub::receive(Connection& connection) {
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

void SocketHub::hear(Connection& connection, const Frame& frame) {
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

void SocketHub::reply(Connection& connection, FrameKind kind, std::span<const std::uint8_t> body) {
  const auto bytes = frame_bytes(kind, body);
  connection.unsent.insert(connection.unsent.end(), bytes.begin(), bytes.end());
  send_unsent(connection);
}

void SocketHub::hear_hello(Connection& connection, const Hello& hello) {
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

VerdictCode SocketHub::verdict_on(const Connection& connection, const Answer& answer) const {
  const Digest wanted = connection.introduction.proof_of_rank(own_.secret);
  const Introduction& said = connection.introduction;
  if (!are_equal(wanted, answer.proof)) return VerdictCode::OtherSecret;
  if (said.world != own_.world) return VerdictCode::OtherWorld;
  if (said.rank == 0 || said.rank >= own_.world) return VerdictCode::NoSuchRank;
  return members_[said.rank] == nullptr ? VerdictCode::Welcome : VerdictCode::RankTaken;
}

void SocketHub::hear_answer(Connection& connection, const Answer& answer) {
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

void SocketHub::move(SocketClock::time_point end) {
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

Error SocketHub::late_error() const {
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

Result<std::vector<Part>> SocketHub::wait_for_parts(std::span<const std::uint8_t> own,
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

void SocketHub::tell_all(const Result<std::vector<Part>>& parts, SocketClock::time_point end) {
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

Result<std::vector<Part>> SocketHub::gather(std::span<const std::uint8_t> own) {
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

}  // namespace cinch::rt
