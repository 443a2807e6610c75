// Sessions on the emulated GPU whose memory, shapes, images, streams or drivers fail: each gives an
// error that says what to do, and the session still works.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/programs/harness/gpu_session_fixture.h"

namespace cinch::testing {
namespace {

using rt::ErrorKind;
using Bytes = std::vector<std::uint8_t>;

TEST_F(GpuSessionTest, refuses_memory_that_cannot_be_right) {
  auto session = open("onebit", {100});
  const GpuAddress from = upload(gradient(100));
  const GpuPayload to = payload_for(session);
  const auto refuses = [&](GpuAddress gradient_at, GpuPayload payload) {
    const auto status = session.encode({&gradient_at, 1}, {&payload, 1}, 0, nullptr);
    return !status && status.error().kind == ErrorKind::InvalidArgument;
  };
  EXPECT_TRUE(refuses(0, to));
  EXPECT_TRUE(refuses(from + 2, to));
  EXPECT_TRUE(refuses(from, {to.address + 8, to.size_bytes}));
  EXPECT_TRUE(refuses(from, {to.address, to.size_bytes - 1}));
  EXPECT_FALSE(session.encode({}, {&to, 1}, 0, nullptr));
  EXPECT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, nullptr));
}

// The driver's answers about one address.
struct Whose {
  unsigned type = 2, is_managed = 0;
  int ordinal = 0;
} g_whose;

rt::GpuCode tell_whose(void* value, int attribute, GpuAddress) {
  switch (static_cast<rt::GpuPointerAttribute>(attribute)) {
    case rt::GpuPointerAttribute::MemoryType:
      *static_cast<unsigned*>(value) = g_whose.type;
      return rt::kGpuSuccess;
    case rt::GpuPointerAttribute::IsManaged:
      *static_cast<unsigned*>(value) = g_whose.is_managed;
      return rt::kGpuSuccess;
    case rt::GpuPointerAttribute::DeviceOrdinal:
      *static_cast<int*>(value) = g_whose.ordinal;
      return rt::kGpuSuccess;
  }
  return rt::kGpuInvalidValue;
}

TEST_F(GpuSessionTest, says_whose_memory_it_is_that_is_not_the_devices) {
  static rt::GpuDriver driver;  // outlives the fixture's memory
  driver = emulator::start_driver();
  const auto host_device = *rt::GpuDevice::open(driver);
  device = host_device;
  auto session = open("onebit", {100});
  const GpuAddress from = upload(gradient(100));
  const GpuPayload to = payload_for(session);
  const auto message = [&](GpuAddress gradient_at, const GpuPayload& payload) {
    const auto status = session.encode({&gradient_at, 1}, {&payload, 1}, 0, nullptr);
    if (status) return std::string();
    EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
    return status.error().message;
  };
  alignas(16) static float on_host[100];
  const auto host = reinterpret_cast<GpuAddress>(&on_host);
  const std::string at_host = fmt::format("{:#x}", host);
  EXPECT_EQ(message(host, to),
            "tensor 0: address " + at_host +
                " is not memory of a GPU: it is the host's, or was freed; give memory of device 0 "
                "(emulated GPU)");
  EXPECT_EQ(message(from, {host, to.size_bytes}).find("payload 0: address " + at_host), 0u);
  driver.pointer_attribute = tell_whose;
  g_whose = {.type = rt::kGpuHostMemory};
  EXPECT_EQ(message(host, to), "tensor 0: address " + at_host +
                                   " is pinned memory of the host; give memory of device 0 "
                                   "(emulated GPU)");
  g_whose = {.ordinal = 3};
  EXPECT_EQ(message(host, to), "tensor 0: address " + at_host +
                                   " is memory of device 3; the session is on device 0 "
                                   "(emulated GPU)");
  g_whose.is_managed = 1;
  EXPECT_TRUE(host_device->check_memory(host));
  // The session works on, and does not ask again about known addresses.
  g_whose = {};
  EXPECT_EQ(message(from, to), "");
  driver.pointer_attribute = nullptr;
  EXPECT_EQ(message(from, to), "");
  EXPECT_TRUE(collect(session).status);
}

