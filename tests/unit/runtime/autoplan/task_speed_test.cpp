// Programs are measured at several sizes, with the lengths that their payloads have.
#include "runtime/autoplan/auto_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/unit/runtime/session/hand_program.h"

namespace cinch::rt {
namespace {

SpeedOptions options_of(std::vector<std::shared_ptr<const LoadedProgram>> programs,
                        std::uint32_t copies) {
  SpeedOptions options;
  options.session.programs = std::move(programs);
  options.session.threads = 1;
  options.copies = copies;
  options.seconds = 0;
  return options;
}

Result<CodecSpeed> measure(const std::vector<float>& gradient, std::uint32_t copies,
                           bool is_matrix = false) {
  ProgramImage image = hand_image({});
  image.info.is_matrix = is_matrix;
  auto program = LoadedProgram::load(std::move(image));
  EXPECT_TRUE(program) << program.error().message;
  const auto elems = static_cast<std::int64_t>(gradient.size());
  return measure_codec(0, {gradient.data(), kF32, elems}, elems, 1, options_of({*program}, copies));
}

// Every fourth value is large enough to be sent.
std::vector<float> sparse_gradient(std::size_t elems) {
  std::vector<float> gradient(elems);
  for (std::size_t i = 0; i < elems; i += 4) gradient[i] = 1;
  return gradient;
}

void expect_sizes(const CostCurve& curve, const std::vector<double>& sizes) {
  ASSERT_EQ(curve.samples.size(), sizes.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_EQ(curve.samples[i].size, sizes[i]);
    EXPECT_GT(curve.samples[i].seconds, 0);
  }
}

TEST(TaskSpeed, IsMeasuredAtSeveralSizes) {
  const auto speed = measure(sparse_gradient(20000), 2);
  ASSERT_TRUE(speed) << speed.error().message;
  for (const CostCurve* curve :
       {&speed->encode, &speed->decode, &speed->decode_add, &speed->finish}) {
    expect_sizes(*curve, {1024, 16384, 20000});
  }
  EXPECT_NEAR(speed->used_share, 0.25, 0.02);
}

TEST(TaskSpeed, IsThatOfTheWholeWhereTensorsAreNotCut) {
  const auto speed = measure(sparse_gradient(5000), 1, true);
  ASSERT_TRUE(speed) << speed.error().message;
  expect_sizes(speed->encode, {5000});
}

TEST(TaskSpeed, TakesAnEmptyGradient) {
  EXPECT_TRUE(measure({}, 1));
}

TEST(TaskSpeed, GivesTheErrorsOfPrograms) {
  std::vector<float> gradient = sparse_gradient(2000);
  gradient[7] = 12345;  // which the program refuses
  const auto speed = measure(gradient, 1);
  ASSERT_FALSE(speed);
  EXPECT_EQ(speed.error().kind, ErrorKind::CheckFailed);
}

TEST(TaskSpeed, OfPlainFloatsIsMeasured) {
  CostInputs inputs;
  ASSERT_TRUE(measure_dense(3000, options_of({}, 2), inputs));
  for (const CostCurve* curve : {&inputs.dense.encode, &inputs.dense.decode,
                                 &inputs.dense.decode_add, &inputs.dense.finish, &inputs.clear}) {
    ASSERT_EQ(curve->samples.size(), 2u);
    EXPECT_EQ(curve->samples[1].size, 3000);
  }
}

}  // namespace
}  // namespace cinch::rt
