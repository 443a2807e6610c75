// Sessions of the C API on the emulated GPU whose memory is the caller's.
#include <map>

#include "gpu_fixture.h"

namespace cinch::testing {
namespace {

using ::testing::HasSubstr;

// Memory of the emulated driver by use, and an allocator that returns it.
struct Lender {
  static void* allocate(void* context, std::size_t size, std::size_t alignment,
                        cinch_memory_use use) {
    auto& self = *static_cast<Lender*>(context);
    EXPECT_EQ(256u, alignment);
    if (self.num_left-- == 0) return nullptr;
    rt::GpuAddress address = 0;
    EXPECT_EQ(rt::kGpuSuccess, c_api::emulated->memory_alloc(&address, size + self.shift));
    self.blocks[address + self.shift] = {size, use};
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void*>(address + self.shift);
  }
  static void release(void* context, void* memory, std::size_t size, cinch_memory_use use) {
    auto& self = *static_cast<Lender*>(context);
    const auto address = reinterpret_cast<rt::GpuAddress>(memory);
    const auto found = self.blocks.find(address);
    ASSERT_NE(found, self.blocks.end());
    EXPECT_EQ(found->second, std::pair(size, use));
    self.blocks.erase(found);
    EXPECT_EQ(rt::kGpuSuccess, c_api::emulated->memory_free(address - self.shift));
  }
  std::size_t held(cinch_memory_use use) const {
    std::size_t total = 0;
    for (const auto& [address, block] : blocks) total += block.second == use ? block.first : 0;
    return total;
  }

  std::map<rt::GpuAddress, std::pair<std::size_t, cinch_memory_use>> blocks;
  std::size_t shift = 0;
  int num_left = -1;  // below 0: no limit
};

class CApiGpuAllocator : public CApiGpu {
 protected:
  CApiGpuAllocator() {
    allocator.context = &lender;
    allocator.allocate = Lender::allocate;
    allocator.release = Lender::release;
    options.allocator = &allocator;
  }
  cinch_status try_to_open(const std::vector<cinch_tensor>& tensors) {
    cinch_session* session = nullptr;
    error = sized<cinch_error>();
    const cinch_status status = cinch_session_open(keeping().get(), &options, tensors.data(),
                                                   tensors.size(), &session, &error);
    EXPECT_EQ(nullptr, session);
    EXPECT_TRUE(lender.blocks.empty());
    return status;
  }

  Lender lender;
  cinch_allocator allocator = sized<cinch_allocator>();
  cinch_session_options options = sized<cinch_session_options>();
  cinch_error error = sized<cinch_error>();
};

TEST_F(CApiGpuAllocator, AllMemoryOfASessionIsTheCallers) {
  const Program on_cpu = compile("keeping.cinch", kKeeping);
  Tensor first(1000, 3), second(77, 3);
  const std::vector<cinch_tensor> gradients = {on_gpu(first), on_gpu(second)};
  const std::size_t before = emulator::driver_gpu().allocated_bytes();
  Session session = open(keeping(), gradients, &options);
  const std::size_t states = lender.held(CINCH_MEMORY_STATE),
                    rest = lender.held(CINCH_MEMORY_WORKSPACE);
  EXPECT_EQ(before + states + rest, emulator::driver_gpu().allocated_bytes());
  EXPECT_GE(states, cinch_session_state_bytes(session.get()));
  EXPECT_GT(rest, 0u);
  EXPECT_GE(cinch_session_state_bytes(session.get()) + cinch_session_workspace_bytes(session.get()),
            states + rest);
  auto payloads = rooms(session);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads));
  EXPECT_EQ(encode(open(on_cpu, {first.view(), second.view()}), 0, {first.view(), second.view()}),
            payloads_of(session, payloads));
  session.reset();
  EXPECT_TRUE(lender.blocks.empty());
}

TEST_F(CApiGpuAllocator, MemoryGoesBackWhenTheWorkIsDone) {
  Tensor tensor(3000, 3);
  const std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  Session session = open(keeping(), gradients, &options);
  auto payloads = rooms(session);
  const Session other = open(keeping(), gradients);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads));
  session.reset();  // nobody has waited for the call
  EXPECT_TRUE(lender.blocks.empty());
  EXPECT_EQ(rt::kGpuSuccess, c_api::emulated->context_synchronize());
  auto expected = rooms(other);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(other, 0, gradients, expected));
  const std::size_t size = collect(other)[0].payload_size;
  EXPECT_EQ(read(expected[0].data, size), read(payloads[0].data, size));
}

TEST_F(CApiGpuAllocator, WhatNoSessionCanUseIsAnErrorAndGoesBack) {
  Tensor tensor(500);
  const std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  const std::size_t before = emulator::driver_gpu().allocated_bytes();
  for (const int allowed : {0, 1, 3}) {
    lender.num_left = allowed;
    EXPECT_EQ(CINCH_OUT_OF_MEMORY, try_to_open(gradients));
    EXPECT_THAT(error.message, HasSubstr("the allocator has no memory for"));
  }
  lender.num_left = -1;
  lender.shift = 64;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, try_to_open(gradients));
  EXPECT_THAT(error.message, HasSubstr("not a multiple of 256"));

  alignas(256) static char host[256];
  allocator.allocate = [](void*, std::size_t, std::size_t, cinch_memory_use) -> void* {
    return host;
  };
  allocator.release = [](void*, void* memory, std::size_t, cinch_memory_use) {
    EXPECT_EQ(memory, host);
  };
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, try_to_open(gradients));
  EXPECT_THAT(error.message, HasSubstr("it is the host's"));
  allocator.release = nullptr;
  EXPECT_EQ(CINCH_INVALID_ARGUMENT, try_to_open(gradients));
  EXPECT_THAT(error.message, HasSubstr("both allocate and release"));
  EXPECT_EQ(before, emulator::driver_gpu().allocated_bytes());
}

TEST_F(CApiGpuAllocator, MemoryOfAGraphIsKeptWhileAStreamCaptures) {
  const rt::GpuDriver& driver = *c_api::emulated;
  rt::GpuStream stream = nullptr, captured = nullptr;
  ASSERT_EQ(rt::kGpuSuccess, driver.stream_create(&stream, 1));
  ASSERT_EQ(rt::kGpuSuccess, driver.stream_create(&captured, 1));
  Tensor tensor(1000, 3);
  std::vector<cinch_tensor> gradients = {on_gpu(tensor)};
  gradients[0].stream = stream;
  Session other = open(keeping(), gradients), session = open(keeping(), gradients, &options);
  auto payloads = rooms(session);
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads));
  rt::GpuGraph graph = nullptr, spoiled = nullptr;
  ASSERT_EQ(rt::kGpuSuccess, driver.capture_begin(stream, rt::kGpuCaptureRelaxed));
  ASSERT_EQ(CINCH_OK, encode_on_gpu(session, 0, gradients, payloads));
  ASSERT_EQ(rt::kGpuSuccess, driver.capture_end(stream, &graph));
  ASSERT_EQ(rt::kGpuSuccess, driver.capture_begin(captured, rt::kGpuCaptureRelaxed));
  const std::size_t num_blocks = lender.blocks.size();
  session.reset();
  EXPECT_EQ(num_blocks, lender.blocks.size());
  EXPECT_EQ(rt::kGpuCaptureInvalidated, driver.capture_end(captured, &spoiled));
  allocator = {};  // the library has a copy
  other.reset();
  EXPECT_TRUE(lender.blocks.empty());
  driver.graph_destroy(graph);
}

}  // namespace
}  // namespace cinch::testing
