// One rank of MPI's world. Broadcast, and all-reduce of types that MPI knows, are collectives of
// MPI. Other exchanges are messages: they can name the rank that is waited for, and have no limit
// of size. Open MPI's own non-blocking collectives of these kinds use the same messages.
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/gpu/device.h"
#include "runtime/transports/mpi/mpi_abi.h"
#include "runtime/transports/mpi/mpi_transport.h"

namespace cinch::rt {
// A device whose memory sessions have lent. MPI gets only memory of the transport there, as on the
// host: operations that MPI has not finished when a rank gives up may go on using it, and the
// session's memory stays the session's own. A copy within the device is cheap compared with a
// network. MPI follows no streams: it reads what was copied before, and what it has written is
// copied out after the work that the exchange follows.

/// Memory of one exchange; reused for the next one.
struct MpiStaging {
  GpuMemory memory;
  GpuEvent comes_after = nullptr, is_copied = nullptr;
  bool is_used = false;

  std::span<std::uint8_t> bytes() const {
    return {reinterpret_cast<std::uint8_t*>(  // NOLINT(performance-no-int-to-ptr)
                memory.address()),
            memory.size_bytes()};
  }
};

class MpiDevice {
 public:
  /// Errors: Device.
  static Result<std::unique_ptr<MpiDevice>> open(const LentMemory& first);
  /// Destroy it in the device's turn. Staging that is still in use is kept to the end of the
  /// process.
  ~MpiDevice();
  MpiDevice(const MpiDevice&) = delete;
  MpiDevice& operator=(const MpiDevice&) = delete;

  /// Holds the device's turn, and makes its context current on this thread, while this lives.
  class Turn {
   public:
    explicit Turn(const MpiDevice& of)
        : lock_(of.turns_ == nullptr ? std::unique_lock<std::mutex>()
                                     : std::unique_lock(*of.turns_)),
          scope_(*of.device_) {}

   private:
    std::unique_lock<std::mutex> lock_;
    GpuDevice::Scope scope_;
  };

  const GpuDevice& device() const { return *device_; }
  void add(std::span<std::uint8_t> lent) { lent_.push_back(lent); }
  /// Returns false if nothing that begins there was lent.
  bool remove(std::span<std::uint8_t> lent);
  bool is_idle() const { return lent_.empty(); }
  /// Does lent memory contain all of these bytes?
  bool has(std::span<const std::uint8_t> bytes) const;

  // ---- call these in the device's turn ----

  /// Takes staging of this size. Errors: OutOfMemory, Device.
  Result<MpiStaging*> take(std::uint64_t size_bytes);
  /// Copies that MPI reads, and copies of what MPI wrote.
  enum class Way : std::uint8_t { In, Out };
  /// Later copies come after the present work on `after`; null: after nothing.
  Status begin_input(MpiStaging& staging, GpuStream after) const;
  Status begin_output(MpiStaging& staging, GpuStream after) const;
  Status copy(Way way, std::span<std::uint8_t> to, std::span<const std::uint8_t> from) const;
  Status end(Way way, MpiStaging& staging) const;
  /// Are the copies that were begun done?
  Result<bool> is_copied(const MpiStaging& staging) const;
  /// Waits for the work on a stream.
  Status wait_for(GpuStream stream) const;
  /// Waits for all copies.
  Status wait() const;

 private:
  MpiDevice(std::shared_ptr<const GpuDevice> device, std::mutex* turns)
      : device_(std::move(device)), turns_(turns) {}
  const GpuDriver& driver() const { return device_->driver(); }
  Status start();
  Result<MpiStaging*> make();
  Status grow(MpiStaging& staging, std::uint64_t size_bytes) const;
  GpuStream stream_of(Way way) const { return way == Way::In ? inputs_ : outputs_; }

  std::shared_ptr<const GpuDevice> device_;
  std::mutex* turns_;
  // By way. The copies that MPI reads may wait for work of the rank.
  GpuStream inputs_ = nullptr, outputs_ = nullptr;
  std::vector<std::span<std::uint8_t>> lent_;
  std::deque<MpiStaging> stagings_;
};

// Data of exchanges over MPI while they are under way. MPI can cancel neither a message that was
// sent nor a collective, so bytes are exchanged from and to memory of the transport. Memory that is
// still in use when the transport ends is never freed.

/// A notice from one rank to another, sent once: that it gives up, and why, or that it has left. It
/// also tells how far the rank got: how many exchanges had ended before the first that had not.
struct MpiNotice {
  enum class Kind : std::uint32_t { None, GaveUp, Left };
  Kind kind = Kind::None;
  std::uint64_t num_collectives = 0;
  std::uint64_t num_sent = 0, num_received = 0;  // messages to and from the receiver of the notice
  std::array<char, 400> text{};

