// Memory of a device over the emulated driver: in stream order, and at once if the device has no
// memory pools.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/emulator/driver.h"
#include "runtime/gpu/device.h"

namespace cinch::rt {
namespace {

constexpr std::size_t kBytes = 1000;

GpuCode no_attributes(int* value, int, int) {
  *value = 0;
  return kGpuSuccess;
}

class GpuMemoryTest : public ::testing::Test {
 protected:
  GpuMemoryTest()
      : driver(emulator::start_driver({.memory_bytes = std::size_t{1} << 20})),
        device(*GpuDevice::open(driver)) {
    driver.stream_create(&stream, 0);
  }
  GpuCode fill_on(GpuStream where, GpuAddress at) const {
    const GpuCode code = driver.fill(at, 1, kBytes, where);
    return code == kGpuSuccess ? driver.stream_synchronize(where) : code;
  }

  const GpuDriver& driver;
  std::shared_ptr<const GpuDevice> device;
  GpuStream stream = nullptr;
};

TEST_F(GpuMemoryTest, IsThereWhenItsStreamComesToIt) {
  ASSERT_TRUE(device->has_memory_pools());
  const auto memory = GpuMemory::allocate_on(device, kBytes, stream);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->size_bytes(), kBytes);
  // Another stream may not use it yet.
  EXPECT_NE(fill_on(nullptr, memory->address()), kGpuSuccess);
  EXPECT_EQ(fill_on(stream, memory->address()), kGpuSuccess);
  EXPECT_EQ(fill_on(nullptr, memory->address()), kGpuSuccess);
}

TEST_F(GpuMemoryTest, IsGoneWhenItsStreamComesToThat) {
  GpuAddress address = 0;
  ASSERT_EQ(driver.memory_alloc_async(&address, kBytes, stream), kGpuSuccess);
  ASSERT_EQ(driver.fill(address, 1, kBytes, stream), kGpuSuccess);
  ASSERT_EQ(driver.memory_free_async(address, stream), kGpuSuccess);
  ASSERT_EQ(driver.stream_synchronize(stream), kGpuSuccess);
  EXPECT_NE(fill_on(stream, address), kGpuSuccess);
  ASSERT_EQ(driver.memory_free_async(address, stream), kGpuSuccess);
  EXPECT_NE(driver.stream_synchronize(stream), kGpuSuccess);
}

TEST_F(GpuMemoryTest, IsGivenBackAndFoundAgain) {
  for (int i = 0; i < 100; ++i) {
    auto memory = GpuMemory::allocate_on(device, std::size_t{1} << 19, stream);
    ASSERT_TRUE(memory) << i << ": " << memory.error().message;
    const GpuMemory moved = std::move(*memory);
    EXPECT_NE(moved.address(), 0u);
  }
  EXPECT_EQ(driver.context_synchronize(), kGpuSuccess);
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), 0u);
  const auto much = GpuMemory::allocate_on(device, std::size_t{1} << 21, stream);
  ASSERT_FALSE(much);
  EXPECT_EQ(much.error().kind, ErrorKind::OutOfMemory);
}

TEST_F(GpuMemoryTest, NeedsAStreamThatIsThereAndNotCapturing) {
  ASSERT_EQ(driver.capture_begin(stream, 0), kGpuSuccess);
  EXPECT_FALSE(GpuMemory::allocate_on(device, kBytes, stream));
  GpuGraph graph = nullptr;
  driver.capture_end(stream, &graph);
  driver.graph_destroy(graph);
  EXPECT_TRUE(GpuMemory::allocate_on(device, kBytes, stream));
  driver.stream_destroy(stream);
  const auto memory = GpuMemory::allocate_on(device, kBytes, stream);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().kind, ErrorKind::InvalidArgument);
}

TEST_F(GpuMemoryTest, IsThereAtOnceWhereTheDeviceHasNoPools) {
  static GpuDriver without;  // outlives the device
  without = driver;
  without.device_attribute = no_attributes;
  without.memory_alloc_async = nullptr;
  without.memory_free_async = nullptr;
  const auto old = *GpuDevice::open(without);
  EXPECT_FALSE(old->has_memory_pools());
  const auto memory = GpuMemory::allocate_on(old, kBytes, stream);
  ASSERT_TRUE(memory);
  EXPECT_EQ(fill_on(nullptr, memory->address()), kGpuSuccess);
}

