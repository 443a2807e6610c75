// One rank of MPI's world. Broadcast, and all-reduce of types that MPI knows, are collectives of
// MPI. Other exchanges are messages: they can name the rank that is waited for, and have no limit
// of size. Open MPI's own non-blocking collectives of these kinds use the same messages.
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/transports/mpi/mpi_abi.h"
#include "runtime/transports/mpi/mpi_memory.h"
#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::rt {

/// The library's error code as an error of ours.
Error mpi_error(const cinch_mpi_calls& calls, std::int32_t code);

/// The token of an operation, by which its end is recognised: an exchange and its leg, or a notice.
inline constexpr std::uint32_t kNoticeToken = UINT32_MAX;
constexpr std::uint64_t token_of(std::uint32_t pending, std::uint64_t leg) {
  return std::uint64_t{pending} << 32 | leg;
}

class MpiTransport : public Transport {
 public:
  MpiTransport(const cinch_mpi_calls& calls, cinch_mpi_world* mpi, std::uint32_t rank,
               std::uint32_t world, const MpiOptions& options)
      : calls_(calls),
        mpi_(mpi),
        rank_(rank),
        world_(world),
        options_(options),
        is_cuda_aware_(options.cuda_aware == CudaAware::Yes ||
                       (options.cuda_aware == CudaAware::Auto && calls.takes_cuda_memory() != 0)) {
    // A whole number of elements of every type.
    options_.most_bytes = std::max<std::uint64_t>(8, options_.most_bytes / 8 * 8);
    has_gone_.resize(world);
    memory_->told.resize(world);
    memory_->heard.resize(world);
    num_sent_.resize(world);
    num_received_.resize(world);
  }
  ~MpiTransport() override;

  std::string_view name() const override { return "mpi"; }
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t world() const override { return world_; }
  bool sums_in_rank_order() const override { return options_.is_exact; }
  std::uint64_t sent_bytes() const override { return num_sent_bytes_; }
  std::uint64_t num_moves() const override { return num_moves_; }
  bool takes_device_memory(ExchangeKind kind) const override;
  bool lend(const LentMemory& memory) override;
  void take_back(std::span<std::uint8_t> device_memory) override;

  /// Call it before the first exchange: begins to receive notices.
  Status listen();
  Result<Ticket> start(const Exchange& exchange) override;
  Result<bool> test(Ticket ticket) override;
  std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const override;
  void pause(std::chrono::microseconds most) override;
  void abandon(const Error& why) override;

 private:
  bool is_used(Ticket ticket) const {
    return ticket.index < memory_->pending.size() && memory_->pending[ticket.index].is_used;
  }
  MpiPending& take_free();
  void number(MpiPending& pending);
  /// The device whose memory the exchange uses, or whose stream it follows; null: none.
  Result<MpiDevice*> device_of(const Exchange& exchange) const;
  Status start_on_host(MpiPending& pending);
  Status start_on_device(MpiPending& pending);
  /// Visits the other ranks in a circle, from the next one on, so that messages spread over the
  /// links.
  template <typename Visit>
  void visit_others(const Visit& visit) const {
    for (std::uint32_t i = 1; i < world_; ++i) visit((rank_ + i) % world_);
  }
  template <typename Call>
  Status each_chunk(MpiPending& pending, const MpiLeg& like, std::span<std::uint8_t> bytes,
                    const Call& call);
  /// Gives the exchange `size` bytes of the transport's memory.
  Status make_room(MpiPending& pending, std::uint64_t size);
  static Status copy_in(const MpiPending& pending, std::span<std::uint8_t> to,
                        std::span<const std::uint8_t> from);
  static Status copy_out(const MpiPending& pending, std::span<std::uint8_t> to,
                         std::span<const std::uint8_t> from);
  Status send_unsent(MpiPending& pending);
  Status send(MpiPending& pending, std::uint32_t to, std::span<std::uint8_t> bytes);
  Status receive(MpiPending& pending, std::uint32_t from, std::span<std::uint8_t> bytes);

  Status begin(MpiPending& pending);
  Status begin_message(MpiPending& pending);
  Status begin_broadcast(MpiPending& pending);
  Status begin_all_reduce(MpiPending& pending, std::int32_t type);
  Status receive_parts(MpiPending& pending);
  Status begin_gather(MpiPending& pending, std::span<const std::uint8_t> own,
                      std::span<const ByteRange> received);
  Status begin_parts(MpiPending& pending, std::span<const ByteRange> sent,
                     std::span<const ByteRange> received);
  /// Copies this rank's own part to its place in the output.
  Status keep_own(const MpiPending& pending, std::span<const std::uint8_t> own) const;
  Status begin_join(MpiPending& pending, std::span<const ByteRange> parts);
  Status join(MpiPending& pending, std::span<const ByteRange> parts,
              std::span<std::uint8_t> to) const;
  void cut_into_slices(MpiPending& pending) const;
  /// MPI's type of an all-reduce that MPI does.
  std::optional<std::int32_t> native_type(const Exchange& exchange) const;

  Status progress();
  Status end_leg(const cinch_mpi_end& end);
  void hear(std::uint32_t from);
  /// Advances an exchange. Ok also if it cannot go on now.
  Status advance(MpiPending& pending);
  Status advance_copies(MpiPending& pending);
  Status begin_output(MpiPending& pending);
  Status give_output(const MpiPending& pending) const;
  static void end(MpiPending& pending);
  bool is_in_vain(const MpiPending& pending, std::uint32_t gone) const;
  Status check_gone(const MpiPending& pending) const;
  MpiNotice notice_to(std::uint32_t other, MpiNotice::Kind kind) const;
  void tell_all(MpiNotice::Kind kind, std::string_view why, std::chrono::milliseconds patience);
  bool is_under_way() const;
  Status library_status(std::int32_t code) const;
  /// Keeps the first error, which ends the transport.
  tl::unexpected<Error> failed(const Error& error) {
    if (!fault_) fault_ = error;
    return tl::unexpected<Error>(*fault_);
  }

  const cinch_mpi_calls& calls_;
  cinch_mpi_world* mpi_;
  std::uint32_t rank_, world_;
  MpiOptions options_;
  bool is_cuda_aware_;
  std::vector<std::unique_ptr<MpiDevice>> devices_;
  std::unique_ptr<MpiMemory> memory_ = std::make_unique<MpiMemory>();
  std::uint64_t num_sent_bytes_ = 0, num_collectives_ = 0, num_moves_ = 0;
  std::vector<std::uint64_t> num_sent_, num_received_;  // messages, by rank
  std::size_t num_untaken_ = 0;                         // notices sent but not yet taken
  std::uint32_t num_idle_ = 0;
  std::vector<bool> has_gone_;  // by rank: it gave up or left
  bool is_known_ = false;       // all ranks have been told that one gives up
  std::optional<Error> fault_;
};

}  // namespace cinch::rt
