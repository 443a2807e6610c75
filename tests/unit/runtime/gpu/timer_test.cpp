// Timers over the emulated driver.
#include "runtime/gpu/events.h"

#include <gtest/gtest.h>

#include "codegen/emulator/driver.h"

namespace cinch::rt {
namespace {

class GpuTimerTest : public ::testing::Test {
 protected:
  GpuTimerTest()
      : driver(emulator::start_driver({.memory_bytes = std::size_t{1} << 26})),
        device(*GpuDevice::open(driver)) {
    driver.stream_create(&stream, 0);
  }

  const GpuDriver& driver;
  std::shared_ptr<const GpuDevice> device;
  GpuStream stream = nullptr;
};

TEST_F(GpuTimerTest, TakesTimesWhenTheStreamComesToThem) {
  constexpr std::size_t kBytes = std::size_t{1} << 24;
  const auto memory = GpuMemory::allocate(device, kBytes);
  auto timer = GpuTimer::create(device);
  ASSERT_TRUE(timer);
  ASSERT_TRUE(timer->start(stream));
  ASSERT_EQ(driver.fill(memory->address(), 1, kBytes, stream), kGpuSuccess);
  ASSERT_TRUE(timer->stop(stream));
  const auto first = timer->milliseconds();
  ASSERT_TRUE(first);
  EXPECT_GT(*first, 0);
  EXPECT_EQ(*timer->milliseconds(), *first);
  ASSERT_TRUE(timer->stop(stream));
  EXPECT_GT(*timer->milliseconds(), *first);
}

TEST_F(GpuTimerTest, SaysSoWhenItWasNotStopped) {
  auto timer = GpuTimer::create(device);
  ASSERT_TRUE(timer->start(stream));
  const auto time = timer->milliseconds();
  ASSERT_FALSE(time);
  EXPECT_EQ(time.error().kind, ErrorKind::InvalidArgument);
}

TEST_F(GpuTimerTest, ReportsAFailureOfWhatItTimes) {
  auto timer = GpuTimer::create(device);
  ASSERT_TRUE(timer->start(stream));
  const auto memory = GpuMemory::allocate(device, 16);
  ASSERT_EQ(driver.copy_on_device(memory->address(), memory->address() + 8, 16, stream),
            kGpuSuccess);
  ASSERT_TRUE(timer->stop(stream));
  EXPECT_FALSE(timer->milliseconds());
  EXPECT_FALSE(timer->milliseconds());
}

TEST_F(GpuTimerTest, IsNotMadeWhereTheDriverFails) {
  emulator::fail_call(1, kGpuOutOfMemory);
  const auto timer = GpuTimer::create(device);
  ASSERT_FALSE(timer);
  EXPECT_EQ(timer.error().kind, ErrorKind::OutOfMemory);
}

TEST_F(GpuTimerTest, RefusesADestroyedOrCapturingStream) {
  auto timer = GpuTimer::create(device);
  driver.capture_begin(stream, 0);
  EXPECT_FALSE(timer->start(stream));
  GpuGraph graph = nullptr;
  driver.capture_end(stream, &graph);
  driver.graph_destroy(graph);
  EXPECT_TRUE(timer->start(stream));
  driver.stream_destroy(stream);
  EXPECT_FALSE(timer->stop(stream));
}

TEST_F(GpuTimerTest, EventsWaitForTheirPlaceAndNoLonger) {
  GpuEvent first = nullptr, second = nullptr;
  driver.event_create(&first, 0);
  driver.event_create(&second, 0);
  float elapsed = -1;
  EXPECT_EQ(driver.event_elapsed_time(&elapsed, first, second), kGpuInvalidHandle);
  driver.event_record(first, stream);
  driver.event_record(second, stream);
  EXPECT_EQ(driver.event_elapsed_time(&elapsed, first, second), kGpuNotReady);
  EXPECT_EQ(driver.event_synchronize(first), kGpuSuccess);
  EXPECT_EQ(driver.event_elapsed_time(&elapsed, first, second), kGpuNotReady);
  EXPECT_EQ(driver.event_synchronize(second), kGpuSuccess);
  EXPECT_EQ(driver.event_elapsed_time(&elapsed, first, second), kGpuSuccess);
  EXPECT_GE(elapsed, 0);
  driver.event_destroy(first);
  EXPECT_EQ(driver.event_destroy(first), kGpuInvalidHandle);
  driver.event_destroy(second);
}

TEST_F(GpuTimerTest, StreamsWaitForEventsOfOthers) {
  GpuStream other = nullptr;
  GpuEvent written = nullptr, read = nullptr;
  GpuAddress memory = 0;
  driver.stream_create(&other, kGpuStreamNonBlocking);
  driver.event_create(&written, kGpuEventWithoutTiming);
  driver.event_create(&read, kGpuEventWithoutTiming);
  driver.memory_alloc(&memory, 4);
  EXPECT_EQ(driver.stream_wait_event(other, written, 0), kGpuSuccess);  // nothing was recorded
  driver.fill(memory, 7, 4, stream);
  driver.event_record(written, stream);
  EXPECT_EQ(driver.stream_wait_event(other, written, 0), kGpuSuccess);
  std::uint8_t bytes[4] = {};
  driver.copy_to_host(bytes, memory, 4, other);
  driver.event_record(read, other);
  EXPECT_EQ(driver.event_query(read), kGpuSuccess);  // a query is what advances an emulated stream
  EXPECT_EQ(bytes[3], 7);
  driver.event_destroy(read);
  EXPECT_EQ(driver.stream_wait_event(other, read, 0), kGpuInvalidHandle);
  EXPECT_EQ(driver.event_query(read), kGpuInvalidHandle);
  driver.event_destroy(written);
  driver.stream_destroy(other);
  driver.memory_free(memory);
}

// A stream waits for the place that the event had at that time.
TEST_F(GpuTimerTest, EventsMayBeRecordedAnewWhileStreamsWait) {
  GpuStream second = nullptr, third = nullptr;
  GpuEvent event = nullptr;
  GpuAddress memory = 0;
  driver.stream_create(&second, kGpuStreamNonBlocking);
  driver.stream_create(&third, kGpuStreamNonBlocking);
  driver.event_create(&event, kGpuEventWithoutTiming);
  driver.memory_alloc(&memory, 4);
  for (const GpuStream each : {stream, second, third}) {
    EXPECT_EQ(driver.stream_wait_event(each, event, 0), kGpuSuccess);
    driver.fill(memory, each == stream ? 1 : each == second ? 2 : 3, 4, each);
    driver.event_record(event, each);
  }
  EXPECT_EQ(driver.stream_synchronize(third), kGpuSuccess);
  std::uint8_t bytes[4] = {};
  driver.copy_to_host(bytes, memory, 4, second);
  EXPECT_EQ(driver.stream_synchronize(second), kGpuSuccess);
  EXPECT_EQ(bytes[0], 3);
  driver.event_destroy(event);
  driver.memory_free(memory);
}

}  // namespace
}  // namespace cinch::rt
