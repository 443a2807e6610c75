// How one rank of a `sync` reaches the others: every collective of the program is one exchange, and
// one last agreement ends the call. With each of them travels how the rank's own call goes, so that
// no rank waits for one that has stopped, and none takes a step that another one does not.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// How a rank's call goes; the worst of all ranks' is what counts: a non-finite gradient before a
/// failed check, since the one may be why the other failed.
enum class RankStatus : std::uint8_t { Good, Failed, NonFinite };

struct CollectiveCall {
  CollectiveInfo collective;
  DType dtype;                          // of the elements; stored in 8, 16, 32 or 64 bits
  std::span<const std::uint8_t> input;  // as long on all ranks, unless the collective is counted
  std::span<std::uint8_t> output;       // written only where all ranks are Good
  // Of routed collectives (is_routed):
  std::uint32_t to = 0;                   // the rank that gets the input
  std::string_view place = {};            // where receivers are named: what errors begin with
  std::uint32_t element_bytes = 0;        // where arrays are counted
  std::span<std::uint8_t> received = {};  // a u32: how many elements of the output arrived
};

/// Each rank makes the same calls in the same order; after a status other than Good, or an error,
/// no more of the same synchronisation. The floating-point environment is the default one.
class RankExchange {
 public:
  RankExchange() = default;
  RankExchange(const RankExchange&) = delete;
  RankExchange& operator=(const RankExchange&) = delete;
  virtual ~RankExchange() = default;

  /// By a rank that is Good. Sums, minima and maxima are joined in rank order.
  /// Errors: Cancelled (another rank has left), Internal (ranks that are not at the same
  /// collective).
  virtual Result<RankStatus> exchange(const CollectiveCall& call) = 0;
  /// By a rank that has come to the end (Good) or cannot go on. Errors: as above.
  virtual Result<RankStatus> agree(RankStatus own) = 0;
};

/// Where a rank waits for the others: at a collective, or, where it has come to the end or cannot
/// go on, with how that is.
struct RankPoint {
  RankStatus own = RankStatus::Good;
  std::optional<CollectiveCall> call;  // of ranks that are Good
};

/// The exchange that a rank waits for, whichever it is. Errors: those of RankExchange.
Result<RankStatus> meet_at(const RankPoint& point, RankExchange& ranks);

/// A world of one rank.
class LoneRank : public RankExchange {
 public:
  Result<RankStatus> exchange(const CollectiveCall& call) override;
  Result<RankStatus> agree(RankStatus own) override;
};

}  // namespace cinch::rt
