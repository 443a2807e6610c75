// Converts exchanges to C and back.
#include "runtime/transports/lent/callback_transport.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <thread>
#include <vector>

namespace cinch::rt {
namespace {

constexpr std::size_t kTextBytes = 256;

// By ExchangeKind and by RankReduction.
constexpr std::int32_t kKindNumbers[] = {CINCH_EXCHANGE_SEND,       CINCH_EXCHANGE_RECEIVE,
                                         CINCH_EXCHANGE_ALL_REDUCE, CINCH_EXCHANGE_REDUCE_SCATTER,
                                         CINCH_EXCHANGE_ALL_GATHER, CINCH_EXCHANGE_ALL_TO_ALL,
                                         CINCH_EXCHANGE_BROADCAST};
constexpr std::int32_t kReductionNumbers[] = {
    CINCH_REDUCE_NONE, CINCH_REDUCE_SUM, CINCH_REDUCE_MEAN, CINCH_REDUCE_MIN, CINCH_REDUCE_MAX};

// Arrays that the host reads during one exchange, until it has ended.
struct Parts {
  bool is_used = false;
  std::uint64_t ticket = 0;  // the host's
  std::vector<std::uint64_t> sent_offsets, sent_sizes, received_offsets, received_sizes;
};

void split(std::span<const ByteRange> ranges, std::vector<std::uint64_t>& offsets,
           std::vector<std::uint64_t>& sizes) {
  offsets.clear();
  sizes.clear();
  for (const ByteRange& range : ranges) {
    offsets.push_back(range.offset);
    sizes.push_back(range.size);
  }
}

const std::uint64_t* data_or_null(const std::vector<std::uint64_t>& numbers) {
  return numbers.empty() ? nullptr : numbers.data();
}

class CallbackTransport : public Transport {
 public:
  explicit CallbackTransport(const cinch_transport_calls& calls) : calls_(calls) {}

  std::string_view name() const override { return "callback"; }
  std::uint32_t rank() const override { return calls_.rank; }
  std::uint32_t world() const override { return calls_.world; }
  bool sums_in_rank_order() const override { return calls_.sums_in_rank_order != 0; }
  std::uint64_t sent_bytes() const override { return sent_bytes_; }
  std::uint64_t num_moves() const override { return num_moves_; }
  std::vector<std::uint32_t> awaited_ranks(Ticket ticket) const override {
    const bool is_known =
        calls_.awaited != nullptr && ticket.index < parts_.size() && parts_[ticket.index].is_used;
    if (!is_known) return {};
    std::vector<std::uint32_t> ranks(world());
    const std::size_t num =
        calls_.awaited(calls_.context, parts_[ticket.index].ticket, ranks.data(), ranks.size());
    ranks.resize(std::min(num, ranks.size()));
    // No such rank is nobody's to look at.
    std::erase_if(ranks, [this](std::uint32_t rank) { return rank >= world(); });
    return ranks;
  }

  Result<Ticket> start(const Exchange& exchange) override {
    CINCH_TRY(check_exchange(exchange, *this));
    std::uint32_t index = 0;
    while (index < parts_.size() && parts_[index].is_used) ++index;
    if (index == parts_.size()) parts_.emplace_back();
    Parts& parts = parts_[index];
    const cinch_exchange given = to_c(exchange, parts);
    const std::int32_t error = calls_.start(calls_.context, &given, &parts.ticket);
    if (error != 0) return failure(error);
    parts.is_used = true;
    sent_bytes_ += bytes_to_send(exchange, rank(), world());
    return Ticket{index};
  }

  Result<bool> test(Ticket ticket) override {
    if (ticket.index >= parts_.size() || !parts_[ticket.index].is_used) {
      return fail(ErrorKind::InvalidArgument, "a ticket that belongs to no exchange");
    }
    Parts& parts = parts_[ticket.index];
    std::int32_t is_over = 0;
    const std::int32_t error = calls_.test(calls_.context, parts.ticket, &is_over);
    if (error != 0 || is_over != 0) parts.is_used = false;
    if (error != 0) return failure(error);
    if (is_over != 0) ++num_moves_;
    return is_over != 0;
  }