// As in NVIDIA's driver: a wait for the whole context spoils captures.
TEST_F(GpuMemoryTest, WaitsForTheContextSpoilCaptures) {
  ASSERT_EQ(driver.capture_begin(stream, kGpuCaptureRelaxed), kGpuSuccess);
  EXPECT_EQ(driver.context_synchronize(), kGpuCaptureUnsupported);
  int status = 0;
  EXPECT_EQ(driver.stream_is_capturing(stream, &status), kGpuSuccess);
  EXPECT_EQ(status, 2);
  EXPECT_EQ(driver.fill(0, 0, 1, stream), kGpuCaptureInvalidated);
  GpuGraph graph = nullptr;
  EXPECT_EQ(driver.capture_end(stream, &graph), kGpuCaptureInvalidated);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(driver.context_synchronize(), kGpuSuccess);
  ASSERT_EQ(driver.capture_begin(stream, kGpuCaptureRelaxed), kGpuSuccess);
  EXPECT_EQ(driver.capture_end(stream, &graph), kGpuSuccess);
  driver.graph_destroy(graph);
}

TEST_F(GpuMemoryTest, GoesBackBehindItsEventBesideACapture) {
  GpuStream busy = nullptr;
  driver.stream_create(&busy, kGpuStreamNonBlocking);
  auto pooled = GpuMemory::allocate_on(device, kBytes, busy);
  auto plain = GpuMemory::allocate(device, kBytes);
  ASSERT_TRUE(pooled && plain);
  GpuEvent event = nullptr;
  driver.event_create(&event, kGpuEventWithoutTiming);
  for (const GpuMemory* memory : {&*pooled, &*plain}) {
    ASSERT_EQ(driver.fill(memory->address(), 1, kBytes, busy), kGpuSuccess);
  }
  driver.event_record(event, busy);
  pooled->used_until(event);
  ASSERT_EQ(driver.capture_begin(stream, kGpuCaptureGlobal), kGpuSuccess);
  *pooled = GpuMemory();
  *plain = GpuMemory();
  EXPECT_EQ(driver.stream_synchronize(nullptr), kGpuSuccess);
  EXPECT_EQ(driver.stream_synchronize(busy), kGpuSuccess);
  GpuGraph graph = nullptr;
  EXPECT_EQ(driver.capture_end(stream, &graph), kGpuSuccess);
  driver.graph_destroy(graph);
  EXPECT_EQ(driver.context_synchronize(), kGpuSuccess);
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), 0u);
  driver.event_destroy(event);
}

TEST_F(GpuMemoryTest, IsKeptWhileNobodyCanWaitForItsUsers) {
  GpuStream busy = nullptr;
  driver.stream_create(&busy, kGpuStreamNonBlocking);
  constexpr std::size_t kMuch = std::size_t{1} << 19;
  auto memory = GpuMemory::allocate_on(device, kMuch, busy);
  ASSERT_TRUE(memory);
  ASSERT_EQ(driver.fill(memory->address(), 1, kMuch, busy), kGpuSuccess);
  ASSERT_EQ(driver.capture_begin(stream, kGpuCaptureGlobal), kGpuSuccess);
  *memory = GpuMemory();
  EXPECT_EQ(driver.stream_synchronize(nullptr), kGpuSuccess);
  EXPECT_EQ(driver.stream_synchronize(busy), kGpuSuccess);
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), kMuch);
  GpuGraph graph = nullptr;
  EXPECT_EQ(driver.capture_end(stream, &graph), kGpuCaptureInvalidated);
  // Kept memory is freed before the device is said to be out of memory.
  EXPECT_TRUE(GpuMemory::allocate(device, kMuch + kBytes));
  EXPECT_EQ(driver.context_synchronize(), kGpuSuccess);
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), 0u);
}

// Provides memory of the driver, and notes when it gets it back.
struct Lender {
  MemorySource source() {
    return {{std::shared_ptr<void>(), this},
            [](void* context, std::size_t size, std::size_t alignment, MemoryUse use) {
              const auto& self = *static_cast<Lender*>(context);
              EXPECT_EQ(alignment, 256u);
              EXPECT_EQ(use, MemoryUse::State);
              GpuAddress address = 0;
              if (self.is_empty) return static_cast<void*>(nullptr);
              EXPECT_EQ(self.driver.memory_alloc(&address, size + self.shift), kGpuSuccess);
              address += self.shift;
              return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr)
            },
            [](void* context, void* memory, std::size_t size, MemoryUse) {
              auto& self = *static_cast<Lender*>(context);
              EXPECT_EQ(size, kBytes);
              ++self.num_back;
              const auto address = reinterpret_cast<GpuAddress>(memory) - self.shift;
              EXPECT_EQ(self.driver.memory_free(address), kGpuSuccess);
            }};
  }

  const GpuDriver& driver;
  bool is_empty = false;
  std::size_t shift = 0;
  int num_back = 0;
};

