// How one rank of a `sync` reaches the others. Every collective of the program is one exchange, and
// a last agreement ends the call. Each exchange also carries the status of the rank's own call, so
// that no rank waits for one that has stopped, and no rank takes a step that another does not.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"
#include "runtime/image/image.h"

namespace cinch::rt {

/// The status of a rank's call; the worst status of all ranks counts. A non-finite gradient ranks
/// before a failed check, since it may be the cause of the failure.
enum class RankStatus : std::uint8_t { Good, Failed, NonFinite };

struct CollectiveCall {
  CollectiveInfo collective;
  DType dtype;  // of the elements; stored in 8, 16, 32 or 64 bits
  // Of the same length on all ranks, unless the collective is counted
  std::span<const std::uint8_t> input;
  std::span<std::uint8_t> output;  // written only if all ranks are Good
  RankGroups groups = {};          // that exchange, for AllToAll
  // For routed collectives (is_routed):
  std::uint32_t to = 0;  // the rank that gets the input, or the root
  // For collectives that name a rank: prefix of error messages
  std::string_view place = {};
  std::uint32_t element_bytes = 0;        // for counted arrays
  std::span<std::uint8_t> received = {};  // a u32: how many elements of the output arrived
};

/// All ranks make the same calls in the same order. After a status other than Good, or an error,
/// they make no more calls in this synchronisation. The floating-point environment is the default
/// one.
class RankExchange {
 public:
  RankExchange() = default;
  RankExchange(const RankExchange&) = delete;
  RankExchange& operator=(const RankExchange&) = delete;
  virtual ~RankExchange() = default;

  /// Runs a collective; called by a rank that is Good. Sums, minima and maxima are joined in rank
  /// order. Errors: Cancelled (another rank has left), Internal (ranks at different collectives).
  virtual Result<RankStatus> exchange(const CollectiveCall& call) = 0;
  /// Agrees on the end; called by a rank that has finished (Good) or cannot go on. Errors: as
  /// above.
  virtual Result<RankStatus> agree(RankStatus own) = 0;
};

/// A point where a rank waits for the others: at a collective, or, if it has finished or cannot go
/// on, with its status.
struct RankPoint {
  RankStatus own = RankStatus::Good;
  std::optional<CollectiveCall> call;  // only for ranks that are Good
};

/// Makes the exchange that the rank waits for. Errors: those of RankExchange.
Result<RankStatus> meet_at(const RankPoint& point, RankExchange& ranks);

/// A world of one rank.
class LoneRank : public RankExchange {
 public:
  Result<RankStatus> exchange(const CollectiveCall& call) override;
  Result<RankStatus> agree(RankStatus own) override;
};

}  // namespace cinch::rt
