// Compares programs that update their states in place with the same programs compiled to write each
// new state to a second buffer. Payloads and states must have the same bits. A gradient with a NaN
// must not change any state. The tests cover all programs of the library, alone and composed with
// wrappers.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "tests/environment.h"
#include "tests/programs/harness/gradients.h"
#include "tests/programs/harness/inputs.h"
#include "tests/programs/harness/sessions.h"

namespace cinch::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

class Side {
 public:
  Side(const ProgramFile& program, codegen::StateUpdate states) {
    const auto compiled = compile(program, states);
    EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error());
    if (!compiled) return;
    num_in_place = std::ranges::count(compiled->kernels.buffers, rt::BufferRole::StateInPlace,
                                      &rt::BufferInfo::role);
    loaded_ = load(compiled->kernels);
  }

  bool open(std::int64_t num_elems) {
    rt::SessionOptions options;
    options.rows = num_elems;
    options.threads = 2;
    options.poison_memory = true;
    session_ = testing::open(loaded_, options);
    return session_ != nullptr;
  }

  Bytes encode(const std::vector<float>& gradient, std::uint64_t step) {
    EXPECT_TRUE(give_inputs(*session_));
    const auto payload = session_->encode(gradient, step);
    EXPECT_TRUE(payload) << (payload ? "" : payload.error().message);
    return payload ? Bytes(payload->begin(), payload->end()) : Bytes();
  }

  std::vector<Bytes> states() const {
    std::vector<Bytes> all;
    for (std::uint32_t s = 0; s < session_->info().states.size(); ++s) {
      const auto bytes = session_->state(s).value();
      all.emplace_back(bytes.begin(), bytes.end());
    }
    return all;
  }

  std::ptrdiff_t num_in_place = 0;

 private:
  Loaded loaded_;
  std::unique_ptr<rt::Session> session_;
};

class StatesInPlace : public ::testing::TestWithParam<ProgramFile> {};

TEST_P(StatesInPlace, HoldTheSameBits) {
  Side beside(GetParam(), codegen::StateUpdate::SecondBuffer);
  Side in_place(GetParam(), codegen::StateUpdate::InPlace);
  EXPECT_EQ(beside.num_in_place, 0);
  for (const std::int64_t num_elems : {1, 1000, 40007}) {
    ASSERT_TRUE(beside.open(num_elems) && in_place.open(num_elems));
    EXPECT_EQ(in_place.states(), beside.states()) << "initial";
    for (std::uint64_t step = 0; step < 6; ++step) {
      auto gradient =
          make_gradient(step < 4 ? DataKind::Normal : DataKind::HeavyTailed, num_elems, step);
      const bool is_finite = step % 3 != 1;
      if (!is_finite) gradient.back() = std::numeric_limits<float>::quiet_NaN();
      const auto before = in_place.states();
      EXPECT_EQ(in_place.encode(gradient, step), beside.encode(gradient, step))
          << num_elems << ", step " << step;
      EXPECT_EQ(in_place.states(), beside.states()) << num_elems << ", step " << step;
      if (!is_finite) EXPECT_EQ(in_place.states(), before) << num_elems << ", step " << step;
    }
  }
}

std::vector<ProgramFile> programs_with_states() {
  auto all = compressors_of(CINCH_STDLIB_DIR);
  for (ProgramFile& program : library_compositions()) all.push_back(std::move(program));
  return sample_of(std::move(all));
}

INSTANTIATE_TEST_SUITE_P(Library, StatesInPlace, ::testing::ValuesIn(programs_with_states()),
                         [](const auto& info) { return info.param.name; });

ProgramFile library_program(const std::string& name) {
  auto all = compressors_of(CINCH_STDLIB_DIR);
  const auto found = std::ranges::find(all, name, &ProgramFile::name);
  EXPECT_NE(found, all.end()) << name;
  return *found;
}

TEST(StatesInPlaceWhere, ElementsAreReadBeforeTheyAreWritten) {
  for (const char* name : {"tbq", "ef_sign"}) {
    EXPECT_EQ(Side(library_program(name), codegen::StateUpdate::InPlace).num_in_place, 1) << name;
  }
}

}  // namespace
}  // namespace cinch::testing
