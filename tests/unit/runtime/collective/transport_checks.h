// Requirements for every transport, as calls of one rank; tests run them on threads or processes.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "runtime/collective/transport.h"

namespace cinch::rt {

inline constexpr std::chrono::milliseconds kPatience{20000};

inline std::uint8_t byte_of(std::uint32_t from, std::uint32_t to, std::size_t i) {
  return static_cast<std::uint8_t>(31 * from + 7 * to + i);
}

// The number of bytes from one rank to another.
inline std::uint64_t size_between(std::uint64_t base, std::uint32_t from, std::uint32_t to) {
  return base == 0 ? 0 : base + 3 * std::uint64_t{from} + to;
}

inline void run_exchange(Transport& transport, const Exchange& exchange) {
  const Status status = exchange_now(transport, exchange, kPatience, "test");
  ASSERT_TRUE(status) << status.error().message;
}

inline void check_all_gather(Transport& transport, std::uint64_t base) {
  const std::uint32_t rank = transport.rank(), world = transport.world();
  std::vector<ByteRange> parts(world);
  std::uint64_t end = 0;
  for (std::uint32_t r = 0; r < world; ++r) {
    parts[r] = {end, size_between(base, r, 0)};
    end += parts[r].size;
  }
  std::vector<std::uint8_t> own(parts[rank].size), all(end);
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = byte_of(rank, 0, i);
  Exchange exchange{ExchangeKind::AllGather};
  exchange.input = own;
  exchange.output = all;
  exchange.received = parts;
  run_exchange(transport, exchange);
  for (std::uint32_t r = 0; r < world; ++r) {
    for (std::size_t i = 0; i < parts[r].size; ++i) {
      ASSERT_EQ(all[parts[r].offset + i], byte_of(r, 0, i)) << "from " << r;
    }
  }
}

inline void check_all_to_all(Transport& transport, std::uint64_t base) {
  const std::uint32_t rank = transport.rank(), world = transport.world();
  std::vector<ByteRange> sent(world), received(world);
  std::uint64_t sent_end = 0, received_end = 0;
  for (std::uint32_t r = 0; r < world; ++r) {
    sent[r] = {sent_end, size_between(base, rank, r)};
    received[r] = {received_end, size_between(base, r, rank)};
    sent_end += sent[r].size;
    received_end += received[r].size;
  }
  std::vector<std::uint8_t> out(sent_end), in(received_end);
  for (std::uint32_t r = 0; r < world; ++r) {
    for (std::size_t i = 0; i < sent[r].size; ++i) out[sent[r].offset + i] = byte_of(rank, r, i);
  }
  Exchange exchange{ExchangeKind::AllToAll};
  exchange.input = out;
  exchange.output = in;
  exchange.sent = sent;
  exchange.received = received;
  run_exchange(transport, exchange);
  for (std::uint32_t r = 0; r < world; ++r) {
    for (std::size_t i = 0; i < received[r].size; ++i) {
      ASSERT_EQ(in[received[r].offset + i], byte_of(r, rank, i)) << "from " << r;
    }
  }
}

template <typename T>
std::span<const std::uint8_t> bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}
template <typename T>
std::span<std::uint8_t> room_of(std::vector<T>& values) {
  return {reinterpret_cast<std::uint8_t*>(values.data()), values.size() * sizeof(T)};
}

// Whole numbers, so that the order of additions does not matter.
template <typename T>
void check_all_reduce(Transport& transport, DType dtype, std::size_t elements) {
  const std::uint32_t rank = transport.rank(), world = transport.world();
  std::vector<T> values(elements);
  for (std::size_t i = 0; i < elements; ++i) values[i] = static_cast<T>(rank + i % 5);
  Exchange exchange{ExchangeKind::AllReduce};
  exchange.reduction = RankReduction::Sum;
  exchange.dtype = dtype;
  exchange.input = bytes_of(values);
  exchange.output = room_of(values);
  run_exchange(transport, exchange);
  const std::size_t ranks_sum = std::size_t{world} * (world - 1) / 2;
  for (std::size_t i = 0; i < elements; ++i) {
    ASSERT_EQ(values[i], static_cast<T>(ranks_sum + world * (i % 5))) << i;
  }
}

