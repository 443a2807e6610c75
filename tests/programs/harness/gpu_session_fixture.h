// The fixture of the tests of sessions on the emulated GPU: a device, programs for it and for the
// CPU, memory.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "codegen/emulator/driver.h"
#include "runtime/gpu/session/session.h"
#include "runtime/session/session.h"
#include "tests/programs/harness/gradients.h"

namespace cinch::testing {

using rt::GpuAddress;
using rt::GpuPayload;

/// A program for both devices.
struct Both {
  std::shared_ptr<const rt::LoadedProgram> cpu;
  rt::ProgramImage gpu;
};
/// A program of the standard library, or one that only these tests have: "rounds" (a loop whose
/// rounds a parameter decides), "started" (a state that does not begin with zero), "bulky"
/// (payloads of 36000 bytes per element), "warming" (sizes and rounds that depend on the step),
/// "growing" (a size that grows with every step), "bounded" (a finish that looks its sum up in a
/// table, and fails for large values), "tied", "tied_within" and "tied_float" (rounded at random).
/// Compiled once.
const Both& program_for_both(const std::string& name);

class GpuSessionTest : public ::testing::Test {
 protected:
  // A new device; sessions and memory of the last one are gone.
  void start(const emulator::GpuOptions& options = {}) {
    memory.clear();
    device = *rt::GpuDevice::open(emulator::start_driver(options));
  }
  void SetUp() override { start(); }
  void TearDown() override { memory.clear(); }

  std::shared_ptr<const rt::GpuProgram> load(const std::string& name) {
    return *rt::GpuProgram::load(device, program_for_both(name).gpu);
  }
  rt::GpuSession open(const std::string& name, const std::vector<std::int64_t>& sizes,
                      rt::GpuSessionOptions options = {}) {
    std::uint32_t number = 0;
    for (const std::int64_t n : sizes) options.tensors.push_back({n, 1, number++, 0});
    options.seed = 11;
    auto session = rt::GpuSession::open(load(name), options);
    EXPECT_TRUE(session) << (session ? "" : session.error().message);
    return std::move(*session);
  }
  // Uses many launches, as for large tensors.
  static rt::GpuSessionOptions many_launches() {
    rt::GpuSessionOptions options;
    options.tuning = rt::GpuTuning{.one_launch_elements = 0};
    return options;
  }
  static rt::Session open_on_cpu(const std::string& name, std::int64_t n,
                                 std::uint32_t number = 0) {
    rt::SessionOptions options;
    options.rows = n;
    options.threads = 1;
    options.seed = 11;
    options.tensor = number;
    return *rt::Session::open(program_for_both(name).cpu, options);
  }

  GpuAddress allocate(std::size_t size_bytes) {
    auto made = rt::GpuMemory::allocate(device, size_bytes);
    EXPECT_TRUE(made);
    return memory.emplace_back(std::move(*made)).address();
  }
  template <typename T>
  GpuAddress upload(const std::vector<T>& values) {
    const GpuAddress at = allocate(values.size() * sizeof(T));
    write(at, values);
    return at;
  }
  template <typename T>
  void write(GpuAddress at, const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
    EXPECT_TRUE(device->write(at, {bytes, values.size() * sizeof(T)}, nullptr));
  }
  template <typename T>
  std::vector<T> download(GpuAddress from, std::size_t count) {
    std::vector<T> values(count);
    auto* bytes = reinterpret_cast<std::uint8_t*>(values.data());
    EXPECT_TRUE(device->read({bytes, count * sizeof(T)}, from, nullptr));
    return values;
  }
  GpuPayload payload_for(rt::GpuSession& session, std::size_t tensor = 0) {
    const std::int64_t bound = *session.payload_bound(tensor);
    return {allocate(static_cast<std::size_t>(bound)), bound};
  }
  static std::vector<float> gradient(std::int64_t n, std::uint64_t seed = 5) {
    return make_gradient(DataKind::Normal, n, seed);
  }
  static std::vector<std::uint8_t> encode_on_cpu(rt::Session& session,
                                                 const std::vector<float>& values,
                                                 std::uint64_t step) {
    const auto payload = session.encode(values, step);
    EXPECT_TRUE(payload);
    return {payload->begin(), payload->end()};
  }
  static std::vector<std::uint32_t> bits(const std::vector<float>& values) {
    std::vector<std::uint32_t> words;
    for (const float x : values) words.push_back(std::bit_cast<std::uint32_t>(x));
    return words;
  }
  // The outcome of the last call of the only tensor.
  rt::TensorOutcome collect(rt::GpuSession& session) {
    auto outcomes = session.collect(nullptr);
    EXPECT_TRUE(outcomes) << (outcomes ? "" : outcomes.error().message);
    return outcomes ? outcomes->at(0) : rt::TensorOutcome{};
  }

  std::shared_ptr<const rt::GpuDevice> device;
  std::vector<rt::GpuMemory> memory;
};

}  // namespace cinch::testing
