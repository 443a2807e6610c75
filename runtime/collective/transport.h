// Moves bytes between one rank and the others; one interface for all transports. An exchange is
// started, proceeds while the rank does other work, and is waited for.
//
//   const Result<Ticket> ticket = transport.start({.kind = ExchangeKind::AllGather, …});
//   while (!*transport.test(*ticket)) …;            // or transport.wait(*ticket, timeout)
//
// All ranks start collectives in the same order; two ranks start the messages between them in the
// same order, for each direction. Both sides know the sizes: if one side does not, the ranks
// exchange the size first, or send the largest size.
#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/core/error.h"
#include "runtime/core/numbers/dtype.h"
#include "runtime/image/image.h"

namespace cinch::rt {

class GpuDevice;

enum class ExchangeKind : std::uint8_t {
  Send,
  Receive,
  AllReduce,
  ReduceScatter,
  AllGather,
  AllToAll,
  Broadcast
};

/// A rank has an array, a connection or a message for each other one.
inline constexpr std::uint32_t kMostRanks = 1024;
/// Errors: InvalidArgument (no ranks, more than kMostRanks).
Status check_world(std::uint32_t world);

/// Device: spans hold addresses of GPU memory, which the host does not access.
enum class MemoryPlace : std::uint8_t { Host, Device };

struct ByteRange {
  std::uint64_t offset = 0, size = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// One exchange. All its memory, the ranges too, must stay as it is until the exchange has ended.
///
///   Send           input to `peer`
///   Receive        output from `peer`
///   AllReduce      output = input of all ranks joined; may be the same memory
///   ReduceScatter  output = the part of all inputs that `sent` gives this rank, joined
///   AllGather      every rank's input to the part of output that `received` gives it; the own
///                  input may lie there already
///   AllToAll       the part of input that `sent` gives a rank to that rank; what comes from a rank
///                  goes to the part of output that `received` gives it
///   Broadcast      output of `peer` to the output of all
struct Exchange {
  ExchangeKind kind = ExchangeKind::Send;
  std::uint32_t peer = 0;
  RankReduction reduction = RankReduction::None;  // Sum, Min, Max
  DType dtype = kF32;                             // of elements that are joined
  std::span<const std::uint8_t> input;
  std::span<std::uint8_t> output;
  std::span<const ByteRange> sent, received;  // by rank, in the host's memory
  MemoryPlace place = MemoryPlace::Host;      // of input and output
  /// A GPU's stream: the exchange comes after the work that is on it now, and which may still write
  /// the input. Work that is put on any stream after the exchange has ended sees its output. Null:
  /// the input is complete.
  void* after = nullptr;
};

/// A device's memory that its owner lends to a transport.
struct LentMemory {
  std::span<std::uint8_t> bytes;
  std::shared_ptr<const GpuDevice> device;
  /// Held while the device is used, if only one user at a time may (an emulated device); or null.
  std::mutex* turns = nullptr;
};

/// An exchange under way.
struct Ticket {
  std::uint32_t index = 0;
};

class Transport {
 public:
  Transport() = default;
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  /// Nobody waits for a rank that goes: the others get an error.
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t world() const = 0;
  /// Does it join floats in rank order? Sums then have the same bits on all such transports.
  virtual bool sums_in_rank_order() const = 0;
  /// Does it take exchanges of this kind in device memory, and exchanges that come after work on a
  /// stream?
  virtual bool takes_device_memory(ExchangeKind /*kind*/) const { return false; }
  /// Lends device memory in which the exchanges of many steps will lie, so that the transport can
  /// register it with its network once. Returns false if exchanges cannot lie there. The loan ends
  /// with `take_back`, when no exchange uses it. Whoever calls these holds the device's turn.
  virtual bool lend(const LentMemory& memory);
  virtual void take_back(std::span<std::uint8_t> device_memory);

  /// Starts an exchange. Errors: InvalidArgument (parts outside their arrays, no such rank, a type
  /// that cannot be joined), Cancelled (another rank gave up or left, and says why), Device (the
  /// library's error).
  virtual Result<Ticket> start(const Exchange& exchange) = 0;
  /// Has the exchange ended? Also advances all other exchanges. After true or an error the ticket
  /// is invalid. Errors: as of start; Internal (ranks at different exchanges).
  virtual Result<bool> test(Ticket ticket) = 0;
  /// Ranks whose part of the exchange has not arrived; none if the transport cannot tell.
  virtual std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const = 0;
  /// Why another rank has gone, as far as this one has heard; also after `abandon`, which listens
  /// while it tells. None: it has said nothing, or the transport cannot tell.
  virtual std::optional<Error> last_words(std::uint32_t /*rank*/) const { return std::nullopt; }
  /// Returns when an exchange may have progressed, or after `most`.
  virtual void pause(std::chrono::microseconds most) = 0;
  /// Ends a pause of this rank, the running one or the next. From any thread. Returns false if the
  /// transport cannot.
  virtual bool wake() { return false; }
  /// Gives up: ranks that wait for this one, now or later, learn why, and keep what they already
  /// have. This rank's exchanges never end, but its memory is free again.
  virtual void abandon(const Error& why) = 0;

