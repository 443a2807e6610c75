// Requirements for every transport, with processes as ranks; sums in rank order; sizes beyond the
// library's.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "runtime/core/lang.h"
#include "tests/collective/mpi/rank.h"
#include "tests/unit/runtime/collective/transport_checks.h"

namespace cinch::rt {
namespace {

TEST(Mpi, ExchangesEverything) {
  const auto transport = open_transport();
  EXPECT_EQ(transport->name(), "mpi");
  EXPECT_FALSE(transport->sums_in_rank_order());
  check_everything(*transport);
}

TEST(Mpi, ExchangesEverythingExactly) {
  const auto transport = open_transport({.is_exact = true});
  EXPECT_TRUE(transport->sums_in_rank_order());
  check_everything(*transport);
  check_sums_in_rank_order(*transport);
}

// As it does with more than 31 bits of bytes.
TEST(Mpi, CutsWhatIsTooLongForTheLibrary) {
  const auto transport = open_transport({.most_bytes = 1001});
  check_everything(*transport);
}

std::vector<std::vector<float>> gather(Transport& transport, const std::vector<float>& own) {
  std::vector<float> all(own.size() * transport.world());
  std::vector<ByteRange> parts;
  for (std::uint64_t r = 0; r < transport.world(); ++r) {
    parts.push_back({4 * r * own.size(), 4 * own.size()});
  }
  Exchange exchange{ExchangeKind::AllGather};
  exchange.input = bytes_of(own);
  exchange.output = room_of(all);
  exchange.received = parts;
  run_exchange(transport, exchange);
  std::vector<std::vector<float>> by_rank;
  for (std::size_t r = 0; r < transport.world(); ++r) {
    by_rank.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(r * own.size()),
                         all.begin() + static_cast<std::ptrdiff_t>((r + 1) * own.size()));
  }
  return by_rank;
}

// The library may add in any order.
TEST(Mpi, RanksAgreeOnSums) {
  const auto transport = open_transport();
  for (const std::size_t elements : {1, 37, 5000, 300000}) {
    std::vector<float> values(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      values[i] = std::sin(static_cast<float>(i * (transport->rank() + 3)));
    }
    Exchange exchange{ExchangeKind::AllReduce};
    exchange.reduction = RankReduction::Sum;
    exchange.input = bytes_of(values);
    exchange.output = room_of(values);
    run_exchange(*transport, exchange);
    for (const auto& of_rank : gather(*transport, values)) ASSERT_EQ(of_rank, values) << elements;
  }
}

// Elements for which MPI has no type, or that it joins differently.
TEST(Mpi, JoinsWhatTheLibraryCannot) {
  const auto transport = open_transport();
  const auto world = static_cast<float>(transport->world());
  const auto rank = static_cast<float>(transport->rank());
  Exchange exchange{ExchangeKind::AllReduce};
  exchange.reduction = RankReduction::Sum;
  std::vector<lang::u16> halves(999, lang::to_f16(0.5f + rank));
  exchange.dtype = kF16;
  exchange.input = bytes_of(halves);
  exchange.output = room_of(halves);
  run_exchange(*transport, exchange);
  for (const lang::u16 half : halves) {
    ASSERT_EQ(lang::from_f16(half), 0.5f * world + world * (world - 1) / 2);
  }
  std::vector<float> values(1001, rank);
  exchange.dtype = kF32;
  exchange.input = bytes_of(values);
  exchange.output = room_of(values);
  exchange.reduction = RankReduction::Mean;
  run_exchange(*transport, exchange);
  for (const float value : values) ASSERT_EQ(value, (world - 1) / 2);
  // NaNs and zeros of either sign as we order them.
  const float special[] = {-0.0f, std::numeric_limits<float>::quiet_NaN(), 0.0f, -1.0f};
  values.assign(10, special[transport->rank() % 4]);
  float wanted = special[0];
  for (std::uint32_t r = 1; r < transport->world(); ++r) wanted = lang::max(wanted, special[r % 4]);
  exchange.input = bytes_of(values);
  exchange.output = room_of(values);
  exchange.reduction = RankReduction::Max;
  run_exchange(*transport, exchange);
  for (const float value : values) {
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), std::bit_cast<std::uint32_t>(wanted));
  }
}

TEST(Mpi, CountsWhatItSends) {
  for (const bool is_exact : {false, true}) {
    const auto transport = open_transport({.is_exact = is_exact});
    const std::size_t world = transport->world();
    check_all_reduce<float>(*transport, kF32, 1000 * world);
    EXPECT_EQ(transport->sent_bytes(), std::size_t{2} * 4000 * (world - 1));
  }
}

TEST(Mpi, RefusesWhatDoesNotFit) {
  const auto transport = open_transport();
  std::vector<std::uint8_t> bytes(10);
  Exchange message{ExchangeKind::Send, transport->world()};
  EXPECT_FALSE(transport->start(message));
  Exchange reduce{ExchangeKind::AllReduce};
  reduce.input = reduce.output = bytes;
  EXPECT_FALSE(transport->start(reduce));  // no reduction
  EXPECT_FALSE(transport->test(Ticket{7}));
}

}  // namespace
}  // namespace cinch::rt
