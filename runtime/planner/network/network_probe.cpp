// Ranks meet before each measured exchange and use the longest of their
// times. How often and how far they go on follows from these times alone, so it is the same on all
// ranks.
#include "runtime/planner/network/network_model.h"

#include <algorithm>
#include <utility>

namespace cinch::rt {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSmallestBytes = 256;
constexpr std::uint64_t kGrowth = 4;
constexpr std::size_t kMostRepeats = 50;
// A barrier before each exchange takes about as long as a small one.
constexpr double kMeetings = 2;
constexpr double kLeastSeconds = 1e-9;
constexpr std::uint64_t kElement = 4;
// Small exchanges at once.
constexpr std::size_t kFew = 2, kMany = 18;

class Probe {
 public:
  Probe(Transport& transport, const ProbeOptions& options)
      : transport_(transport), options_(options), world_(transport.world()) {
    for (std::uint64_t size = kSmallestBytes; size < options.largest_bytes; size *= kGrowth) {
      sizes_.push_back(size);
    }
    sizes_.push_back(options.largest_bytes);
    sizes_.insert(sizes_.begin(), 0);
    // Bursts use the smallest size, even if the options ask for less.
    const std::uint64_t largest = std::max(options.largest_bytes, kSmallestBytes);
    input_.resize(room_of(largest));
    output_.resize(room_of(largest));
    burst_.resize(kMany * room_of(kSmallestBytes));
  }

  Result<NetworkModel> run() {
    NetworkModel machines{.world = world_, .ranks_per_machine = options_.ranks_per_machine};
    if (machines.has_two_networks()) {
      // Messages to the same rank of the next machine, and to the next rank of the machine.
      step_ = options_.ranks_per_machine;
      CINCH_TRY(measure_within(machines));
    }
    for (const ExchangeKind kind : kMeasuredKinds) {
      if (world_ == 1) break;
      CINCH_TRY(measure(kind));
    }
    NetworkModel model = fit_network(std::string(transport_.name()), world_, std::move(points_));
    model.ranks_per_machine = machines.ranks_per_machine;
    model.within = machines.within;
    model.within_gap = machines.within_gap;
    model.within_points = std::move(machines.within_points);
    for (std::size_t i = 0; i < kMeasuredKinds.size(); ++i) {
      if (world_ == 1) break;
      CINCH_TRY(measure_gap(kMeasuredKinds[i], model.gaps[i]));
    }
    return model;
  }

 private:
  Status measure_within(NetworkModel& to) {
    is_within_ = true;
    CINCH_TRY(measure(ExchangeKind::Send));
    CINCH_TRY(measure_gap(ExchangeKind::Send, to.within_gap));
    is_within_ = false;
    to.within_points = std::exchange(points_, {});
    to.within = fit_network("", world_, to.within_points).of(ExchangeKind::Send);
    return Ok{};
  }

  // The rank to which this one sends, and, backwards, from which it receives.
  std::uint32_t partner(bool is_sender) const {
    const std::uint32_t rank = transport_.rank(), ranks = options_.ranks_per_machine;
    if (!is_within_) return (rank + (is_sender ? step_ : world_ - step_)) % world_;
    const std::uint32_t first = rank / ranks * ranks;
    return first + (rank - first + (is_sender ? 1 : ranks - 1)) % ranks;
  }

  std::uint64_t part_of(std::uint64_t bytes) const {
    return world_ == 1 ? 0 : bytes / (world_ - 1) / kElement * kElement;
  }

  std::uint64_t room_of(std::uint64_t bytes) const { return (part_of(bytes) + kElement) * world_; }

  // An exchange in which the rank that sends most sends about this many bytes.
  Exchange exchange_of(ExchangeKind kind, std::uint64_t bytes) {
    return exchange_of(kind, bytes, output_);
  }
  Exchange exchange_of(ExchangeKind kind, std::uint64_t bytes, std::span<std::uint8_t> output) {
    const std::uint64_t part = part_of(bytes);
    parts_.clear();
    for (std::uint64_t rank = 0; rank < world_; ++rank) parts_.push_back({rank * part, part});
    const std::span<const std::uint8_t> input(input_);
    Exchange exchange{kind};
    exchange.reduction = RankReduction::Sum;
    exchange.sent = exchange.received = parts_;
    switch (kind) {
      case ExchangeKind::Send:
        exchange.input = input.first(bytes);
        exchange.peer = partner(true);
        break;
      case ExchangeKind::Receive:
        exchange.output = output.first(bytes);
        exchange.peer = partner(false);
        break;
      case ExchangeKind::AllReduce:
        exchange.input = input.first(part * world_ / 2 / kElement * kElement);
        exchange.output = output.first(exchange.input.size());
        break;
      case ExchangeKind::ReduceScatter:
        exchange.input = input.first(part * world_);
        exchange.output = output.first(part);
        break;
      case ExchangeKind::AllGather:
        exchange.input = input.first(part);
        exchange.output = output.first(part * world_);
        break;
      case ExchangeKind::AllToAll:
        exchange.input = input.first(part * world_);
        exchange.output = output.first(part * world_);
        break;
      case ExchangeKind::Broadcast:
        exchange.output = output.first(part);
        break;
    }
    return exchange;
  }

