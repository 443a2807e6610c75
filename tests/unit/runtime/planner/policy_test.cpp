// Rules that decide which tensor is compressed how.
#include "runtime/planner/policy.h"

#include <gtest/gtest.h>

#include "runtime/plan/plan.h"

namespace cinch::rt {
namespace {

std::vector<PolicyTensor> tensors() {
  return {{"conv1.weight", {64, 3, 7, 7}},
          {"conv1.bias", {64}},
          {"fc.weight", {1000, 512}},
          {"fc.bias", {100000}},
          {"scale", {}}};
}

Policy parsed(const std::string& text) {
  const auto policy = parse_policy(text);
  EXPECT_TRUE(policy) << policy.error().message;
  return policy ? *policy : Policy{};
}

std::vector<std::uint32_t> codecs_of(const PolicyResult& result) {
  std::vector<std::uint32_t> codecs;
  for (const auto& sent : result.sent) codecs.push_back(sent.codec);
  return codecs;
}

TEST(Policy, UsuallyVectorsAndSmallTensorsAreExact) {
  const PolicyResult result = apply_policy(usual_policy(), tensors());
  EXPECT_EQ(codecs_of(result), (std::vector<std::uint32_t>{0, kDense, 0, kDense, kDense}));
  ASSERT_EQ(result.codecs.size(), 1u);
  EXPECT_EQ(result.codecs[0].program, "");
  EXPECT_TRUE(result.off.empty());
  const std::vector<PolicyTensor> border = {{"a", {2, kSmallElements / 2}},
                                            {"b", {3, kSmallElements / 3}}};
  EXPECT_EQ(codecs_of(apply_policy(usual_policy(), border)),
            (std::vector<std::uint32_t>{0, kDense}));
}

TEST(Policy, TheFirstRuleThatFitsDecides) {
  const Policy policy = parsed(R"({"rules": [
    {"name": "*.bias", "use": "off"},
    {"name": "conv[0-9].*", "use": "qsgd", "set": {"levels": 7}, "priority": -1},
    {"min_elements": 1000, "min_dims": 2, "max_dims": 2}]})");
  const PolicyResult result = apply_policy(policy, tensors());
  EXPECT_EQ(result.off, (std::vector<std::uint32_t>{1, 3}));
  ASSERT_EQ(result.sent.size(), 3u);
  EXPECT_EQ(result.sent[0].tensor, 2u);
  EXPECT_EQ(result.sent[1].tensor, 4u);
  EXPECT_EQ(result.sent[1].codec, kDense);
  EXPECT_EQ(result.sent[2].tensor, 0u);  // lowest priority
  EXPECT_EQ(result.codecs[result.sent[2].codec],
            (PolicyCodec{.program = "qsgd", .values = {{"levels", "7"}}}));
  EXPECT_EQ(result.codecs[result.sent[0].codec], PolicyCodec{});
}

TEST(Policy, RulesSayHowTensorsAreExchanged) {
  const Policy policy = parsed(R"({"rules": [
    {"name": "conv*", "plan": "two_shot", "piece_bytes": 65536},
    {"name": "fc.*", "use": "exact", "plan": "ring"}]})");
  EXPECT_TRUE(has_routes(policy));
  EXPECT_FALSE(has_routes(usual_policy()));
  const PolicyResult result = apply_policy(policy, tensors());
  ASSERT_EQ(result.routes.size(), 3u);
  std::vector<std::string> plans;
  for (const auto& sent : result.sent) plans.push_back(result.routes[sent.route].plan);
  EXPECT_EQ(plans, (std::vector<std::string>{"two_shot", "two_shot", "ring", "ring", ""}));
  EXPECT_EQ(result.routes[0].piece_bytes, 65536u);
  for (const char* wrong : {R"({"plan": "reduce_scatter"})", R"({"plan": 3})",
                            R"({"piece_bytes": 0})", R"({"use": "off", "plan": "ring"})"}) {
    EXPECT_FALSE(parse_policy(std::string(R"({"rules": [)") + wrong + "]}")) << wrong;
  }
}

TEST(Policy, EqualProgramsAreOneCodec) {
  const Policy policy = parsed(R"({"rules": [
    {"name": "fc*", "use": "topk", "set": {"ratio": 0.1}},
    {"name": "conv*", "use": "topk", "set": {"ratio": 0.1}},
    {"use": "topk", "set": {"ratio": 0.2}}]})");
  const PolicyResult result = apply_policy(policy, tensors());
  EXPECT_EQ(result.codecs.size(), 2u);
  EXPECT_EQ(codecs_of(result).size(), 5u);
}

TEST(Policy, WhatIsWrongIsNamed) {
  const auto error_of = [](const char* text) {
    const auto policy = parse_policy(text);
    return policy ? std::string() : policy.error().message;
  };
  EXPECT_EQ(error_of(R"({"rules": [{"use": "off", "min_elements": 1, "use": "exact"}]})"),
            R"(policy: line 1, column 46: "use" is there twice in one object)");
  EXPECT_EQ(error_of("[]"), R"(policy: {"rules": […]} expected)");
  EXPECT_EQ(error_of(R"({"rules": [], "more": 1})"), R"(policy: {"rules": […]} expected)");
  EXPECT_EQ(error_of(R"({"rules": [3]})"), "policy: rule 1: not an object");
  EXPECT_EQ(error_of(R"({"rules": [{}, {"name": 5}]})"),
            "policy: rule 2: name: 5 is of another type");
  EXPECT_EQ(error_of(R"({"rules": [{"min_dims": -1}]})"),
            "policy: rule 1: min_dims: not a whole number of at least 0");
  EXPECT_EQ(error_of(R"({"rules": [{"max_elements": 18446744073709551615}]})"),
            "policy: rule 1: max_elements: not a whole number of at least 0");
  for (const char* const priority : {"1.7", "true", "4294967296", "-99999999999"}) {
    const std::string text = std::string(R"({"rules": [{"priority": )") + priority + "}]}";
    EXPECT_EQ(error_of(text.c_str()), "policy: rule 1: priority: not a whole number of 32 bits");
  }
  EXPECT_EQ(error_of(R"({"rules": [{"use": "topk", "set": {"a": "far away"}}]})"),
            "policy: rule 1: set: 'far away' is neither a number nor a word");
  EXPECT_EQ(error_of(R"({"rules": [{"use": "exact", "set": {"a": 1}}]})"),
            "policy: rule 1: set: there is no program");
  EXPECT_NE(error_of(R"({"rules": [{"nam": "x"}]})").find("rule 1: nam: unknown; there are name"),
            std::string::npos);
  EXPECT_EQ(error_of("{\n \"rules\": ["),
            "policy: line 2, column 12: the text ends where a value is expected");
}

}  // namespace
}  // namespace cinch::rt
