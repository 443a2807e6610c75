// A world of one rank: every collective returns its input.
#include "runtime/collective/rank_exchange.h"

#include "runtime/collective/join_ranks.h"
#include "runtime/collective/routes.h"

namespace cinch::rt {

Result<RankStatus> meet_at(const RankPoint& point, RankExchange& ranks) {
  return point.call ? ranks.exchange(*point.call) : ranks.agree(point.own);
}

Result<RankStatus> LoneRank::exchange(const CollectiveCall& call) {
  const std::span<const std::uint8_t> inputs[] = {call.input};
  const RankOffer offers[] = {offer_of(call)};
  const Status status = is_routed(call.collective.kind) ? give_routed(call, inputs, offers, 0)
                                                        : give_part(call, inputs, 0);
  CINCH_TRY(status);
  return RankStatus::Good;
}

Result<RankStatus> LoneRank::agree(RankStatus own) {
  return own;
}

}  // namespace cinch::rt