  void pause(std::chrono::microseconds most) override {
    constexpr std::chrono::microseconds kLook{50};
    if (calls_.wait != nullptr) {
      calls_.wait(calls_.context, static_cast<std::uint64_t>(most.count()));
    } else {
      std::this_thread::sleep_for(std::min(most, kLook));
    }
  }

  void abandon(const Error& why) override {
    if (calls_.abandon != nullptr) calls_.abandon(calls_.context, why.message.c_str());
  }

 private:
  static cinch_exchange to_c(const Exchange& exchange, Parts& parts) {
    // Hosts get lists with an entry for each rank, or none.
    const bool is_all_to_all = exchange.kind == ExchangeKind::AllToAll;
    const bool goes_in_parts = is_all_to_all || exchange.kind == ExchangeKind::ReduceScatter;
    const bool comes_in_parts = is_all_to_all || exchange.kind == ExchangeKind::AllGather;
    const std::span<const ByteRange> none;
    split(goes_in_parts ? exchange.sent : none, parts.sent_offsets, parts.sent_sizes);
    split(comes_in_parts ? exchange.received : none, parts.received_offsets, parts.received_sizes);
    cinch_exchange given = {};
    given.struct_size = sizeof given;
    given.kind = kKindNumbers[static_cast<std::size_t>(exchange.kind)];
    given.peer = exchange.peer;
    given.reduction = kReductionNumbers[static_cast<std::size_t>(exchange.reduction)];
    given.element = exchange.dtype == kBF16         ? CINCH_ELEMENT_BFLOAT
                    : is_float(exchange.dtype)      ? CINCH_ELEMENT_FLOAT
                    : is_signed_int(exchange.dtype) ? CINCH_ELEMENT_INT
                                                    : CINCH_ELEMENT_UINT;
    // Bits of an element as stored.
    std::int32_t bits = 8;
    while (bits < exchange.dtype.bits) bits *= 2;
    given.element_bits = bits;
    given.input = exchange.input.data();
    given.input_bytes = exchange.input.size();
    given.output = exchange.output.data();
    given.output_bytes = exchange.output.size();
    given.sent_offsets = data_or_null(parts.sent_offsets);
    given.sent_sizes = data_or_null(parts.sent_sizes);
    given.received_offsets = data_or_null(parts.received_offsets);
    given.received_sizes = data_or_null(parts.received_sizes);
    return given;
  }

  tl::unexpected<Error> failure(std::int32_t error) const {
    std::array<char, kTextBytes> text{};
    if (calls_.error_text != nullptr) {
      calls_.error_text(calls_.context, error, text.data(), text.size());
      text.back() = '\0';
    }
    const std::string message = text[0] == '\0' ? fmt::format("error {}", error) : text.data();
    return fail(ErrorKind::Device, "the host's collectives: " + message, error);
  }

  cinch_transport_calls calls_;
  std::deque<Parts> parts_;  // by ticket
  std::uint64_t sent_bytes_ = 0, num_moves_ = 0;
};

}  // namespace

Result<std::unique_ptr<Transport>> make_callback_transport(const cinch_transport_calls& calls) {
  if (calls.struct_size != sizeof calls) {
    return fail(ErrorKind::InvalidArgument, fmt::format("a table of calls of {} bytes, not {}",
                                                        calls.struct_size, sizeof calls));
  }
  if (calls.start == nullptr || calls.test == nullptr) {
    return fail(ErrorKind::InvalidArgument, "a table of calls without start or test");
  }
  CINCH_TRY(check_world(calls.world));
  if (calls.rank >= calls.world) {
    return fail(ErrorKind::InvalidArgument, fmt::format("rank {} of {}", calls.rank, calls.world));
  }
  return std::make_unique<CallbackTransport>(calls);
}

}  // namespace cinch::rt
