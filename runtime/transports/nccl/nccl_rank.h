// One rank over NCCL. Collectives of all ranks share a lane; each direction between two ranks has a
// lane of its own. A lane submits exchanges to NCCL in the order of their starts, each when the one
// before was accepted. They run on its stream one after the other.
#pragma once
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/transports/nccl/nccl_exchanges.h"
#include "runtime/transports/nccl/nccl_lane.h"
#include "runtime/transports/nccl/nccl_transport.h"

namespace cinch::rt {

class NcclTransport : public Transport {
 public:
  NcclTransport(const NcclCalls& calls, std::uint32_t rank, std::uint32_t world,
                const NcclOptions& options)
      : calls_(calls),
        options_(options),
        device_(options.device),
        own_{rank, world},
        copies_(options.device, own_),
        launches_(calls, copies_, own_, options.is_exact) {}
  ~NcclTransport() override;

  std::string_view name() const override { return "nccl"; }
  std::uint32_t rank() const override { return own_.rank; }
  std::uint32_t world() const override { return own_.world; }
  bool sums_in_rank_order() const override { return options_.is_exact; }
  bool takes_device_memory(ExchangeKind /*kind*/) const override { return true; }
  bool lend(const LentMemory& memory) override;
  void take_back(std::span<std::uint8_t> device_memory) override;
  std::uint64_t sent_bytes() const override { return num_sent_bytes_; }
  std::uint64_t num_moves() const override { return num_moves_; }

  /// Prepares the first exchange: makes the lane of all ranks, and ids for those of messages.
  Status open(const NcclUniqueId& id);
  Status open(NcclComm lent);

  Result<Ticket> start(const Exchange& exchange) override;
  Result<bool> test(Ticket ticket) override;
  std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const override;
  void pause(std::chrono::microseconds most) override;
  void abandon(const Error& why) override;

 private:
  const GpuDriver& driver() const { return device_->driver(); }
  bool is_used(Ticket ticket) const {
    return ticket.index < pending_.size() && pending_[ticket.index].is_used;
  }

  // nccl_open.cpp
  Status wait_for_lane();
  /// Every sender makes the ids of its lanes. The first message opens a lane itself.
  Status exchange_ids();

  // nccl_transport.cpp
  Status check_memory(const Exchange& exchange) const;
  Result<NcclPending*> take_free();
  /// The lane of an exchange; opens it for the first exchange in a direction.
  Result<NcclLane*> lane_of(const Exchange& exchange);
  Status begin(NcclPending& pending);
  /// Advances an exchange. Ok also if it cannot go on now.
  Status advance(NcclPending& pending);
  Status advance_all();
  bool has_news(const NcclPending& asked) const;
  Status check_lanes();
  /// Checks whether a neighbour has given up just now.
  Status check_neighbours();
  Status begin_launch(NcclPending& pending);
  Result<bool> has_reached(GpuEvent event) const;
  Status end_launch(NcclPending& pending);
  Status end_run(NcclPending& pending);
  /// For one lane; null: for any.
  bool is_under_way(const NcclLane* lane) const;
  void end_lanes(bool is_orderly);
  Status driver_status(GpuCode code, const char* what) const { return device_->status(code, what); }
  tl::unexpected<Error> failed(const Error& error) {
    if (!fault_) fault_ = error;
    return tl::unexpected<Error>(*fault_);
  }

  // nccl_memory.cpp
  Status make_room(NcclPending& pending);
  Result<GpuAddress> room_of(NcclPending& pending, std::uint64_t size_bytes);
  Status make_known(NcclKnown& known, NcclLane& lane) const;
  /// Registers the lent memory that an exchange uses.
  Status make_lent_known(const NcclPending& pending);
  void deregister(NcclKnown& known) const;
  void deregister_all();

  const NcclCalls& calls_;
  NcclOptions options_;
  std::shared_ptr<const GpuDevice> device_;
  NcclRank own_;
  NcclCopies copies_;
  NcclLaunches launches_;
  NcclEndings endings_;
  std::deque<NcclPending> pending_;  // by ticket; destroyed after the lanes, which use their memory
  NcclLane all_{calls_, device_};
  std::map<std::pair<std::uint32_t, std::uint32_t>, NcclLane> ways_;  // by sender and receiver
  std::vector<NcclKnown> lent_;
  std::vector<NcclUniqueId> ids_;  // for directions: by sender, then receiver
  std::uint64_t num_sent_bytes_ = 0, num_moves_ = 0;
  std::uint32_t num_idle_ = 0;
  std::uint64_t num_passes_ = 0;  // how often all exchanges were advanced
  std::chrono::steady_clock::time_point is_new_until_;
  std::optional<std::chrono::steady_clock::time_point> heard_at_;
  std::optional<Error> fault_;
};

}  // namespace cinch::rt