  void set_text(std::string_view why) { text[why.copy(text.data(), text.size() - 1)] = '\0'; }
};

/// The part of an exchange that one MPI operation does.
struct MpiLeg {
  enum class Kind : std::uint8_t { Send, Receive, Collective };
  Kind kind = Kind::Send;
  std::uint32_t peer = 0;  // for a message
  std::uint64_t size = 0;
  bool is_over = false;
};

/// Bytes to send once they lie in memory that MPI can use.
struct MpiUnsent {
  std::uint32_t to = 0;
  std::span<std::uint8_t> bytes;
};

/// An exchange under way; its vectors are reused for the next one.
struct MpiPending {
  /// On a device: the device copies the input, MPI moves it, the device copies the output. On the
  /// host copies are made at once.
  enum class Stage : std::uint8_t { TakesInput, Moves, GivesOutput, IsOver };
  std::uint32_t index = 0;  // of its ticket
  bool is_used = false, gathers_next = false;
  Stage stage = Stage::Moves;
  Exchange exchange;
  MpiDevice* device = nullptr;  // whose memory it uses; null: the host's
  MpiStaging* staging = nullptr;
  std::uint64_t number = 0;  // index among the collectives, or among the messages in its direction
  std::int32_t tag = 0;
  std::vector<MpiLeg> legs;
  std::size_t num_left = 0;  // legs that have not ended
  std::vector<MpiUnsent> unsent;
  std::vector<std::uint8_t> bytes;  // on the host
  std::span<std::uint8_t> room;     // sent bytes, followed by received bytes
  std::vector<ByteRange> received;  // by rank: the place of its bytes in `room`
  std::vector<ByteRange> slices, expected;
  std::vector<std::span<const std::uint8_t>> inputs;
};

struct MpiMemory {
  std::deque<MpiPending> pending;      // by ticket
  std::vector<MpiNotice> told, heard;  // by rank
};

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
  void pause(std::chrono::microseconds most) override { pause_idle(num_idle_, 2, most); }
  void abandon(const Error& why) override;

 private:
  bool is_used(Ticket ticket) const {
    return ticket.index < memory_->pending.size() && memory_->pending[ticket.index].is_used;
  }
  MpiPending& take_free();
  void number(MpiPending& pending);
  /// The device whose memory the exchange uses, or whose stream it follows; null: none.
  Result<MpiDevice*> device_of(const Exchange& exchange) const;
  template <typename Call>
  Status each_chunk(MpiPending& pending, const MpiLeg& like, std::span<std::uint8_t> bytes,
                    const Call& call);
  /// Gives the exchange `size` bytes of the transport's memory.
  Status make_room(MpiPending& pending, std::uint64_t size);
  Status send_unsent(MpiPending& pending);
  Status send(MpiPending& pending, std::uint32_t to, std::span<std::uint8_t> bytes);
  Status receive(MpiPending& pending, std::uint32_t from, std::span<std::uint8_t> bytes);

  Status begin(MpiPending& pending);
  Status begin_message(MpiPending& pending);
  Status begin_broadcast(MpiPending& pending);
  Status begin_all_reduce(MpiPending& pending, std::int32_t type);
  Status receive_parts(MpiPending& pending, std::uint64_t sent_bytes,
                       std::span<const ByteRange> received);
  Status begin_gather(MpiPending& pending, std::span<const std::uint8_t> own,
                      std::span<const ByteRange> received);
  Status begin_parts(MpiPending& pending, std::span<const ByteRange> sent,
                     std::span<const ByteRange> received);
  /// Copies this rank's own part to its place in the output.
  Status keep_own(const MpiPending& pending, std::span<const std::uint8_t> own) const;
  Status begin_join(MpiPending& pending, std::span<const ByteRange> parts);
  Status join(MpiPending& pending, std::span<const ByteRange> parts,
              std::span<std::uint8_t> to) const;
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
