// Plan files and speeds survive their texts, and what is wrong is told with its place.
#include "runtime/planner/plan_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "runtime/planner/exchange_options.h"
#include "runtime/planner/speeds.h"

namespace cinch::rt {
namespace {

using nlohmann::json;

PlanFile sample() {
  PlanFile file;
  file.world = 4;
  file.ranks_per_machine = 2;
  file.programs = {{"topk(ratio: 0.1)", {1, UINT64_MAX}}, {"onebit", {2, 3}}};
  file.routes = {{"two_shot", 4096}, {"allgather", 1 << 20, LengthPolicy::Exchanged}};
  file.routes[1].device = OptionDevice::Cpu;
  file.routes[0].option = all_exchange_options({.has_cpu = false})[3];
  file.tensors = {{"a", 10, 20, 1, 0}, {"b", 7, 1, kDense, 1}, {"c", 100, 1, 0, 1}};
  file.profile = "00ff";
  file.predicted_seconds = 0.25;
  return file;
}

// The request that the file is for.
PlanRequest fitting() {
  PlanRequest request;
  request.world = 4;
  request.ranks_per_machine = 2;
  const auto bound = [](std::int64_t rows, std::int64_t cols) -> Result<std::uint64_t> {
    return static_cast<std::uint64_t>(rows * cols);
  };
  request.codecs = {{"onebit", true, false, true, bound}, {"topk", true, false, true, bound}};
  request.codecs[0].fingerprint = {2, 3};
  request.codecs[1].fingerprint = {1, UINT64_MAX};
  request.tensors = {{"c", 100, 1, 1}, {"a", 10, 20, 0}, {"b", 7, 1, kDense}};
  return request;
}

template <typename Found>
std::string message_of(const Found& found) {
  return found ? std::string() : found.error().message;
}

TEST(PlanFile, SurvivesItsText) {
  const std::string text = plan_file_to_json(sample());
  const auto read = plan_file_from_json(text);
  ASSERT_TRUE(read) << message_of(read);
  EXPECT_EQ(read->tensors, sample().tensors);
  EXPECT_EQ(read->programs, sample().programs);
  EXPECT_EQ(read->routes[1].lengths, LengthPolicy::Exchanged);
  EXPECT_EQ(read->routes[0].device, OptionDevice::Gpu);
  EXPECT_EQ(read->routes[0].option, sample().routes[0].option);
  EXPECT_EQ(read->routes[1].device, OptionDevice::Cpu);
  EXPECT_EQ(read->profile, "00ff");
  EXPECT_EQ(plan_file_to_json(*read), text);
}

TEST(PlanFile, RoutesTensorsByName) {
  const auto followed = with_plan_file(fitting(), sample());
  ASSERT_TRUE(followed) << message_of(followed);
  EXPECT_EQ(followed->route_of, (std::vector<std::uint32_t>{1, 0, 1}));
  const auto plan = build_plan(*followed);
  ASSERT_TRUE(plan) << message_of(plan);
  EXPECT_EQ(plan->name, "routes");
  // A matrix may be given as one column to a program for vectors.
  PlanRequest column = fitting();
  column.tensors[1].rows = 200;
  column.tensors[1].cols = 1;
  EXPECT_TRUE(with_plan_file(column, sample()));
}

TEST(PlanFile, TellsTheFirstThreeDifferences) {
  PlanRequest request = fitting();
  request.world = 8;
  request.tensors[0].rows = 99;
  request.tensors[1].codec = kDense;
  request.tensors[2].name = "d";
  EXPECT_EQ(message_of(with_plan_file(request, sample())),
            "the plan is for something else (5 differences): 8 ranks, not 4; c is 99 x 1, not 100 "
            "x 1; a is sent as f32, not onebit");
  request = fitting();
  request.ranks_per_machine = 4;
  EXPECT_EQ(message_of(with_plan_file(request, sample())),
            "the plan is for something else (1 difference): 4 ranks on each machine, not 2");
  request = fitting();
  request.codecs[0].fingerprint = {2, 4};
  EXPECT_EQ(message_of(with_plan_file(request, sample())),
            "the plan is for something else (1 difference): a has another program than onebit, or "
            "another version of it");
  request = fitting();
  request.tensors.pop_back();
  EXPECT_EQ(message_of(with_plan_file(request, sample())),
            "the plan is for something else (1 difference): there is no tensor b");
  request = fitting();
  request.tensors[1] = {"a", 20, 10, 0};
  EXPECT_EQ(message_of(with_plan_file(request, sample())),
            "the plan is for something else (1 difference): a is 20 x 10, not 10 x 20");
}

TEST(PlanFile, RefusesDamage) {
  const std::string text = plan_file_to_json(sample());
  for (std::size_t size = 0; size + 2 < text.size(); ++size) {
    EXPECT_FALSE(plan_file_from_json(std::string_view(text).substr(0, size))) << size;
  }
  const auto edited = [&](const char* pointer, const json& value) {
    json tree = json::parse(text);
    tree[json::json_pointer(pointer)] = value;
    return message_of(plan_file_from_json(tree.dump()));
  };
  EXPECT_EQ(edited("/format", 2), "cinch plan of format 2, not 1");
  EXPECT_EQ(edited("/file", "cinch network"), "plan: file: is not \"cinch plan\"");
  EXPECT_EQ(edited("/ranks", 0), "plan: has no ranks");
  EXPECT_EQ(edited("/tensors/1/route", 2), "plan: tensors[1].route: is more than 1: 2");
  EXPECT_EQ(edited("/tensors/0/program", 2), "plan: tensors[0].program: is more than 1: 2");
  EXPECT_EQ(edited("/tensors/1/name", "a"), "plan: tensors[1]: is there twice");
  EXPECT_EQ(edited("/tensors/0/rows", -1),
            "plan: tensors[0].rows: is not a whole number of at least 0: -1");
  EXPECT_EQ(edited("/tensors/0/rows", UINT64_C(1) << 31),
            "plan: tensors[0]: has 2^32 elements or more");
  EXPECT_EQ(edited("/routes/0/plan", "rung"), "plan: routes[0].plan: is no plan: \"rung\"");
  EXPECT_EQ(edited("/routes/0/plan", "reduce_scatter"),
            "plan: routes[0].plan: is no plan: \"reduce_scatter\"");
  EXPECT_EQ(edited("/routes/0/piece_bytes", 3),
            "plan: routes[0].piece_bytes: has less than an element");
  EXPECT_EQ(edited("/routes/0/piece_bytes", UINT64_MAX),
            "plan: routes[0].piece_bytes: is more than 1099511627776: 18446744073709551615");
  EXPECT_EQ(edited("/routes/1/lengths", "short"),
            "plan: routes[1].lengths: is not auto, padded or exchanged");
  EXPECT_EQ(edited("/routes/1/device", "gpu"), "plan: routes[1].device: is not cpus: \"gpu\"");
  EXPECT_EQ(edited("/routes/0/option", "all_reduce"),
            "plan: routes[0].option: is no way to exchange a tensor: \"all_reduce\"");
  EXPECT_EQ(edited("/routes/1/devicex", "cpus"), "plan: routes[1].devicex: is not known");
  const auto all = all_exchange_options();
  const auto copies = std::ranges::find_if(all, compresses_copies);
  EXPECT_EQ(edited("/routes/0/option", describe_option(*copies)),
            "plan: routes[0].option: lets several ranks compress the same values, each in its own "
            "way");
  EXPECT_EQ(edited("/programs/0/fingerprint", "xyz"),
            "plan: programs[0].fingerprint: is not 32 hexadecimal digits");
  EXPECT_EQ(edited("/tensors", 5), "plan: tensors: is not a list");
  EXPECT_TRUE(is_plan_file("plan.json") && is_plan_file("a/plan"));
  EXPECT_FALSE(is_plan_file("two_shot") || is_plan_file("auto"));
}

SpeedTable speeds() {
  SpeedTable table;
  table.device = "cpu";
  table.threads = 2;
  table.cores = 8;
  table.dense.encode.samples = {{1, 1e-6}, {1e6, 1e-3}};
  table.clear.samples = {{100, 1e-7}};
  CodecSpeed speed = table.dense;
  speed.used_share = 0.5;
  speed.parts = {table.clear};
  table.programs = {{"onebit", false, {4, 5}, speed}, {"dgc", true, {6, 7}, speed}};
  return table;
}

TEST(Speeds, SurviveTheirText) {
  SpeedTable beside = speeds();
  beside.cpus = CpuSpeeds{{}, beside.dense, beside.clear, beside.clear, beside.clear, 3};
  beside.programs[1].on_cpus = beside.dense;
  for (const SpeedTable& table : {speeds(), beside}) {
    const std::string written = speeds_to_json(table);
    const auto again = speeds_from_json(written);
    ASSERT_TRUE(again) << message_of(again);
    EXPECT_EQ(speeds_to_json(*again), written);
  }
  const auto read = speeds_from_json(speeds_to_json(speeds()));
  ASSERT_TRUE(read);
  ASSERT_NE(read->find("dgc", true), nullptr);
  EXPECT_EQ(read->find("dgc", false), nullptr);
  EXPECT_EQ(read->find("onebit", false)->speed.used_share, 0.5);
}

TEST(Speeds, RefuseDamage) {
  const std::string text = speeds_to_json(speeds());
  for (std::size_t size = 0; size + 2 < text.size(); size += 3) {
    EXPECT_FALSE(speeds_from_json(std::string_view(text).substr(0, size))) << size;
  }
  const auto edited = [&](const char* pointer, const json& value) {
    json tree = json::parse(text);
    tree[json::json_pointer(pointer)] = value;
    return message_of(speeds_from_json(tree.dump()));
  };
  EXPECT_EQ(edited("/file", "x"), "speeds: file: is not \"cinch speeds\"");
  EXPECT_EQ(edited("/threads", 0), "speeds: a machine has threads and cores");
  EXPECT_EQ(edited("/clear", json::array({{2, 1}, {2, 1}})),
            "speeds: clear: has no sizes that grow");
  EXPECT_EQ(edited("/f32/encode/0/1", -1),
            "speeds: f32.encode[0][1]: is not a number from 0 to 1000000: -1");
  EXPECT_EQ(edited("/programs/0/used_share", 1.5),
            "speeds: programs[0].used_share: is more than all of a payload");
  EXPECT_EQ(edited("/programs/1/encode", json::array()), "");
  EXPECT_EQ(edited("/f32/encode", json::array()), "speeds: f32: has no times");
  EXPECT_EQ(edited("/programs/0/encode/0", 3), "speeds: programs[0].encode[0]: is not a list");
}

}  // namespace
}  // namespace cinch::rt