inline void check_reduce_scatter(Transport& transport, std::size_t base) {
  const std::uint32_t rank = transport.rank(), world = transport.world();
  std::vector<ByteRange> parts(world);
  std::uint64_t end = 0;
  for (std::uint32_t r = 0; r < world; ++r) {
    parts[r] = {end, 4 * (base + r)};
    end += parts[r].size;
  }
  std::vector<std::int32_t> values(end / 4), own(base + rank);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<std::int32_t>(i * (rank + 1));
  }
  Exchange exchange{ExchangeKind::ReduceScatter};
  exchange.reduction = RankReduction::Max;
  exchange.dtype = kI32;
  exchange.input = bytes_of(values);
  exchange.output = room_of(own);
  exchange.sent = parts;
  run_exchange(transport, exchange);
  for (std::size_t i = 0; i < own.size(); ++i) {
    ASSERT_EQ(own[i], static_cast<std::int32_t>((parts[rank].offset / 4 + i) * world)) << i;
  }
}

inline void check_broadcast(Transport& transport, std::uint32_t root, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  if (transport.rank() == root) {
    for (std::size_t i = 0; i < size; ++i) bytes[i] = byte_of(root, 1, i);
  }
  Exchange exchange{ExchangeKind::Broadcast};
  exchange.peer = root;
  exchange.output = bytes;
  run_exchange(transport, exchange);
  for (std::size_t i = 0; i < size; ++i) ASSERT_EQ(bytes[i], byte_of(root, 1, i)) << i;
}

// Messages round a circle, several under way at once.
inline void check_messages(Transport& transport, std::size_t base) {
  const std::uint32_t rank = transport.rank(), world = transport.world();
  if (world == 1) return;
  const std::uint32_t next = (rank + 1) % world, previous = (rank + world - 1) % world;
  constexpr std::size_t kMessages = 12;
  std::vector<std::vector<std::uint8_t>> out(kMessages), in(kMessages);
  std::vector<Ticket> tickets;
  for (std::size_t m = 0; m < kMessages; ++m) {
    out[m].assign(base * m, byte_of(rank, next, m));
    in[m].resize(base * m);
    Exchange receive{ExchangeKind::Receive, previous}, send{ExchangeKind::Send, next};
    receive.output = in[m];
    send.input = out[m];
    for (const Exchange& exchange : {receive, send}) {
      const auto ticket = transport.start(exchange);
      ASSERT_TRUE(ticket) << ticket.error().message;
      tickets.push_back(*ticket);
    }
  }
  while (!tickets.empty()) {
    const Status status = wait_for(transport, tickets.back(), kPatience);
    ASSERT_TRUE(status) << status.error().message;
    tickets.pop_back();
  }
  for (std::size_t m = 0; m < kMessages; ++m) {
    const std::vector<std::uint8_t> wanted(base * m, byte_of(previous, rank, m));
    ASSERT_EQ(in[m], wanted) << "message " << m;
  }
}

// With numbers whose sum depends on the order.
inline void check_sums_in_rank_order(Transport& transport) {
  const auto value = [](std::size_t rank, std::size_t i) {
    return std::ldexp(1.0f + static_cast<float>(rank), static_cast<int>((5 * rank + i) % 40) - 20);
  };
  constexpr std::size_t kElements = 1001;
  std::vector<float> own(kElements), sum(kElements);
  for (std::size_t i = 0; i < kElements; ++i) own[i] = value(transport.rank(), i);
  Exchange exchange{ExchangeKind::AllReduce};
  exchange.reduction = RankReduction::Sum;
  exchange.input = bytes_of(own);
  exchange.output = room_of(sum);
  run_exchange(transport, exchange);
  for (std::size_t i = 0; i < kElements; ++i) {
    float wanted = value(0, i);
    for (std::uint32_t rank = 1; rank < transport.world(); ++rank) wanted += value(rank, i);
    ASSERT_EQ(sum[i], wanted) << i;
  }
}

inline void check_everything(Transport& transport) {
  for (const std::uint64_t base : {0, 1, 5, 40000}) {
    check_all_gather(transport, base);
    check_all_to_all(transport, base);
    check_reduce_scatter(transport, base);
    check_messages(transport, base);
    for (std::uint32_t root = 0; root < transport.world(); ++root) {
      check_broadcast(transport, root, base);
    }
    check_all_reduce<float>(transport, kF32, base);
    check_all_reduce<std::int8_t>(transport, kI8, base);
    check_all_reduce<std::uint64_t>(transport, kU64, base);
    check_all_reduce<std::int32_t>(transport, {DTypeKind::Int, 24}, base);
  }
}

}  // namespace cinch::rt
