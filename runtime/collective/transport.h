// How one rank moves bytes to and from the others: one interface for all transports. Exchanges are
// started, run on while the rank does other work, and are waited for.
//
//   const Result<Ticket> ticket = transport.start({.kind = ExchangeKind::AllGather, …});
//   while (!*transport.test(*ticket)) …;            // or transport.wait(*ticket, timeout)
//
// Collectives are started in the same order on all ranks; so are messages between two ranks, in
// each direction. Sizes are known to both sides: who does not know one exchanges it first, or sends
// as much as there may be.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
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

/// Device: spans hold addresses of a GPU's memory, which the host does not touch.
enum class MemoryPlace : std::uint8_t { Host, Device };

struct ByteRange {
  std::uint64_t offset = 0, size = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// What is exchanged. All memory, the ranges too, stays as it is until the exchange has ended.
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
  DType dtype = kF32;                             // of what is joined
  std::span<const std::uint8_t> input;
  std::span<std::uint8_t> output;
  std::span<const ByteRange> sent, received;  // by rank, in the host's memory
  MemoryPlace place = MemoryPlace::Host;      // of input and output
  /// A GPU's stream: what has been put on it so far comes before the exchange, and may still make
  /// the input. Work that is put on any stream after the exchange has ended sees its output. Null:
  /// all is there.
  void* after = nullptr;
};

/// A device's memory, as its owner lends it to a transport.
struct LentMemory {
  std::span<std::uint8_t> bytes;
  std::shared_ptr<const GpuDevice> device;
  /// Held by whoever uses the device, where only one may at a time (an emulated one); or null.
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
  /// A rank that goes is waited for by none: the others get an error.
  virtual ~Transport() = default;

  virtual std::string_view name() const = 0;
  virtual std::uint32_t rank() const = 0;
  virtual std::uint32_t world() const = 0;
  /// Are floats joined in rank order, so that the sum has the same bits on every transport that
  /// says so?
  virtual bool sums_in_rank_order() const = 0;
  /// Does it take exchanges of the kind in a device's memory, and such that come after what is on a
  /// stream?
  virtual bool takes_device_memory(ExchangeKind /*kind*/) const { return false; }
  /// Memory of a device that exchanges of many steps are going to lie in, so that the transport may
  /// make it known to its network once. False: exchanges cannot lie there. It stays until
  /// `take_back`, when no exchange is under way in it. Whoever calls these has the device's turn.
  virtual bool lend(const LentMemory& memory);
  virtual void take_back(std::span<std::uint8_t> device_memory);

  /// Errors: InvalidArgument (parts outside their arrays, no such rank, a type that is not joined),
  /// Cancelled (another rank has given up or gone, and says why), Device (the library's error).
  virtual Result<Ticket> start(const Exchange& exchange) = 0;
  /// Has the exchange ended? Moves all that are under way on. After true or an error the ticket is
  /// nothing any more. Errors: as of start; Internal (ranks that are not at the same exchange).
  virtual Result<bool> test(Ticket ticket) = 0;
  /// Ranks whose part of the exchange has not come yet; none where the transport cannot say.
  virtual std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const = 0;
  /// Returns when something may have moved, or after `most`.
  virtual void pause(std::chrono::microseconds most) = 0;
  /// From any thread: a pause of this rank, the running one or the next, returns. False where the
  /// transport cannot.
  virtual bool wake() { return false; }
  /// This rank gives up: those that wait for it, or will, learn why, and what they have from it
  /// already they keep. Nothing that it has under way ends any more, but its memory is free again.
  virtual void abandon(const Error& why) = 0;

  /// Bytes that this rank has put on the wire so far.
  virtual std::uint64_t sent_bytes() const = 0;
  /// Grows with each part of an exchange, a message mostly, that has come or gone: time-outs begin
  /// anew.
  virtual std::uint64_t num_moves() const = 0;
};

/// For messages: ", waits for ranks 1, 2"; empty where the transport cannot say.
std::string awaited_text(const Transport& transport, Ticket ticket);

/// Nothing has moved for so long: TimedOut, and whom the exchange waits for.
Error timed_out(const Transport& transport, Ticket ticket, std::chrono::milliseconds timeout);

/// Waits for the end of one exchange. Errors: as of test; TimedOut.
Status wait_for(Transport& transport, Ticket ticket, std::chrono::milliseconds timeout);
/// Starts an exchange and waits for its end. Where that does not come this rank gives up, so that
/// memory is free again when this returns; `phase` is what errors name, here and on other ranks.
Status exchange_now(Transport& transport, const Exchange& exchange,
                    std::chrono::milliseconds timeout, std::string_view phase);

/// The largest of all ranks, value by value; all ranks call it, and it ends for none before the
/// last has.
Status take_largest(Transport& transport, std::span<double> values,
                    std::chrono::milliseconds timeout);

/// What the rank sends to others, as rings would; own parts stay.
std::uint64_t bytes_to_send(const Exchange& exchange, std::uint32_t rank, std::uint32_t world);

/// Are the parts within the arrays, ranks and types there, and is the memory of a kind that the
/// transport takes? Errors: InvalidArgument.
Status check_exchange(const Exchange& exchange, const Transport& transport);

const char* exchange_kind_name(ExchangeKind kind);
/// The one that does what a program asks for.
ExchangeKind exchange_kind_of(CollectiveKind kind);

}  // namespace cinch::rt
