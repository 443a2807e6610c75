// Runs a program on one small gradient and reads its payload field by field. Tests compare the
// fields with known values.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/call/parameters.h"
#include "runtime/call/payload_assembly.h"
#include "runtime/payload/payload.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/sessions.h"

namespace cinch::testing {

/// Pairs of a parameter's name and its value.
using Bindings = std::vector<std::pair<std::string, double>>;

// Reads `num` ascending indices below `below` from the bytes of an `ascending` field. It follows
// docs/payload.md bit by bit and shares no code with the runtime. It returns no indices if the
// field is too short.
inline std::vector<int> rice_indices(std::span<const std::uint8_t> bytes, std::size_t num,
                                     std::size_t below) {
  const auto bit_at = [&](std::size_t bit) { return bytes[bit / 8] >> bit % 8 & 1; };
  const std::size_t mean = std::max<std::size_t>(below / std::max<std::size_t>(num, 1), 1);
  const auto width = static_cast<std::size_t>(std::bit_width(mean)) - 1;
  std::vector<int> indices(num);
  std::size_t bit = 0, index = 0;
  for (int& gap : indices) {
    for (; bit < 8 * bytes.size() && bit_at(bit) == 0; ++bit) gap += 1 << width;
    ++bit;
  }
  if (bit + num * width > 8 * bytes.size()) return {};
  for (int& gap : indices) {
    for (std::size_t i = 0; i < width; ++i) gap += bit_at(bit++) << i;
    index += static_cast<std::size_t>(gap);
    gap = static_cast<int>(index++);
  }
  return indices;
}

inline const std::vector<float> kV = {1,       -2,     0.5f,    -0.25f, 3,        0,
                                      -0.125f, 2.5f,   -1.5f,   0.75f,  -0.0625f, 4,
                                      -3.5f,   0.375f, -0.875f, 0.1875f};

// Replaces the built-in `stochastic_round` by one whose random number is always 1/2. It rounds away
// from zero if the fraction exceeds 1/2, and toward zero otherwise.
inline constexpr const char* kHalfRounding = R"(
fn stochastic_round(x: [f32; m]) -> [f32; m] {
  let low = floor(abs(x))
  sign(x) * (low + select(abs(x) - low > 0.5, 1.0, 0.0))
}
)";

inline std::string library_text(const std::string& path) {
  return library_program(path).text;
}

// Holds a session of a program and its last payload. Its methods decode the payload or return
// single fields. The gradient is kV unless the test passes another one.
class Golden {
 public:
  Golden(const std::string& name, const std::string& text,
         std::vector<std::pair<std::string, double>> bindings = {},
         std::size_t num_elems = kV.size()) {
    auto program = make_program(name, text);
    program->bindings = std::move(bindings);
    session_ = open(load(*program), num_elems);
  }

  // Encodes the gradient, keeps the payload and computes its layout. The layout is needed because
  // the place of a field depends on the sizes of the fields before it.
  void encode(std::uint64_t step = 0, const std::vector<float>& gradient = kV) {
    ASSERT_NE(session_, nullptr);
    const auto payload = session_->encode(gradient, step);
    ASSERT_TRUE(payload) << payload.error().message;
    payload_.assign(payload->begin(), payload->end());
    const rt::ProgramInfo& info = session_->info();
    HostEnv env;
    env.n = env.rows = static_cast<std::int64_t>(gradient.size());
    env.step = static_cast<std::int64_t>(step);
    const rt::ParameterValues parameters(info);
    env.params = parameters.host_values();
    std::vector<std::uint32_t> counts(info.wire.counts.size());
    if (!counts.empty()) std::memcpy(counts.data(), payload_.data() + 64, 4 * counts.size());
    const auto layout = rt::payload_layout(info, env, counts);
    ASSERT_TRUE(layout);
    layout_ = *layout;
  }

  rt::Session& session() { return *session_; }
  const std::vector<std::uint8_t>& payload() const { return payload_; }
  std::vector<std::uint8_t> bytes(std::size_t field) const {
    if (field >= layout_.fields.size()) return {};
    const rt::FieldPlace& place = layout_.fields[field];
    return {payload_.begin() + place.offset, payload_.begin() + place.offset + place.size_bytes};
  }
  std::vector<float> floats(std::size_t field) const { return values_of<float>(bytes(field)); }
  // Unpacks a field of integers of any width. Signed types are sign-extended.
  std::vector<int> integers(std::size_t field) const {
    if (field >= layout_.fields.size()) return {};
    const DType dtype = session_->info().wire.fields[field].type.dtype;
    std::vector<int> values;
    for (std::uint64_t raw :
         rt::unpack_elements(dtype, bytes(field), layout_.fields[field].num_elems)) {
      const int shift = is_signed_int(dtype) ? 64 - dtype.bits : 0;
      values.push_back(static_cast<int>(static_cast<std::int64_t>(raw << shift) >> shift));
    }
    return values;
  }
  // Reads the indices of an `ascending` field. Field `like` has as many elements as there are
  // indices.
  std::vector<int> indices(std::size_t field, std::size_t like) const {
    if (std::max(field, like) >= layout_.fields.size()) return {};
    const auto num = static_cast<std::size_t>(layout_.fields[like].num_elems);
    return rice_indices(bytes(field), num, session_->num_elems());
  }
  std::vector<float> decoded(std::uint64_t step = 0) {
    std::vector<float> out(session_->num_elems());
    const auto status = session_->decode(payload_, out, step);
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    return out;
  }
  // Returns the update that `finish` computes from a sum of decoded payloads.
  std::vector<float> finished(const std::vector<float>& sum, std::uint64_t step = 0) {
    std::vector<float> update(sum.size());
    const auto status = session_->finish(sum, update, step);
    EXPECT_TRUE(status) << (status ? "" : status.error().message);
    return update;
  }
  std::vector<float> state(std::uint32_t index) const {
    return values_of<float>(session_->state(index).value());
  }

 private:
  std::unique_ptr<rt::Session> session_;
  std::vector<std::uint8_t> payload_;
  rt::PayloadLayout layout_;
};

}  // namespace cinch::testing