TEST_F(GpuMemoryTest, OfASourceGoesBackThere) {
  Lender lender{driver};
  {
    auto memory = GpuMemory::allocate_from(lender.source(), MemoryUse::State, device, kBytes);
    ASSERT_TRUE(memory) << memory.error().message;
    EXPECT_EQ(fill_on(stream, memory->address()), kGpuSuccess);
    const GpuMemory moved = std::move(*memory);
    EXPECT_EQ(lender.num_back, 0);
  }
  EXPECT_EQ(lender.num_back, 1);
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), 0u);
  const auto none = GpuMemory::allocate_from(lender.source(), MemoryUse::State, device, 0);
  EXPECT_TRUE(none);
}

TEST_F(GpuMemoryTest, OfASourceThatGivesNoneOrTheWrongOneIsAnError) {
  Lender lender{driver};
  const auto error_of = [&](const MemorySource& source) {
    const auto memory = GpuMemory::allocate_from(source, MemoryUse::State, device, kBytes);
    EXPECT_FALSE(memory);
    return memory ? Error{} : memory.error();
  };
  lender.shift = 16;
  const Error shifted = error_of(lender.source());
  EXPECT_EQ(shifted.kind, ErrorKind::InvalidArgument);
  EXPECT_NE(shifted.message.find("not a multiple of 256"), std::string::npos) << shifted.message;
  EXPECT_EQ(lender.num_back, 1);
  lender.is_empty = true;
  EXPECT_EQ(error_of(lender.source()).kind, ErrorKind::OutOfMemory);

  alignas(256) static std::uint8_t host[kBytes];
  static int num_back;
  num_back = 0;
  const Error of_host =
      error_of({nullptr, [](void*, std::size_t, std::size_t, MemoryUse) -> void* { return host; },
                [](void*, void* memory, std::size_t, MemoryUse) {
                  EXPECT_EQ(memory, host);
                  ++num_back;
                }});
  EXPECT_EQ(of_host.kind, ErrorKind::InvalidArgument);
  EXPECT_NE(of_host.message.find("it is the host's"), std::string::npos) << of_host.message;
  EXPECT_EQ(num_back, 1);
  EXPECT_EQ(emulator::driver_gpu().allocated_bytes(), 0u);
}

TEST_F(GpuMemoryTest, OfASourceIsKeptWhileNobodyCanWaitForItsUsers) {
  Lender lender{driver};
  auto memory = GpuMemory::allocate_from(lender.source(), MemoryUse::State, device, kBytes);
  ASSERT_TRUE(memory);
  ASSERT_EQ(driver.capture_begin(stream, kGpuCaptureGlobal), kGpuSuccess);
  *memory = GpuMemory();
  EXPECT_EQ(lender.num_back, 0);
  GpuGraph graph = nullptr;
  EXPECT_EQ(driver.capture_end(stream, &graph), kGpuCaptureInvalidated);
  EXPECT_TRUE(device->freeing().retry());
  EXPECT_EQ(lender.num_back, 1);
  EXPECT_FALSE(device->freeing().retry());
}

// A copy reads the memory when its stream reaches it: no byte is kept in between.
TEST_F(GpuMemoryTest, OfTheHostIsPinnedWhileItIsSaidTo) {
  const auto memory = GpuMemory::allocate(device, kBytes);
  ASSERT_TRUE(memory);
  const auto arrives = [&](std::uint8_t changed) {
    std::vector<std::uint8_t> host(kBytes, 1), back(kBytes);
    PinnedMemory pinned;
    if (changed == 2) pinned = PinnedMemory(device, host);
    EXPECT_EQ(driver.copy_to_device(memory->address(), host.data(), kBytes, stream), kGpuSuccess);
    host.assign(kBytes, 2);
    EXPECT_TRUE(device->read(back, memory->address(), stream));
    return back == std::vector<std::uint8_t>(kBytes, changed);
  };
  EXPECT_TRUE(arrives(2));
  EXPECT_TRUE(arrives(1));
}

}  // namespace
}  // namespace cinch::rt