// For a device newer than NVRTC: PTX goes to the driver unchanged, and an old driver rejects it.
TEST_F(GpuSessionTest, ptx_goes_to_the_driver_and_one_that_is_too_old_says_what_to_do) {
  static std::string loaded;
  rt::GpuDriver driver = emulator::start_driver();
  driver.arch = "sm_999";
  driver.module_load = [](rt::GpuModuleHandle*, const void* image) {
    loaded = static_cast<const char*>(image);
    return rt::kGpuUnsupportedPtx;
  };
  rt::ProgramImage image = program_for_both("onebit").gpu;
  image.target = "cuda:sm_999";
  const std::string ptx = ".version 9.9\n.target sm_120\n";
  image.binary.assign(ptx.c_str(), ptx.c_str() + ptx.size() + 1);
  const auto made = rt::GpuProgram::load(*rt::GpuDevice::open(driver), image);
  EXPECT_EQ(loaded, ptx);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind, ErrorKind::Unavailable);
  EXPECT_EQ(made.error().native_code, 222);
  EXPECT_NE(made.error().message.find("update the driver, or set CINCH_NVRTC to an older NVRTC"),
            std::string::npos);
}

TEST_F(GpuSessionTest, a_destroyed_stream_is_an_error_and_the_session_works_on) {
  auto session = open("onebit", {100});
  rt::GpuStream stream = nullptr;
  ASSERT_EQ(device->driver().stream_create(&stream, 1), 0);
  ASSERT_EQ(device->driver().stream_destroy(stream), 0);
  const GpuAddress from = upload(gradient(100));
  const GpuPayload to = payload_for(session);
  const auto status = session.encode({&from, 1}, {&to, 1}, 0, stream);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind, ErrorKind::InvalidArgument);
  EXPECT_NE(status.error().message.find("stream"), std::string::npos);
  EXPECT_FALSE(session.collect(stream));
  rt::GpuSessionOptions options;
  options.tensors = {{100, 1, 0, 0}};
  EXPECT_FALSE(rt::GpuSession::open(load("onebit"), options, stream));
  for (const std::uint64_t step : {0, 1}) {
    EXPECT_TRUE(session.encode({&from, 1}, {&to, 1}, step, nullptr));
    EXPECT_TRUE(collect(session).status);
    EXPECT_FALSE(session.prepare(rt::EntryKind::Encode, step + 1, stream));
  }
}

TEST_F(GpuSessionTest, says_when_the_device_has_too_little_memory) {
  start({.memory_bytes = std::size_t{1} << 20});
  rt::GpuSessionOptions options;
  options.tensors = {{1 << 20, 1, 0, 0}};
  const auto session = rt::GpuSession::open(load("dgc"), options);
  ASSERT_FALSE(session);
  EXPECT_EQ(session.error().kind, ErrorKind::OutOfMemory);
  options.tensors = {{1000, 1, 0, 0}};
  EXPECT_TRUE(rt::GpuSession::open(load("dgc"), options));
}

// If any call of the driver fails, the session returns an error, and repeating its call gives the
// correct result.
TEST_F(GpuSessionTest, survives_every_failing_call_of_the_driver) {
  auto cpu = open_on_cpu("threshold", 1500);
  const Bytes expected = encode_on_cpu(cpu, gradient(1500), 0);
  for (std::uint64_t i = 0;; ++i) {
    auto session = open("threshold", {1500}, many_launches());
    const GpuAddress from = upload(gradient(1500));
    const GpuPayload to = payload_for(session);
    emulator::fail_call(i, rt::kGpuOutOfMemory);
    const auto status = session.encode({&from, 1}, {&to, 1}, 0, nullptr);
    if (status) {
      ASSERT_GT(i, 3u);
      break;
    }
    EXPECT_EQ(status.error().kind, ErrorKind::OutOfMemory);
    (void)session.collect(nullptr);
    ASSERT_TRUE(session.encode({&from, 1}, {&to, 1}, 0, nullptr)) << i;
    const auto bytes = static_cast<std::size_t>(collect(session).payload_bytes);
    EXPECT_EQ(download<std::uint8_t>(to.address, bytes), expected) << i;
    start();
  }
}

TEST_F(GpuSessionTest, refuses_shapes_that_cannot_be) {
  for (const rt::ListTensor shape :
       {rt::ListTensor{-1, 1}, {INT64_MAX, INT64_MAX}, {std::int64_t{1} << 32, 1}}) {
    rt::GpuSessionOptions options;
    options.tensors = {shape};
    const auto session = rt::GpuSession::open(load("onebit"), options);
    ASSERT_FALSE(session);
    EXPECT_EQ(session.error().kind, ErrorKind::InvalidArgument);
  }
}

TEST_F(GpuSessionTest, an_image_for_another_device_is_refused) {
  rt::ProgramImage image = program_for_both("onebit").gpu;
  image.target = "cuda:sm_90";
  const auto loaded = rt::GpuProgram::load(device, image);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().kind, ErrorKind::Unavailable);
}

}  // namespace
}  // namespace cinch::testing