  /// Bytes that this rank has put on the wire so far.
  virtual std::uint64_t sent_bytes() const = 0;
  /// Grows with each part of an exchange, mostly a message, that was sent or received; time-outs
  /// then start anew.
  virtual std::uint64_t num_moves() const = 0;
};

/// Gives up because of a time-out, `error`, of an exchange that waited for `awaited`. All ranks'
/// clocks run out at once, and most of the awaited ranks wait, too. So the error that this returns
/// names those that say nothing, or else has what they say.
Error abandon_late(Transport& transport, const Error& error,
                   std::span<const std::uint32_t> awaited);

// What transports share.

/// Visits the other ranks in a circle, from the next one on, so that messages spread over the
/// links.
template <typename Visit>
void visit_others(std::uint32_t rank, std::uint32_t world, const Visit& visit) {
  for (std::uint32_t i = 1; i < world; ++i) visit((rank + i) % world);
}

/// Cuts the array of an all-reduce into a slice for each rank.
void cut_into_slices(const Exchange& exchange, std::uint32_t world, std::vector<ByteRange>& slices);

/// A pause of a rank that may share its core: it lets others run for so many calls, and then
/// sleeps.
void pause_idle(std::uint32_t& num_idle, std::uint32_t num_yields, std::chrono::microseconds most);

/// Keeps to the end of the process what a library may still use.
template <typename T>
void keep_forever(T kept) {
  static std::mutex mutex;
  static auto* const kKept = new std::vector<T>;
  const std::lock_guard lock(mutex);
  kKept->push_back(std::move(kept));
}

/// For error messages: "rank 3 gave up: why". If it gave up because another rank had, then that one
/// and its reason.
std::string gave_up(std::uint32_t rank, std::string_view why);

/// Tells the log of a wait that is long: when nothing has moved for 30 seconds, or a tenth of the
/// time-out if that is less, and again each time that twice as long has passed.
class WaitLog {
 public:
  explicit WaitLog(std::chrono::milliseconds timeout) : timeout_(timeout) { begin(); }

  /// Another step begins, whose waits are told anew.
  void begin();
  /// Is it time for a line?
  bool is_due(std::chrono::steady_clock::duration standstill) const { return standstill >= next_; }
  /// The line, if it is time for one; `what` says which exchange. The caller tells it (tell_log)
  /// when it holds no lock.
  std::optional<std::string> line(const Transport& transport, Ticket ticket,
                                  std::chrono::steady_clock::duration standstill,
                                  std::string_view what);

 private:
  std::chrono::milliseconds timeout_, next_{};
};

/// The error TimedOut, which names the ranks that the exchange waits for.
Error timed_out(const Transport& transport, Ticket ticket, std::chrono::milliseconds timeout);

/// Waits for the end of one exchange; `what` names it for the log. Errors: as of test; TimedOut.
Status wait_for(Transport& transport, Ticket ticket, std::chrono::milliseconds timeout,
                const std::function<std::string()>& what = {});
/// Starts an exchange and waits for its end. If it does not end, this rank gives up, so that memory
/// is free again when this returns. Errors name `phase`, here and on other ranks.
Status exchange_now(Transport& transport, const Exchange& exchange,
                    std::chrono::milliseconds timeout, std::string_view phase);

/// Computes the maximum over all ranks, value by value. All ranks call it; it ends for none before
/// all have called.
Status take_largest(Transport& transport, std::span<double> values,
                    std::chrono::milliseconds timeout);

/// Bytes that the rank sends to others, if collectives run as rings; own parts are not sent.
std::uint64_t bytes_to_send(const Exchange& exchange, std::uint32_t rank, std::uint32_t world);

/// Checks that parts lie within their arrays, that ranks and types are valid, and that the
/// transport takes this kind of memory. Errors: InvalidArgument.
Status check_exchange(const Exchange& exchange, const Transport& transport);

const char* exchange_kind_name(ExchangeKind kind);
/// Is it one message between two ranks?
inline bool is_message(ExchangeKind kind) {
  return kind == ExchangeKind::Send || kind == ExchangeKind::Receive;
}
/// The exchange for a program's collective.
ExchangeKind exchange_kind_of(CollectiveKind kind);

}  // namespace cinch::rt
