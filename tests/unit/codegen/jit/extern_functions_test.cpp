// C++ functions through their headers: results equal those of this test's compiler for the same
// header, and cases that C++ leaves undefined have one meaning.
#include "codegen/jit/library.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>

#include "runtime/core/hash.h"
#include "tests/programs/cpp_functions.h"

namespace cinch::codegen {
namespace {

using rt::ExternOutcome;
using ::testing::HasSubstr;
using Words = std::vector<std::uint64_t>;

rt::ExternReply read(const std::string& header, const std::string& name, std::vector<DType> params,
                     DType result) {
  HeaderReader reader({});
  auto reply = reader.read({header, "", name, std::move(params), result});
  EXPECT_TRUE(reply);
  return reply ? std::move(*reply) : rt::ExternReply{};
}

rt::ExternInfo found(const std::string& header, const std::string& name,
                     const std::vector<DType>& params, DType result) {
  rt::ExternReply reply = read(header, name, params, result);
  EXPECT_EQ(reply.outcome, ExternOutcome::Found) << reply.message;
  const Hash128 digest = hash128(reply.source);
  return {name, params, result, reply.work, reply.source, {digest.low, digest.high}};
}

std::uint64_t word(float x) {
  return std::bit_cast<std::uint32_t>(x);
}
std::uint64_t word(double x) {
  return std::bit_cast<std::uint64_t>(x);
}
template <class T>
  requires std::is_integral_v<T>
std::uint64_t word(T x) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
}

// Numbers of all sizes, few of them whole.
std::vector<float> floats() {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  std::vector<float> made = {0, -0.0f, 1, -1, 0.5f, 1e-30f, -3e4f, 2.5f};
  for (int i = 0; i < 2000; ++i) made.push_back(std::ldexp(normal(random), i % 13 - 6));
  return made;
}

template <class T>
Words words(const std::vector<T>& values) {
  Words made;
  for (const T x : values) made.push_back(word(x));
  return made;
}

// The function's results for one list of arguments, compared with those of `native`.
template <class Native>
void expect_same(const rt::ExternInfo& function, const std::vector<float>& inputs,
                 const Native& native) {
  const std::vector<Words> operands = {words(inputs)};
  const auto results = call_extern(function, operands, inputs.size());
  ASSERT_TRUE(results) << results.error().message;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_EQ((*results)[i], word(native(inputs[i]))) << function.name << " of " << inputs[i];
  }
}

const char* const kHeader = CINCH_CPP_FUNCTIONS;

TEST(ExternFunctions, ComputeWhatCppDoes) {
  namespace cpp = cpp_functions;
  const std::vector<float> inputs = floats();
  expect_same(found(kHeader, "twice_scaled", {kF32}, kF32), inputs,
              [](float x) { return cpp::twice_scaled(x); });
  expect_same(found(kHeader, "bits", {kF32}, kU32), inputs, cpp::bits);
  std::vector<float> small;
  for (const float x : inputs) {
    if (std::abs(x) < 4) small.push_back(x);
  }
  expect_same(found(kHeader, "halvings", {kF32}, kI32), small, cpp::halvings);
}

TEST(ExternFunctions, TakeSeveralArguments) {
  namespace cpp = cpp_functions;
  const rt::ExternInfo chosen = found(kHeader, "chosen", {kU8, kF32}, kF32);
  const rt::ExternInfo pairs = found(kHeader, "through_struct", {kF32, kF32}, kF32);
  const rt::ExternInfo between = found(kHeader, "is_between", {kF32, kF32, kF32}, kBool);
  const std::vector<float> xs = floats();
  std::vector<float> ys(xs.rbegin(), xs.rend());
  std::vector<std::uint8_t> which;
  which.reserve(xs.size());
  for (std::size_t i = 0; i < xs.size(); ++i) which.push_back(static_cast<std::uint8_t>(i));
  const auto of_chosen =
      call_extern(chosen, std::vector<Words>{words(which), words(xs)}, xs.size());
  const auto of_pairs = call_extern(pairs, std::vector<Words>{words(xs), words(ys)}, xs.size());
  const auto of_between =
      call_extern(between, std::vector<Words>{words(xs), words(ys), words(xs)}, xs.size());
  ASSERT_TRUE(of_chosen && of_pairs && of_between);
  for (std::size_t i = 0; i < xs.size(); ++i) {
    EXPECT_EQ((*of_chosen)[i], word(cpp::chosen(which[i], xs[i]))) << xs[i];
    EXPECT_EQ((*of_pairs)[i], word(cpp::through_struct(xs[i], ys[i]))) << xs[i] << ", " << ys[i];
    EXPECT_EQ((*of_between)[i], word(cpp::is_between(xs[i], ys[i], xs[i]))) << xs[i];
  }
}

// Every index means an element of the table, whatever a number converts to.
TEST(ExternFunctions, StayInTheirTables) {
  const rt::ExternInfo square = found(kHeader, "square", {kF32}, kU16);
  const std::vector<float> inputs = {-1e30f, -1,    0,        0.125f, 7.875f,
                                     8,      1e30f, INFINITY, NAN,    -INFINITY};
  const auto results = call_extern(square, std::vector<Words>{words(inputs)}, inputs.size());
  ASSERT_TRUE(results);
  const std::uint64_t last = cpp_functions::kSquares[63];
  EXPECT_EQ(*results, (Words{0, 0, 0, 17, last, last, last, last, 0, 0}));
}

