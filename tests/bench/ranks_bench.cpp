// bench_ranks mpi|ucx REPEATS: one rank; its launcher (mpirun, or ranks.py) sets the rank in the
// environment. Rank 0 prints the seconds of a gather of 8 bytes from each rank, and of an
// all-to-all of 64 MiB per rank, each the median of REPEATS: `gather SECONDS` and `all_to_all
// SECONDS`.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/transports/mpi/mpi_transport.h"
#include "runtime/transports/ucx/ucx_transport.h"

namespace {

using namespace cinch::rt;
using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kTimeout{60000};

std::string text_of(const char* variable) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? "" : value;
}

Result<std::unique_ptr<Transport>> open_transport(std::string_view name) {
  if (name == "mpi") return open_mpi_transport({});
  UcxOptions options;
  options.rank = static_cast<std::uint32_t>(std::stoul(text_of("RANK")));
  options.world = static_cast<std::uint32_t>(std::stoul(text_of("WORLD_SIZE")));
  options.rendezvous = text_of("CINCH_RENDEZVOUS");
  options.secret = text_of("CINCH_SECRET");
  options.interface = text_of("CINCH_INTERFACE");
  return open_ucx_transport(options);
}

double median_seconds(Transport& transport, const Exchange& exchange, int repeats) {
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const Clock::time_point begin = Clock::now();
    const Status status = exchange_now(transport, exchange, kTimeout, "measuring");
    if (!status) {
      std::fprintf(stderr, "bench_ranks: %s\n", status.error().message.c_str());
      std::exit(1);
    }
    seconds.push_back(std::chrono::duration<double>(Clock::now() - begin).count());
  }
  std::ranges::sort(seconds);
  return seconds[seconds.size() / 2];
}

std::vector<ByteRange> equal_parts(std::uint32_t world, std::uint64_t each) {
  std::vector<ByteRange> parts;
  for (std::uint64_t rank = 0; rank < world; ++rank) parts.push_back({rank * each, each});
  return parts;
}

void measure(Transport& transport, int repeats) {
  constexpr std::uint64_t kSmall = 8, kLarge = std::uint64_t{64} << 20;
  constexpr int kManySmall = 50;
  const std::uint32_t world = transport.world();
  std::vector<std::uint8_t> input(kLarge, 1), output(kLarge);
  Exchange gather{ExchangeKind::AllGather};
  const auto small = equal_parts(world, kSmall);
  gather.input = std::span(input).first(kSmall);
  gather.output = std::span(output).first(kSmall * world);
  gather.received = small;
  median_seconds(transport, gather, kManySmall);
  const double of_gather = median_seconds(transport, gather, kManySmall * repeats);
  Exchange all_to_all{ExchangeKind::AllToAll};
  const auto large = equal_parts(world, kLarge / world);
  all_to_all.input = input;
  all_to_all.output = output;
  all_to_all.sent = all_to_all.received = large;
  median_seconds(transport, all_to_all, 1);
  const double of_all = median_seconds(transport, all_to_all, repeats);
  if (transport.rank() == 0) fmt::print("gather {}\nall_to_all {}\n", of_gather, of_all);
}

}  // namespace

int main(int num_arguments, char** arguments) {
  if (num_arguments != 3) return 2;
  auto transport = open_transport(arguments[1]);
  if (!transport) {
    std::fprintf(stderr, "bench_ranks: %s\n", transport.error().message.c_str());
    return 1;
  }
  measure(**transport, std::atoi(arguments[2]));
  transport->reset();
  return std::string_view(arguments[1]) == "mpi" && !leave_mpi(kTimeout) ? 1 : 0;
}
