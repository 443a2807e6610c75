// Bodies of CountedGpu (rank.h).
#include "tests/collective/mpi/rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "codegen/emulator/driver.h"
#include "tests/collective/support/emulated_ranks.h"
#include "tests/collective/support/sync_oracle.h"

namespace cinch::testing {
namespace {

using rt::GpuAddress;
using rt::GpuCode;
using rt::GpuDriver;
using rt::GpuStream;
using rt::kGpuSuccess;

constexpr GpuAddress kPageBytes = 4096;

// Functions of the table are C functions. Used in the device's turn.
struct Counts {
  const GpuDriver* plain = nullptr;
  std::uint64_t num_copied_bytes = 0;
  std::map<GpuAddress, std::size_t> live, freed;
};

Counts& counts() {
  static Counts all;
  return all;
}

GpuCode note_made(GpuCode code, const GpuAddress* address, std::size_t size_bytes) {
  if (code != kGpuSuccess) return code;
  auto& freed = counts().freed;
  std::erase_if(freed, [&](const auto& old) {
    return old.first < *address + size_bytes && *address < old.first + old.second;
  });
  counts().live[*address] = size_bytes;
  return code;
}

void note_freed(GpuAddress address) {
  const auto found = counts().live.find(address);
  if (found == counts().live.end()) return;
  counts().freed.insert(*found);
  counts().live.erase(found);
}

GpuCode memory_alloc(GpuAddress* address, std::size_t size_bytes) {
  return note_made(counts().plain->memory_alloc(address, size_bytes), address, size_bytes);
}

GpuCode memory_alloc_async(GpuAddress* address, std::size_t size_bytes, GpuStream stream) {
  const GpuCode code = counts().plain->memory_alloc_async(address, size_bytes, stream);
  return note_made(code, address, size_bytes);
}

GpuCode memory_free(GpuAddress address) {
  note_freed(address);
  return counts().plain->memory_free(address);
}

GpuCode memory_free_async(GpuAddress address, GpuStream stream) {
  note_freed(address);
  return counts().plain->memory_free_async(address, stream);
}

GpuCode copy_to_device(GpuAddress to, const void* from, std::size_t size_bytes, GpuStream stream) {
  counts().num_copied_bytes += size_bytes;
  return counts().plain->copy_to_device(to, from, size_bytes, stream);
}

GpuCode copy_to_host(void* to, GpuAddress from, std::size_t size_bytes, GpuStream stream) {
  counts().num_copied_bytes += size_bytes;
  return counts().plain->copy_to_host(to, from, size_bytes, stream);
}

const GpuDriver& start_counting() {
  static GpuDriver table;
  counts().plain = &emulator::start_driver();
  table = *counts().plain;
  table.memory_alloc = memory_alloc;
  table.memory_alloc_async = memory_alloc_async;
  table.memory_free = memory_free;
  table.memory_free_async = memory_free_async;
  table.copy_to_device = copy_to_device;
  table.copy_to_host = copy_to_host;
  return table;
}

}  // namespace

CountedGpu::CountedGpu() : device_(*rt::GpuDevice::open(start_counting())) {}

CountedGpu& CountedGpu::of_process() {
  static CountedGpu gpu;
  return gpu;
}

rt::SyncDevice CountedGpu::sync_device(const std::vector<std::string>& expressions) {
  const std::lock_guard lock(turns_);
  rt::SyncDevice made = sync_device_on(device_, expressions);
  made.turns = &turns_;
  return made;
}

std::uint64_t CountedGpu::num_copied_bytes() {
  return counts().num_copied_bytes;
}

std::uint64_t CountedGpu::num_lost_bytes() {
  const std::lock_guard lock(turns_);
  // Memory that is freed in stream order.
  EXPECT_EQ(device_->driver().context_synchronize(), kGpuSuccess);
  std::uint64_t lost = 0;
  for (const auto& [address, size_bytes] : counts().freed) {
    const GpuAddress begin = (address + kPageBytes - 1) / kPageBytes * kPageBytes;
    const GpuAddress end = (address + size_bytes) / kPageBytes * kPageBytes;
    if (end <= begin) continue;
    const auto* const bytes = reinterpret_cast<const char*>(begin);  // NOLINT
    lost += static_cast<std::uint64_t>(
        std::count_if(bytes, bytes + (end - begin), [](char byte) { return byte != 0; }));
  }
  return lost;
}

// Steps over MPI against the oracle; see rank.h.

SyncCase subject_of(const std::string& program, std::string_view plan, std::uint32_t world,
                    std::int64_t elements) {
  rt::PlanRequest request;
  request.plan = plan;
  request.world = world;
  request.piece_bytes = 16384;
  request.tensors = {{"large", elements, 1, 0}, {"bias", 7, 1, rt::kDense}, {"small", 40, 1, 0}};
  return make_sync_case(program.empty() ? nullptr : compiled_library(program), request);
}

void check_steps(const SyncCase& subject, rt::Transport& transport, const std::string& text) {
  auto session = rt::SyncSession::open(sync_options(subject, transport.rank()), transport);
  ASSERT_TRUE(session) << text << ": " << session.error().message;
  SyncOracle oracle(*subject.plan, subject.programs, subject.seed);
  for (std::uint64_t step = 0; step < subject.num_steps; ++step) {
    std::vector<Tensors> gradients;
    for (std::uint32_t rank = 0; rank < transport.world(); ++rank) {
      gradients.push_back(make_gradients(*subject.plan, rank, step));
    }
    Tensors update;
    const rt::Status status = step_on(**session, gradients[transport.rank()], update, step);
    ASSERT_TRUE(status) << text << ", step " << step << ": " << status.error().message;
    ASSERT_TRUE(are_same(update, oracle.step(gradients, step))) << text << ", step " << step;
  }
}

}  // namespace cinch::testing
