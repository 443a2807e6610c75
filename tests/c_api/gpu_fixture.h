// Sessions of the C API on the emulated GPU, whose driver replaces NVIDIA's: what their tests
// share.
#pragma once
#include <gmock/gmock.h>

#include <algorithm>

#include "codegen/emulator/driver.h"
#include "runtime/gpu/device.h"
#include "support.h"

namespace cinch::c_api {
extern const rt::GpuDriver* emulated;  // null: a machine without a driver
}  // namespace cinch::c_api

namespace cinch::testing {

using Floats = std::vector<float>;

inline Program compile_for_gpu(const char* name, const char* text = nullptr,
                               cinch_error* error = nullptr) {
  auto options = sized<cinch_compile_options>();
  options.program = name;
  options.text = text;
  options.text_size = text == nullptr ? 0 : std::strlen(text);
  options.device = CINCH_CUDA;
  cinch_program* program = nullptr;
  auto own = sized<cinch_error>();
  cinch_program_compile(&options, &program, error == nullptr ? &own : error);
  EXPECT_TRUE(program != nullptr || error != nullptr) << own.message;
  return Program(program);
}

// Compiled once, since this takes longer than the tests.
inline const Program& keeping() {
  static Program program = compile_for_gpu("keeping.cinch", kKeeping);
  return program;
}

class CApiGpu : public ::testing::Test {
 protected:
  void SetUp() override {
    c_api::emulated = &emulator::start_driver();
    device = *rt::GpuDevice::open(*c_api::emulated);
  }
  void TearDown() override { memory.clear(); }

  void* allocate(std::size_t size_bytes) {
    auto made = rt::GpuMemory::allocate(device, std::max<std::size_t>(size_bytes, 16));
    EXPECT_TRUE(made);
    // Callers have pointers of the device. NOLINTNEXTLINE(performance-no-int-to-ptr)
    return reinterpret_cast<void*>(memory.emplace_back(std::move(*made)).address());
  }
  void write(void* to, const void* from, std::size_t size_bytes) {
    const std::span bytes(static_cast<const std::uint8_t*>(from), size_bytes);
    EXPECT_TRUE(device->write(reinterpret_cast<rt::GpuAddress>(to), bytes, nullptr));
  }
  std::string read(const void* from, std::size_t size_bytes) {
    std::string bytes(size_bytes, '\0');
    const std::span to(reinterpret_cast<std::uint8_t*>(bytes.data()), size_bytes);
    EXPECT_TRUE(device->read(to, reinterpret_cast<rt::GpuAddress>(from), nullptr));
    return bytes;
  }
  // The values of a tensor on the device; the shape stays that of the tensor.
  cinch_tensor on_gpu(Tensor& tensor) {
    cinch_tensor view = tensor.view();
    const std::size_t size_bytes = tensor.values().size() * sizeof(float);
    view.data = allocate(size_bytes);
    view.device = CINCH_CUDA;
    write(view.data, tensor.values().data(), size_bytes);
    return view;
  }
  Floats values_of(const cinch_tensor& tensor) {
    const auto n = static_cast<std::size_t>(*tensor.shape);
    const std::string bytes = read(tensor.data, n * sizeof(float));
    Floats values(n);
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // Memory for payloads of a session.
  std::vector<cinch_payload> rooms(const Session& session) {
    std::vector<std::size_t> bounds(cinch_session_num_tensors(session.get()));
    EXPECT_EQ(CINCH_OK, cinch_payload_bounds(session.get(), 0, nullptr, bounds.size(),
                                             bounds.data(), nullptr));
    std::vector<cinch_payload> payloads;
    for (const std::size_t bound : bounds) {
      auto payload = sized<cinch_payload>();
      payload.data = allocate(bound);
      payload.capacity = payload.size = bound;
      payloads.push_back(payload);
    }
    return payloads;
  }
  static std::vector<cinch_outcome> collect(const Session& session, void* stream = nullptr) {
    std::vector<cinch_outcome> outcomes(cinch_session_num_tensors(session.get()),
                                        sized<cinch_outcome>());
    EXPECT_EQ(CINCH_OK,
              cinch_collect(session.get(), stream, outcomes.data(), outcomes.size(), nullptr));
    return outcomes;
  }
  // The payloads that a call left on the device, with sizes from outcomes.
  std::vector<std::string> payloads_of(const Session& session,
                                       const std::vector<cinch_payload>& payloads) {
    const auto outcomes = collect(session);
    std::vector<std::string> bytes;
    for (std::size_t i = 0; i < payloads.size(); ++i) {
      EXPECT_EQ(CINCH_OK, outcomes[i].status) << outcomes[i].message;
      bytes.push_back(read(payloads[i].data, outcomes[i].payload_size));
    }
    return bytes;
  }
  cinch_status encode_on_gpu(const Session& session, std::uint64_t step,
                             const std::vector<cinch_tensor>& gradients,
                             std::vector<cinch_payload>& payloads, cinch_error* error = nullptr) {
    return cinch_encode(session.get(), step, nullptr, gradients.size(), gradients.data(),
                        payloads.data(), error);
  }

  std::shared_ptr<rt::GpuDevice> device;
  std::vector<rt::GpuMemory> memory;
};

}  // namespace cinch::testing
