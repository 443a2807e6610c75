// Programs, sessions and tensors of the C API for tests.
#pragma once
#include <cinch.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace cinch::testing {

template <typename T>
T sized() {
  T value{};
  value.struct_size = sizeof value;
  return value;
}

struct Release {
  void operator()(cinch_program* program) const { cinch_program_release(program); }
  void operator()(cinch_session* session) const { cinch_session_release(session); }
};
using Program = std::unique_ptr<cinch_program, Release>;
using Session = std::unique_ptr<cinch_session, Release>;

/// Compiles a text, or a program of the library if `text` is null; empty on failure.
inline Program compile(const char* name, const char* text = nullptr,
                       std::vector<const char*> bindings = {}, cinch_error* error = nullptr) {
  auto options = sized<cinch_compile_options>();
  options.program = name;
  options.text = text;
  options.text_size = text == nullptr ? 0 : std::strlen(text);
  options.bindings = bindings.data();
  options.num_bindings = bindings.size();
  cinch_program* program = nullptr;
  auto own = sized<cinch_error>();
  cinch_error* const told = error == nullptr ? &own : error;
  cinch_program_compile(&options, &program, told);
  EXPECT_TRUE(program != nullptr || error != nullptr) << own.message;
  return Program(program);
}

/// A described vector of floats; it points into itself, so it must not move.
class Tensor {
 public:
  explicit Tensor(std::size_t size, float scale = 1)
      : values_(size), size_(static_cast<std::int64_t>(size)) {
    for (std::size_t i = 0; i < size; ++i) {
      values_[i] = scale * static_cast<float>(static_cast<int>(i * 7919 % 1001) - 500) / 500;
    }
  }
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;

  cinch_tensor view() {
    auto tensor = sized<cinch_tensor>();
    tensor.data = values_.data();
    tensor.num_dims = 1;
    tensor.shape = &size_;
    return tensor;
  }
  std::vector<float>& values() { return values_; }

 private:
  std::vector<float> values_;
  std::int64_t size_;
};

inline Session open(const Program& program, const std::vector<cinch_tensor>& tensors,
                    const cinch_session_options* options = nullptr) {
  cinch_session* session = nullptr;
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_OK, cinch_session_open(program.get(), options, tensors.data(), tensors.size(),
                                         &session, &error))
      << error.message;
  return Session(session);
}

/// The payloads of one call, copied.
inline std::vector<std::string> encode(const Session& session, std::uint64_t step,
                                       const std::vector<cinch_tensor>& gradients) {
  std::vector<cinch_payload> payloads(gradients.size(), sized<cinch_payload>());
  auto error = sized<cinch_error>();
  EXPECT_EQ(CINCH_OK, cinch_encode(session.get(), step, nullptr, gradients.size(), gradients.data(),
                                   payloads.data(), &error))
      << error.message;
  std::vector<std::string> copies;
  for (const cinch_payload& payload : payloads) {
    copies.emplace_back(static_cast<const char*>(payload.data), payload.size);
  }
  return copies;
}

inline cinch_payload payload_of(std::string& bytes) {
  auto payload = sized<cinch_payload>();
  payload.data = bytes.data();
  payload.size = bytes.size();
  return payload;
}

inline std::string states_of(const Session& session, std::size_t tensor) {
  std::size_t size = 0;
  EXPECT_EQ(CINCH_OK, cinch_states_save(session.get(), tensor, nullptr, &size, nullptr));
  std::string bytes(size, '\0');
  EXPECT_EQ(CINCH_OK, cinch_states_save(session.get(), tensor, bytes.data(), &size, nullptr));
  return bytes;
}

/// A state that follows the inputs.
inline constexpr const char* kFed = R"(
compressor fed {
  input lr: f32 in (0, inf)
  input weights: [f32; n]
  state seen: [f32; n] = 0
  wire { value: [f32; n] }
  encode(g: [f32; n]) {
    seen += lr * weights
    wire { value: g * weights + seen }
  }
  decode(w) { w.value }
  finish(sum) { sum / world + lr * weights }
}
)";

inline constexpr const char* kKeeping = R"(
compressor keeping(limit: f32 = 1 in (0, inf)) {
  state residual: [f32; n] = 0
  wire { value: [f16; n] }
  encode(g: [f32; n]) {
    assert max(abs(g)) < 100, "magnitudes stay below 100"
    let p = g + residual
    let kept = clamp(p, -limit, limit) as f16
    residual = p - kept as f32
    wire { value: kept }
  }
  decode(w) { w.value as f32 }
}
)";

}  // namespace cinch::testing