TEST(ExternFunctions, MeanOneThingWhereCppIsUndefined) {
  std::ofstream header(::testing::TempDir() + "undefined.h");
  header << "inline int sum(int a, int b) { return a + b; }\n"
            "inline int quotient(int a, int b) { return a / b; }\n"
            "inline int left(int a, int b) { return a << b; }\n"
            "inline unsigned char small(float x) { return x; }\n"
            "inline int unset(int a, int b) { int c; if (a > b) c = 1; return c; }\n"
            "inline int falls(int a, int b) { if (a > b) return 1; }\n"
            "[[clang::annotate(\"cinch::at_most\", 5)]] inline int spins(int a, int b) {\n"
            "  while (true) a += b;\n"
            "  return a;\n"
            "}\n";
  header.close();
  const std::string path = ::testing::TempDir() + "undefined.h";
  const auto of = [&](const std::string& name, std::int32_t a, std::int32_t b) {
    const auto results = call_extern(found(path, name, {kI32, kI32}, kI32),
                                     std::vector<Words>{Words{word(a)}, Words{word(b)}}, 1);
    return results ? static_cast<std::int64_t>(results->front()) : -1234567;
  };
  EXPECT_EQ(of("sum", INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(of("quotient", 7, 0), 0);
  EXPECT_EQ(of("quotient", INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(of("left", 3, 33), 6);
  EXPECT_EQ(of("unset", 0, 1), 0);
  EXPECT_EQ(of("falls", 0, 1), 0);
  EXPECT_EQ(of("spins", 1, 2), 11);
  const auto small =
      call_extern(found(path, "small", {kF32}, kU8),
                  std::vector<Words>{words(std::vector<float>{-3, 300, NAN, 7.9f})}, 4);
  EXPECT_EQ(*small, (Words{0, 255, 0, 7}));
  std::filesystem::remove(path);
}

// Blanks, comments and names of a header are not what a function is.
TEST(ExternFunctions, AreTheSameTextForTheSameFunction) {
  const std::string path = ::testing::TempDir() + "same.h";
  std::ofstream(path) << "inline float f(float x) { return x * 2; }\n";
  const rt::ExternInfo first = found(path, "f", {kF32}, kF32);
  std::ofstream(path) << "/* twice */ namespace n {\n inline float f(float y)\n"
                         "{ return (y * 2.0f); } }\n";
  EXPECT_EQ(found(path, "f", {kF32}, kF32).source, first.source);
  std::ofstream(path) << "inline float f(float x) { return x * 3; }\n";
  EXPECT_NE(found(path, "f", {kF32}, kF32).source, first.source);
  std::filesystem::remove(path);
}

TEST(ExternFunctions, NoticeHeadersThatChange) {
  const std::string path = ::testing::TempDir() + "changing.h";
  std::ofstream(path) << "inline float f(float x) { return x; }\n";
  const rt::ExternReply reply = read(path, "f", {kF32}, kF32);
  ASSERT_EQ(reply.outcome, ExternOutcome::Found);
  EXPECT_EQ(changed_file(reply.files), "");
  std::ofstream(path) << "inline float f(float x) { return -x; }\n";
  EXPECT_EQ(changed_file(reply.files), path);
  std::filesystem::remove(path);
  EXPECT_EQ(changed_file(reply.files), path);
}

// A reader keeps what it has read; changed files are read again.
TEST(ExternFunctions, ReadAgainWhatChanged) {
  const std::string path = ::testing::TempDir() + "again.h";
  HeaderReader reader({});
  std::ofstream(path) << "inline float f(float x) { return x; }\n";
  const auto first = reader.read({path, "", "f", {kF32}, kF32});
  std::ofstream(path) << "inline float f(float x) { return -x; }\n";
  const auto second = reader.read({path, "", "f", {kF32}, kF32});
  ASSERT_TRUE(first && second);
  EXPECT_EQ(second->outcome, ExternOutcome::Found);
  EXPECT_NE(first->source, second->source);
  std::filesystem::remove(path);
}

TEST(ExternFunctions, AreRefusedWhereTheyGoTooDeep) {
  const std::string path = ::testing::TempDir() + "deep.h";
  std::string sum = "x";
  for (int i = 0; i < 5000; ++i) sum += " + x";
  std::string calls = "inline float f0(float x) { return x; }\n";
  for (int i = 1; i < 300; ++i) {
    calls += fmt::format("inline float f{}(float x) {{ return f{}(x); }}\n", i, i - 1);
  }
  std::ofstream(path) << "inline float wide(float x) { return " << sum << "; }\n" << calls;
  for (const char* name : {"wide", "f299"}) {
    const rt::ExternReply reply = read(path, name, {kF32}, kF32);
    EXPECT_EQ(reply.outcome, ExternOutcome::Refused) << name;
    EXPECT_THAT(reply.message, HasSubstr("nested too deeply"));
  }
  std::filesystem::remove(path);
}

// The text doubles with each function, as calls are inlined.
TEST(ExternFunctions, AreRefusedWhereTheyComputeTooMuch) {
  const std::string path = ::testing::TempDir() + "much.h";
  std::string calls = "inline float f0(float x) { return x + 1; }\n";
  for (int i = 1; i < 40; ++i) {
    calls += fmt::format("inline float f{0}(float x) {{ return f{1}(x) + f{1}(x); }}\n", i, i - 1);
  }
  std::ofstream(path) << calls;
  const rt::ExternReply reply = read(path, "f39", {kF32}, kF32);
  EXPECT_EQ(reply.outcome, ExternOutcome::Refused);
  EXPECT_THAT(reply.message, HasSubstr("operations, with all that it calls"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cinch::codegen
