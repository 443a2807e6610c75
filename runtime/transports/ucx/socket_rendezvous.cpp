// Ranks that meet over sockets: the side of those that connect to rank 0.
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "runtime/transports/ucx/socket_hub.h"

namespace cinch::rt {
namespace {

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
