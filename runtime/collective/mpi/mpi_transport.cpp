// One rank of MPI's world. Most exchanges are messages, which name the rank that is waited for and
// have no limit of size; MPI's own collectives are all-reduce, as far as it knows the type, and
// broadcast.
#include "runtime/collective/mpi_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <thread>
#include <utility>

#include "runtime/collective/join_ranks.h"
#include "runtime/collective/mpi/mpi_library.h"
#include "runtime/collective/mpi/mpi_memory.h"

namespace cinch::rt {
namespace {

using Clock = std::chrono::steady_clock;
using MpiBytes = std::span<const std::uint8_t>;
using MpiRoom = std::span<std::uint8_t>;

constexpr std::uint32_t kNoticeToken = UINT32_MAX;
constexpr std::uint64_t token_of(std::uint32_t pending, std::uint64_t leg) {
  return std::uint64_t{pending} << 32 | leg;
}

Error mpi_error(const cinch_mpi_calls& calls, std::int32_t code) {
  std::array<char, 512> text{};
  calls.error_text(code, text.data(), text.size());
  const ErrorKind kind = code == CINCH_MPI_LATE ? ErrorKind::Cancelled : ErrorKind::Device;
  return {kind, fmt::format("MPI: {}", text.data()), code};
}

// MPI's type for elements that it joins as we do: NaNs and zeros of either sign have an order of
// ours, floats of 16 bits are joined in f32, a mean is divided.
std::optional<std::int32_t> mpi_type(DType dtype, RankReduction reduction) {
  if (reduction == RankReduction::Sum && dtype == kF32) return CINCH_MPI_F32;
  if (reduction == RankReduction::Sum && dtype == kF64) return CINCH_MPI_F64;
  if (!is_int(dtype) || reduction == RankReduction::Mean) return std::nullopt;
  const bool is_signed = is_signed_int(dtype);
  switch (dtype.bits) {
    case 8:
      return is_signed ? CINCH_MPI_I8 : CINCH_MPI_U8;
    case 16:
      return is_signed ? CINCH_MPI_I16 : CINCH_MPI_U16;
    case 32:
      return is_signed ? CINCH_MPI_I32 : CINCH_MPI_U32;
    case 64:
      return is_signed ? CINCH_MPI_I64 : CINCH_MPI_U64;
    default:
      return std::nullopt;
  }
}

std::int32_t mpi_operation(RankReduction reduction) {
  if (reduction == RankReduction::Min) return CINCH_MPI_MIN;
  return reduction == RankReduction::Max ? CINCH_MPI_MAX : CINCH_MPI_SUM;
}

template <typename Span>
Span part_of(Span all, const ByteRange& range) {
  return all.subspan(range.offset, range.size);
}

void copy_bytes(MpiRoom to, MpiBytes from) {
  if (!from.empty() && from.data() != to.data()) std::memmove(to.data(), from.data(), from.size());
}

// Memory that operations may still use, to the end of the process.
void keep_forever(std::unique_ptr<MpiMemory> memory) {
  static auto* const kKept = new std::vector<std::unique_ptr<MpiMemory>>;
  kKept->push_back(std::move(memory));
}

class MpiTransport : public Transport {
 public:
  MpiTransport(const cinch_mpi_calls& calls, cinch_mpi_world* mpi, std::uint32_t rank,
               std::uint32_t world, const MpiOptions& options)
      : calls_(calls), mpi_(mpi), rank_(rank), world_(world), options_(options) {
    // Whole elements of every type.
    options_.most_bytes = std::max<std::uint64_t>(8, options_.most_bytes / 8 * 8);
    has_left_.resize(world);
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

  /// What must be done before the first exchange.
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
  /// The ranks after this one, in a circle: so that no link has all messages at once.
  template <typename Visit>
  void visit_others(const Visit& visit) const {
    for (std::uint32_t i = 1; i < world_; ++i) visit((rank_ + i) % world_);
  }
  template <typename Call>
  Status each_chunk(MpiPending& pending, const MpiLeg& like, MpiRoom bytes, const Call& call);
  Status send(MpiPending& pending, std::uint32_t to, MpiRoom bytes);
  Status receive(MpiPending& pending, std::uint32_t from, MpiRoom bytes);

  Status begin(MpiPending& pending);
  Status begin_message(MpiPending& pending);
  Status begin_broadcast(MpiPending& pending);
  Status begin_all_reduce(MpiPending& pending, std::int32_t type);
  Status begin_gather(MpiPending& pending, MpiBytes own, std::span<const ByteRange> received);
  Status begin_parts(MpiPending& pending, std::span<const ByteRange> sent,
                     std::span<const ByteRange> received);
  Status begin_join(MpiPending& pending, std::span<const ByteRange> parts);
  Status join(MpiPending& pending, std::span<const ByteRange> parts, MpiRoom to);
  void cut_into_slices(MpiPending& pending) const;
  bool is_native(const Exchange& exchange) const;

  Status progress();
  Status end_leg(const cinch_mpi_end& end);
  Status hear(std::uint32_t from);
  /// What must be done when all legs have ended. True where nothing is left to do.
  Result<bool> advance(MpiPending& pending);
  void give_output(MpiPending& pending) const;
  Status check_left(const MpiPending& pending) const;
  void tell_all(MpiNotice::Kind kind, std::string_view why, std::chrono::milliseconds patience);
  bool is_under_way() const;
  Status library_status(std::int32_t code) const {
    return code == 0 ? Status(Ok{}) : tl::unexpected<Error>(mpi_error(calls_, code));
  }
  /// The first error is the last one.
  tl::unexpected<Error> failed(const Error& error) {
    if (!fault_) fault_ = error;
    return tl::unexpected<Error>(*fault_);
  }

  const cinch_mpi_calls& calls_;
  cinch_mpi_world* mpi_;
  std::uint32_t rank_, world_;
  MpiOptions options_;
  std::unique_ptr<MpiMemory> memory_ = std::make_unique<MpiMemory>();
  std::uint64_t num_sent_bytes_ = 0, num_collectives_ = 0;
  std::vector<std::uint64_t> num_sent_, num_received_;  // messages, by rank
  std::size_t num_untaken_ = 0;                         // notices that were sent
  std::uint32_t num_idle_ = 0;
  std::vector<bool> has_left_;  // by rank
  bool is_known_ = false;       // all ranks have been told that one gives up
  std::optional<Error> fault_;
};

Status MpiTransport::listen() {
  for (std::uint32_t from = 0; from < world_; ++from) {
    if (from == rank_) continue;
    const std::int32_t code =
        calls_.receive(mpi_, CINCH_MPI_NOTICES, &memory_->heard[from], sizeof(MpiNotice),
                       static_cast<std::int32_t>(from), 0, token_of(kNoticeToken, from));
    if (code != 0) return library_status(code);
  }
  return Ok{};
}

MpiPending& MpiTransport::take_free() {
  auto& all = memory_->pending;
  auto found = std::ranges::find_if(all, [](const MpiPending& each) { return !each.is_used; });
  if (found == all.end()) found = all.emplace(all.end());
  found->index = static_cast<std::uint32_t>(found - all.begin());
  found->is_used = true;
  found->is_over = found->gathers_next = false;
  found->legs.clear();
  found->num_left = 0;
  return *found;
}

// Messages are counted by way, collectives on their own: ranks start both in the same order. Equal
// tags of different rounds do no harm, since messages of one tag do not overtake each other; every
// MPI has this many.
void MpiTransport::number(MpiPending& pending) {
  constexpr std::uint64_t kRounds = 8192;
  const Exchange& exchange = pending.exchange;
  const bool is_message =
      exchange.kind == ExchangeKind::Send || exchange.kind == ExchangeKind::Receive;
  std::uint64_t& count = !is_message                           ? num_collectives_
                         : exchange.kind == ExchangeKind::Send ? num_sent_[exchange.peer]
                                                               : num_received_[exchange.peer];
  pending.number = count++;
  pending.tag = static_cast<std::int32_t>(4 * (pending.number % kRounds) + (is_message ? 0 : 1));
}

template <typename Call>
Status MpiTransport::each_chunk(MpiPending& pending, const MpiLeg& like, MpiRoom bytes,
                                const Call& call) {
  do {  // an empty message is one, too
    const MpiRoom chunk = bytes.first(std::min<std::size_t>(bytes.size(), options_.most_bytes));
    bytes = bytes.subspan(chunk.size());
    const std::uint64_t token = token_of(pending.index, pending.legs.size());
    const std::int32_t code = call(chunk.data(), static_cast<std::int32_t>(chunk.size()), token);
    if (code != 0) return library_status(code);
    pending.legs.push_back({like.kind, like.peer, chunk.size(), false});
    ++pending.num_left;
  } while (!bytes.empty());
  return Ok{};
}

Status MpiTransport::send(MpiPending& pending, std::uint32_t to, MpiRoom bytes) {
  num_sent_bytes_ += bytes.size();
  return each_chunk(pending, {MpiLeg::Kind::Send, to}, bytes,
                    [&](const void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.send(mpi_, CINCH_MPI_DATA, at, size,
                                         static_cast<std::int32_t>(to), pending.tag, token);
                    });
}

Status MpiTransport::receive(MpiPending& pending, std::uint32_t from, MpiRoom bytes) {
  return each_chunk(pending, {MpiLeg::Kind::Receive, from}, bytes,
                    [&](void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.receive(mpi_, CINCH_MPI_DATA, at, size,
                                            static_cast<std::int32_t>(from), pending.tag, token);
                    });
}

Status MpiTransport::begin_message(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (exchange.kind == ExchangeKind::Send) {
    const MpiRoom sent = pending.room(exchange.input.size());
    copy_bytes(sent, exchange.input);
    return send(pending, exchange.peer, sent);
  }
  return receive(pending, exchange.peer, pending.room(exchange.output.size()));
}

Status MpiTransport::begin_broadcast(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  if (world_ == 1) return Ok{};
  const bool is_root = exchange.peer == rank_;
  const MpiRoom room = pending.room(exchange.output.size());
  if (is_root) copy_bytes(room, exchange.output);
  if (is_root) num_sent_bytes_ += (world_ - 1) * exchange.output.size();
  return each_chunk(pending, {MpiLeg::Kind::Collective}, room,
                    [&](void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.broadcast(mpi_, at, size,
                                              static_cast<std::int32_t>(exchange.peer), token);
                    });
}

Status MpiTransport::begin_all_reduce(MpiPending& pending, std::int32_t type) {
  const Exchange& exchange = pending.exchange;
  const std::int32_t width = element_bytes(exchange.dtype);
  const std::int32_t operation = mpi_operation(exchange.reduction);
  const MpiRoom room = pending.room(exchange.input.size());
  copy_bytes(room, exchange.input);
  num_sent_bytes_ += 2 * (exchange.input.size() / world_) * (world_ - 1);
  return each_chunk(pending, {MpiLeg::Kind::Collective}, room,
                    [&](void* at, std::int32_t size, std::uint64_t token) {
                      return calls_.all_reduce(mpi_, at, size / width, type, operation, token);
                    });
}

// The own part, which goes to all, lies before what comes.
Status MpiTransport::begin_gather(MpiPending& pending, MpiBytes own,
                                  std::span<const ByteRange> received) {
  pending.received.resize(world_);
  std::uint64_t end = own.size();
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    pending.received[rank] = {end, rank == rank_ ? 0 : received[rank].size};
    end += pending.received[rank].size;
  }
  const MpiRoom all = pending.room(end), sent = all.first(own.size());
  copy_bytes(sent, own);
  Status status = Ok{};
  visit_others([&](std::uint32_t other) {
    if (status) status = receive(pending, other, part_of(all, pending.received[other]));
  });
  visit_others([&](std::uint32_t other) {
    if (status) status = send(pending, other, sent);
  });
  return status;
}

// Parts of the input to each rank, which lie before what comes.
Status MpiTransport::begin_parts(MpiPending& pending, std::span<const ByteRange> sent,
                                 std::span<const ByteRange> received) {
  const MpiBytes input = pending.exchange.input;
  pending.received.resize(world_);
  std::uint64_t end = 0;
  visit_others([&](std::uint32_t other) { end += sent[other].size; });
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    pending.received[rank] = {end, rank == rank_ ? 0 : received[rank].size};
    end += pending.received[rank].size;
  }
  const MpiRoom all = pending.room(end);
  Status status = Ok{};
  visit_others([&](std::uint32_t other) {
    if (status) status = receive(pending, other, part_of(all, pending.received[other]));
  });
  std::uint64_t begin = 0;
  visit_others([&](std::uint32_t other) {
    const MpiRoom room = part_of(all, ByteRange{begin, sent[other].size});
    begin += room.size();
    copy_bytes(room, part_of(input, sent[other]));
    if (status) status = send(pending, other, room);
  });
  return status;
}

// Every rank gets its part from all and joins them.
Status MpiTransport::begin_join(MpiPending& pending, std::span<const ByteRange> parts) {
  pending.expected.assign(world_, parts[rank_]);
  return begin_parts(pending, parts, pending.expected);
}

Status MpiTransport::join(MpiPending& pending, std::span<const ByteRange> parts, MpiRoom to) {
  const Exchange& exchange = pending.exchange;
  pending.inputs.clear();
  for (std::uint32_t rank = 0; rank < world_; ++rank) {
    pending.inputs.push_back(rank == rank_
                                 ? part_of(exchange.input, parts[rank])
                                 : part_of(MpiBytes(pending.bytes), pending.received[rank]));
  }
  return join_arrays(exchange.dtype, exchange.reduction, pending.inputs, to);
}

void MpiTransport::cut_into_slices(MpiPending& pending) const {
  const auto width = static_cast<std::uint64_t>(element_bytes(pending.exchange.dtype));
  const std::uint64_t elements = pending.exchange.input.size() / width;
  pending.slices.resize(world_);
  for (std::uint64_t rank = 0; rank < world_; ++rank) {
    const std::uint64_t begin = elements * rank / world_, end = elements * (rank + 1) / world_;
    pending.slices[rank] = {begin * width, (end - begin) * width};
  }
}

bool MpiTransport::is_native(const Exchange& exchange) const {
  if (exchange.kind == ExchangeKind::Broadcast) return true;
  return exchange.kind == ExchangeKind::AllReduce && mpi_type(exchange.dtype, exchange.reduction) &&
         !(options_.is_exact && is_float(exchange.dtype));
}

Status MpiTransport::begin(MpiPending& pending) {
  const Exchange& exchange = pending.exchange;
  switch (exchange.kind) {
    case ExchangeKind::Send:
    case ExchangeKind::Receive:
      return begin_message(pending);
    case ExchangeKind::Broadcast:
      return begin_broadcast(pending);
    case ExchangeKind::AllGather:
      copy_bytes(part_of(exchange.output, exchange.received[rank_]), exchange.input);
      return begin_gather(pending, exchange.input, exchange.received);
    case ExchangeKind::AllToAll:
      copy_bytes(part_of(exchange.output, exchange.received[rank_]),
                 part_of(exchange.input, exchange.sent[rank_]));
      return begin_parts(pending, exchange.sent, exchange.received);
    case ExchangeKind::ReduceScatter:
      return begin_join(pending, exchange.sent);
    case ExchangeKind::AllReduce:
      break;
  }
  if (is_native(exchange)) {
    return begin_all_reduce(pending, *mpi_type(exchange.dtype, exchange.reduction));
  }
  cut_into_slices(pending);
  pending.gathers_next = true;
  return begin_join(pending, pending.slices);
}

Result<Ticket> MpiTransport::start(const Exchange& exchange) {
  if (Status status = check_exchange(exchange, rank_, world_); !status) {
    return tl::unexpected<Error>(status.error());
  }
  if (fault_) return tl::unexpected<Error>(*fault_);
  MpiPending& pending = take_free();
  pending.exchange = exchange;
  number(pending);
  num_idle_ = 0;
  if (Status status = begin(pending); !status) return failed(status.error());
  return Ticket{pending.index};
}

Status MpiTransport::hear(std::uint32_t from) {
  MpiNotice& notice = memory_->heard[from];
  notice.text.back() = '\0';
  has_left_[from] = notice.kind == MpiNotice::Kind::Left;
  if (has_left_[from]) return Ok{};
  is_known_ = true;
  return fail(ErrorKind::Cancelled, fmt::format("rank {} gave up: {}", from, notice.text.data()));
}

Status MpiTransport::end_leg(const cinch_mpi_end& end) {
  const auto index = static_cast<std::uint32_t>(end.token >> 32);
  const auto which = static_cast<std::uint32_t>(end.token);
  if (index == kNoticeToken && which >= world_) {  // one that was sent
    --num_untaken_;
    return Ok{};
  }
  if (index == kNoticeToken) return end.error == 0 ? hear(which) : library_status(end.error);
  MpiPending& pending = memory_->pending[index];
  MpiLeg& leg = pending.legs[which];
  leg.is_over = true;
  --pending.num_left;
  const bool is_too_long = end.error == CINCH_MPI_TOO_LONG;
  if (end.error != 0 && !is_too_long) return library_status(end.error);
  if (leg.kind != MpiLeg::Kind::Receive || (!is_too_long && end.bytes == leg.size)) return Ok{};
  return fail(ErrorKind::Internal,
              fmt::format("rank {} sends {} bytes where rank {} expects {}", leg.peer,
                          is_too_long ? "more" : fmt::to_string(end.bytes), rank_, leg.size));
}

Status MpiTransport::progress() {
  const cinch_mpi_end* ends = nullptr;
  std::size_t num_ends = 0;
  if (const std::int32_t code = calls_.progress(mpi_, &ends, &num_ends); code != 0) {
    return library_status(code);
  }
  // All of them, so that none is forgotten; the first error counts.
  Status first = Ok{};
  for (const cinch_mpi_end& end : std::span(ends, num_ends)) {
    const Status status = end_leg(end);
    if (first && !status) first = status;
  }
  if (num_ends > 0) num_idle_ = 0;
  return first;
}

void MpiTransport::give_output(MpiPending& pending) const {
  const Exchange& exchange = pending.exchange;
  const MpiBytes bytes = pending.bytes;
  switch (exchange.kind) {
    case ExchangeKind::Send:
    case ExchangeKind::ReduceScatter:
      return;
    case ExchangeKind::Receive:
      return copy_bytes(exchange.output, bytes.first(exchange.output.size()));
    case ExchangeKind::Broadcast:
      if (exchange.peer == rank_) return;
      return copy_bytes(exchange.output, bytes.first(exchange.output.size()));
    case ExchangeKind::AllReduce:
      if (is_native(exchange)) {
        return copy_bytes(exchange.output, bytes.first(exchange.output.size()));
      }
      break;
    case ExchangeKind::AllGather:
    case ExchangeKind::AllToAll:
      break;
  }
  const std::span<const ByteRange> places = exchange.kind == ExchangeKind::AllReduce
                                                ? std::span<const ByteRange>(pending.slices)
                                                : exchange.received;
  visit_others([&](std::uint32_t other) {
    copy_bytes(part_of(exchange.output, places[other]), part_of(bytes, pending.received[other]));
  });
}

Result<bool> MpiTransport::advance(MpiPending& pending) {
  if (pending.num_left > 0) return false;
  const Exchange& exchange = pending.exchange;
  if (exchange.kind == ExchangeKind::ReduceScatter) {
    const Status status = join(pending, exchange.sent, exchange.output);
    if (!status) return tl::unexpected<Error>(status.error());
  }
  if (!pending.gathers_next) {
    give_output(pending);
    return true;
  }
  pending.gathers_next = false;
  const MpiRoom own = part_of(exchange.output, pending.slices[rank_]);
  Status status = join(pending, pending.slices, own);
  ++pending.tag;
  pending.legs.clear();
  if (status) status = begin_gather(pending, own, pending.slices);
  if (!status) return tl::unexpected<Error>(status.error());
  return pending.num_left == 0 ? advance(pending) : Result<bool>(false);
}

// A rank that has left had ended what it had begun: what it had not is waited for in vain.
Status MpiTransport::check_left(const MpiPending& pending) const {
  for (std::uint32_t other = 0; other < world_; ++other) {
    const MpiNotice& notice = memory_->heard[other];
    if (!has_left_[other]) continue;
    const Exchange& exchange = pending.exchange;
    const bool is_send = exchange.kind == ExchangeKind::Send;
    const bool is_message = is_send || exchange.kind == ExchangeKind::Receive;
    if (is_message && exchange.peer != other) continue;
    const std::uint64_t begun = !is_message ? notice.num_collectives
                                : is_send   ? notice.num_received
                                            : notice.num_sent;
    if (pending.number >= begun) {
      return fail(ErrorKind::Cancelled, fmt::format("rank {} has left", other));
    }
  }
  return Ok{};
}

Result<bool> MpiTransport::test(Ticket ticket) {
  if (!is_used(ticket)) return fail(ErrorKind::InvalidArgument, "a ticket of no exchange");
  if (fault_) return tl::unexpected<Error>(*fault_);
  if (Status status = progress(); !status) return failed(status.error());
  for (MpiPending& each : memory_->pending) {
    if (!each.is_used || each.is_over) continue;
    const Result<bool> is_over = advance(each);
    if (!is_over) return failed(is_over.error());
    each.is_over = *is_over;
  }
  MpiPending& asked = memory_->pending[ticket.index];
  if (!asked.is_over) {
    if (Status status = check_left(asked); !status) return failed(status.error());
    return false;
  }
  asked.is_used = false;
  return true;
}

std::vector<std::uint32_t> MpiTransport::awaited_ranks(Ticket ticket) const {
  std::vector<std::uint32_t> ranks;
  if (!is_used(ticket)) return ranks;
  for (const MpiLeg& leg : memory_->pending[ticket.index].legs) {
    if (!leg.is_over && leg.kind != MpiLeg::Kind::Collective) ranks.push_back(leg.peer);
  }
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

// Ranks may share cores: who has nothing to do lets the others run, and soon sleeps.
void MpiTransport::pause(std::chrono::microseconds most) {
  constexpr std::uint32_t kYields = 20;
  constexpr std::chrono::microseconds kNap{50};
  if (++num_idle_ <= kYields) return std::this_thread::yield();
  std::this_thread::sleep_for(std::min(most, kNap));
}

void MpiTransport::tell_all(MpiNotice::Kind kind, std::string_view why,
                            std::chrono::milliseconds patience) {
  constexpr std::chrono::microseconds kNap{20};
  visit_others([&](std::uint32_t other) {
    MpiNotice& notice = memory_->told[other];
    notice = {kind, num_collectives_, num_sent_[other], num_received_[other]};
    notice.set_text(why);
    const std::int32_t code =
        calls_.send(mpi_, CINCH_MPI_NOTICES, &notice, sizeof notice,
                    static_cast<std::int32_t>(other), 0, token_of(kNoticeToken, world_ + other));
    if (code == 0) ++num_untaken_;
  });
  const Clock::time_point end = Clock::now() + patience;
  while (num_untaken_ > 0 && Clock::now() < end) {
    // What others say does not matter any more.
    if (Status status = progress(); !status) failed(status.error());
    std::this_thread::sleep_for(kNap);
  }
}

void MpiTransport::abandon(const Error& why) {
  constexpr std::chrono::milliseconds kPatience{2000};
  if (!fault_) fault_ = Error{why.kind, fmt::format("rank {} gave up: {}", rank_, why.message)};
  if (!std::exchange(is_known_, true)) tell_all(MpiNotice::Kind::GaveUp, why.message, kPatience);
}

bool MpiTransport::is_under_way() const {
  return std::ranges::any_of(memory_->pending,
                             [](const MpiPending& each) { return each.num_left > 0; });
}

MpiTransport::~MpiTransport() {
  constexpr std::chrono::milliseconds kPatience{20};
  if (!fault_ && is_under_way()) abandon({ErrorKind::Cancelled, "it has left"});
  if (!fault_) tell_all(MpiNotice::Kind::Left, {}, kPatience);
  calls_.close(mpi_, fault_ ? 1 : 0);
  if (!is_under_way()) memory_->pending.clear();
  // Notices may come after this.
  keep_forever(std::move(memory_));
}

}  // namespace

Result<std::unique_ptr<Transport>> open_mpi_transport(const MpiOptions& options) {
  const auto& calls = mpi_library();
  if (!calls) return tl::unexpected<Error>(calls.error());
  cinch_mpi_world* mpi = nullptr;
  std::int32_t rank = 0, world = 0;
  const auto timeout = static_cast<std::int32_t>(options.timeout.count());
  const std::int32_t code = (*calls)->open(timeout, &mpi, &rank, &world);
  if (code != 0) return tl::unexpected<Error>(mpi_error(**calls, code));
  auto transport = std::make_unique<MpiTransport>(**calls, mpi, static_cast<std::uint32_t>(rank),
                                                  static_cast<std::uint32_t>(world), options);
  if (Status status = transport->listen(); !status) return tl::unexpected<Error>(status.error());
  return transport;
}

}  // namespace cinch::rt