  Status run_exchange(const Exchange& exchange) {
    return exchange_now(transport_, exchange, options_.timeout, "measuring the transport");
  }

  // Every rank sends to the next and receives from the one before.
  Status pass_on(std::uint64_t bytes) {
    const auto receive = TRY(transport_.start(exchange_of(ExchangeKind::Receive, bytes)));
    Status status = run_exchange(exchange_of(ExchangeKind::Send, bytes));
    if (status) status = wait_for(transport_, receive, options_.timeout);
    if (!status) transport_.abandon(status.error());
    return status;
  }

  // Starts several at once, each with its own output, and waits for all.
  Status run_burst(ExchangeKind kind, std::size_t number) {
    std::vector<Ticket> tickets;
    const std::uint64_t room = room_of(kSmallestBytes);
    for (std::size_t i = 0; i < number; ++i) {
      const std::span<std::uint8_t> output = std::span(burst_).subspan(i * room, room);
      auto ticket = transport_.start(exchange_of(kind, kSmallestBytes, output));
      if (ticket && kind == ExchangeKind::Send) {
        tickets.push_back(*ticket);
        ticket = transport_.start(exchange_of(ExchangeKind::Receive, kSmallestBytes, output));
      }
      CINCH_TRY(ticket);
      tickets.push_back(*ticket);
    }
    for (const Ticket ticket : tickets) {
      if (Status status = wait_for(transport_, ticket, options_.timeout); !status) {
        transport_.abandon(status.error());
        return status;
      }
    }
    return Ok{};
  }

  Status measure_gap(ExchangeKind kind, double& gap) {
    constexpr std::size_t kRounds = 5;
    std::array<double, 2 * kRounds> times{};
    for (std::size_t i = 0; i < times.size(); ++i) {
      double meeting = 0;
      CINCH_TRY(take_largest({&meeting, 1}));
      const Clock::time_point begin = Clock::now();
      CINCH_TRY(run_burst(kind, i < kRounds ? kFew : kMany));
      times[i] = std::chrono::duration<double>(Clock::now() - begin).count();
    }
    CINCH_TRY(take_largest(times));
    std::sort(times.begin(), times.begin() + kRounds);
    std::sort(times.begin() + kRounds, times.end());
    const double few = times[kRounds / 2], many = times[kRounds + kRounds / 2];
    gap = std::max(0.0, (many - few) / static_cast<double>(kMany - kFew));
    return Ok{};
  }

  Status take_largest(std::span<double> values) {
    return cinch::rt::take_largest(transport_, values, options_.timeout);
  }

  // Appends the time of each repetition: that of the slowest rank.
  Status time(ExchangeKind kind, std::uint64_t bytes, std::size_t repeats) {
    const std::size_t first = times_.size();
    for (std::size_t i = 0; i < repeats; ++i) {
      double meeting = 0;
      CINCH_TRY(take_largest({&meeting, 1}));
      const Clock::time_point begin = Clock::now();
      CINCH_TRY(kind == ExchangeKind::Send ? pass_on(bytes)
                                           : run_exchange(exchange_of(kind, bytes)));
      times_.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
    }
    return take_largest(std::span(times_).subspan(first));
  }

  Status measure(ExchangeKind kind) {
    const double share = options_.seconds / static_cast<double>(kMeasuredKinds.size());
    double spent = 0;
    for (const std::uint64_t size : sizes_) {
      times_.clear();
      CINCH_TRY(time(kind, size, 1));
      const double trial = std::max(times_[0], kLeastSeconds);
      const double fitting = share / static_cast<double>(sizes_.size()) / (kMeetings * trial);
      const auto repeats = static_cast<std::size_t>(std::clamp(fitting, 1.0, double{kMostRepeats}));
      // The first repetition uses memory for the first time: it counts only if there is no time for
      // another.
      if (spent + 2 * trial < share) {
        times_.clear();
        CINCH_TRY(time(kind, size, repeats));
      }
      std::ranges::sort(times_);
      const std::uint64_t sent = bytes_to_send(
          exchange_of(kind, size), kind == ExchangeKind::Broadcast ? 0 : transport_.rank(), world_);
      points_.push_back({kind, sent, times_[times_.size() / 2]});
      spent += trial + kMeetings * trial * static_cast<double>(repeats);
      if (spent + static_cast<double>(kGrowth) * trial > share) return Ok{};
    }
    return Ok{};
  }

  Transport& transport_;
  const ProbeOptions& options_;
  const std::uint32_t world_;
  std::uint32_t step_ = 1;
  bool is_within_ = false;
  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint8_t> input_, output_, burst_;
  std::vector<ByteRange> parts_;
  std::vector<double> times_;
  std::vector<NetworkPoint> points_;
};

}  // namespace

Result<NetworkModel> measure_network(Transport& transport, const ProbeOptions& options) {
  return Probe(transport, options).run();
}

}  // namespace cinch::rt
