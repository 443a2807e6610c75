// One rank over NCCL. Collectives of all ranks share a lane; each direction between two ranks has a
// lane of its own. A lane submits exchanges to NCCL in the order of their starts, each when the one
// before was accepted. They run on its stream one after the other.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "runtime/transports/nccl/nccl_lane.h"
#include "runtime/transports/nccl/nccl_transport.h"

namespace cinch::rt {
// Exchanges over NCCL: what is under way, the calls that move it, and copies between host and
// device.

/// Device memory that NCCL may know; it is registered once with each communicator.
struct NcclKnown {
  GpuAddress address = 0;
  std::size_t size_bytes = 0;
  std::vector<std::pair<NcclLane*, void*>> handles;  // of its registrations
};

/// Device memory for staging and joining. It only grows; old memory is kept to the end, since
/// freeing it would wait for the device, and thus for other ranks.
struct NcclRoom {
  struct Block {
    GpuMemory memory;
    NcclKnown known;
  };
  std::vector<Block> blocks;
};

/// An exchange under way; its vectors and memory are reused for the next one.
struct NcclPending {
  enum class Stage : std::uint8_t { Waits, Launches, Runs, IsOver };
  std::uint32_t index = 0;      // of its ticket
  std::uint64_t seen_pass = 0;  // the pass of advancing in which it was last tested
  bool is_used = false;
  Stage stage = Stage::Waits;
  Exchange exchange;
  NcclLane* lane = nullptr;  // null: nothing to move
  bool is_joined_here = false, gathers_next = false, places_scattered = false;
  NcclType type = NcclType::Uint8;  // of the elements that NCCL joins
  GpuEvent comes_after = nullptr, is_copied = nullptr, has_run = nullptr;

  // Addresses on the device: the exchange's own memory, or a copy of host memory.
  GpuAddress input = 0, output = 0, scratch = 0;
  NcclRoom room;
  std::vector<ByteRange> slices, places;
  std::vector<std::uint8_t> bytes, joined;  // host memory, if this rank joins
  std::vector<std::span<const std::uint8_t>> inputs;

  bool is_on_host() const { return exchange.place == MemoryPlace::Host; }
  /// Each rank's part of the joined array.
  std::span<const ByteRange> joined_parts() const {
    return exchange.kind == ExchangeKind::ReduceScatter ? exchange.sent : slices;
  }
};

/// One rank of a world.
struct NcclRank {
  std::uint32_t rank = 0, world = 1;
};

/// Moves arrays of exchanges between host and device, on a stream of its own: copies of host memory
/// must not wait for exchanges, but copies of unpinned memory wait for their stream. Errors of all
/// calls: Device.
class NcclCopies {
 public:
  NcclCopies(std::shared_ptr<const GpuDevice> device, NcclRank own)
      : device_(std::move(device)), own_(own) {}

  Status open();
  /// Waits for all copies.
  Status wait();
  void close();

  Status copy_in(NcclPending& pending);
  Status copy_out(NcclPending& pending);
  Status to_device(GpuAddress to, std::span<const std::uint8_t> from);
  /// The lane's stream then waits for the copies to the device.
  Status end_copies_in(NcclPending& pending);
  /// On the lane's stream.
  Status on_device(const NcclPending& pending, GpuAddress to, GpuAddress from,
                   std::uint64_t size_bytes);
  /// Marks the end of the lane's work so far.
  Status mark_end(NcclPending& pending);
  /// Joins the received arrays, in rank order.
  Status join(NcclPending& pending);

 private:
  Status to_host(std::span<std::uint8_t> to, GpuAddress from);
  const GpuDriver& driver() const { return device_->driver(); }

  std::shared_ptr<const GpuDevice> device_;
  NcclRank own_;
  GpuStream stream_ = nullptr;
};

/// The calls of one exchange.
class NcclLaunches {
 public:
  /// `calls` and `copies` outlive this.
  NcclLaunches(const NcclCalls& calls, NcclCopies& copies, NcclRank own, bool is_exact)
      : calls_(calls), copies_(copies), own_(own), is_exact_(is_exact) {}

  /// NCCL's type for elements that it joins as we do.
  std::optional<NcclType> native_type(const Exchange& exchange) const;
  std::uint64_t scratch_bytes(const NcclPending& pending) const;
  Status launch(NcclPending& pending);
  /// For an all-reduce that is joined here: sends every rank's slice to all.
  Status launch_joined(NcclPending& pending);
  /// Puts work on the stream that follows the accepted calls.
  Status after_launch(NcclPending& pending);

 private:
  Status launch_message(NcclPending& pending);
  Status launch_all_reduce(NcclPending& pending);
  Status launch_reduce_scatter(NcclPending& pending);
  Status launch_all_gather(NcclPending& pending, GpuAddress own,
                           std::span<const ByteRange> received);
  Status launch_parts(NcclPending& pending, std::span<const ByteRange> sent, GpuAddress to,
                      std::span<const ByteRange> received);
  Status launch_joined_parts(NcclPending& pending);

  const NcclCalls& calls_;
  NcclCopies& copies_;
  NcclRank own_;
  bool is_exact_;
};

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

  /// Prepares the first exchange: makes the lane of all ranks (of the communicator that is lent, if
  /// `id` is null), and ids for those of messages.
  Status open(const NcclUniqueId* id, NcclComm lent);

  Result<Ticket> start(const Exchange& exchange) override;
  Result<bool> test(Ticket ticket) override;
  std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const override;
  void pause(std::chrono::microseconds most) override { pause_idle(num_idle_, 20, most); }
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
  Status check_lanes();
  /// Checks whether a neighbour has given up just now.
  Status check_neighbours();
  Status begin_launch(NcclPending& pending);
  Result<bool> has_reached(GpuEvent event) const;
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
