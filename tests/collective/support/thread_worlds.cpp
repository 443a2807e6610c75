// Bodies of thread_worlds.h.
#include "tests/collective/support/thread_worlds.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "runtime/collective/loopback.h"
#include "runtime/transports/lent/callback_transport.h"
#include "runtime/transports/ucx/ucx_transport.h"
#include "tests/collective/nccl/double_world.h"
#include "tests/unit/runtime/collective/lending_host.h"
#include "tests/unit/runtime/collective/ucx/ucx_threads.h"

namespace cinch::testing {
namespace {

void run_threads(std::uint32_t world, const std::function<void(std::uint32_t)>& rank) {
  std::vector<std::thread> threads;
  for (std::uint32_t r = 0; r < world; ++r) threads.emplace_back(rank, r);
  for (std::thread& thread : threads) thread.join();
}

void run_on_links(std::uint32_t world, const rt::LinkShape& shape, const WorldBody& body) {
  rt::LoopbackWorld ranks(world, shape);
  run_threads(world, [&](std::uint32_t rank) {
    auto transport = ranks.transport(rank);
    body(*transport, [&] { transport.reset(); });
  });
}

void run_on_loopback(std::uint32_t world, const WorldBody& body, Sums) {
  run_on_links(world, {}, body);
}

void run_on_shaped(std::uint32_t world, const WorldBody& body, Sums) {
  run_on_links(world, {2e-4, 5e7}, body);
}

void run_on_callback(std::uint32_t world, const WorldBody& body, Sums) {
  rt::LoopbackWorld ranks(world);
  run_threads(world, [&](std::uint32_t rank) {
    auto inner = ranks.transport(rank);
    rt::LendingHost host(*inner);
    auto transport = rt::make_callback_transport(host.calls());
    ASSERT_TRUE(transport) << transport.error().message;
    body(**transport, [&] {
      transport->reset();
      inner.reset();
    });
  });
}

void run_on_nccl(std::uint32_t world, const WorldBody& body, Sums sums) {
  const NcclDouble& library = NcclDouble::open("nccl_double");
  const auto id = rt::make_nccl_id(library.file);
  ASSERT_TRUE(id) << id.error().message;
  const auto neighbours = std::make_shared<rt::NcclNeighbours>();
  run_threads(world, [&](std::uint32_t rank) {
    rt::NcclOptions options;
    options.library = library.file;
    options.device = library.device(rank);
    options.neighbours = neighbours;
    options.is_exact = sums == Sums::RankOrder;
    auto transport = rt::open_nccl_transport(*id, rank, world, options);
    ASSERT_TRUE(transport) << transport.error().message;
    body(**transport, [&] { transport->reset(); });
  });
  EXPECT_EQ(library.wrong_uses(), "");
}

void run_on_ucx(std::uint32_t world, const char* transports, const WorldBody& body) {
  rt::run_ucx_threads(rt::ucx_options(world, transports),
                      [&](auto& transport) { body(*transport, [&] { transport.reset(); }); });
}

void run_on_ucx_tcp(std::uint32_t world, const WorldBody& body, Sums) {
  run_on_ucx(world, "tcp", body);
}

void run_on_ucx_memory(std::uint32_t world, const WorldBody& body, Sums) {
  run_on_ucx(world, "posix,self", body);
}

std::vector<ThreadWorld> find_thread_worlds() {
  std::vector<ThreadWorld> found{{"loopback", run_on_loopback, true, true},
                                 {"shaped", run_on_shaped, true, true},
                                 {"callback", run_on_callback, false, true},
                                 {"nccl", run_on_nccl, false, false}};
  if (rt::ucx_library()) {
    found.push_back({"ucx_tcp", run_on_ucx_tcp, true, true});
    found.push_back({"ucx_memory", run_on_ucx_memory, true, true});
  }
  return found;
}

}  // namespace

std::span<const ThreadWorld> thread_worlds() {
  static const std::vector<ThreadWorld> kFound = find_thread_worlds();
  return kFound;
}

}  // namespace cinch::testing
