// Ranks that meet over a store that the caller provides: rank 0 reads every rank's value, and puts
// all of them under one key.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/transports/ucx/frames.h"
#include "runtime/transports/ucx/keyed_hash.h"
#include "runtime/transports/ucx/sockets.h"

namespace cinch::rt {
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
      const auto value = store_->get(key_of(rank), left);
      CINCH_TRY(value);
      const std::optional<Part>& found = *value;
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
    const auto value = store_->get(key_of_all(), own_.timeout + kGrace);
    CINCH_TRY(value);
    const std::optional<Part>& found = *value;
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
