// Tables of tuning numbers: which are read, which are rejected, and which numbers are used for an
// architecture.
#include "runtime/tuning/tuning.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace cinch::rt {
namespace {

TuningTable parse(const std::string& text, const TuningTable& base = builtin_tuning()) {
  auto table = parse_tuning(text, base);
  EXPECT_TRUE(table) << (table ? "" : table.error().message);
  return table ? std::move(*table) : TuningTable{};
}

std::string table_of(const std::string& architecture, const std::string& numbers,
                     const std::string& measured = "null") {
  return R"({"format": 1, "entries": [{"architecture": ")" + architecture + R"(", "numbers": )" +
         numbers + R"(, "measured": )" + measured + "}]}";
}

TEST(TuningTest, the_built_in_table_has_every_architecture_and_tells_who_measured) {
  const TuningTable& table = builtin_tuning();
  for (const char* name : {"x86-64", "x86-64-v3", "x86-64-v4", "aarch64", "sm_75", "sm_80", "sm_86",
                           "sm_89", "sm_90", "sm_100", "sm_120", "emulated"}) {
    const TuningEntry* entry = table.find(name);
    ASSERT_NE(entry, nullptr) << name;
    EXPECT_EQ(entry->architecture.starts_with("sm_") || entry->architecture == "emulated",
              std::holds_alternative<GpuTuning>(entry->numbers));
    // An entry without a measurement has the default numbers.
    if (entry->measured) {
      EXPECT_FALSE(entry->measured->machine.empty());
      EXPECT_EQ(entry->measured->date.size(), 10u);
      EXPECT_TRUE(entry->measured->benchmark.starts_with("cinch tune"));
    } else if (const auto* cpu = std::get_if<CpuTuning>(&entry->numbers)) {
      EXPECT_EQ(*cpu, CpuTuning{}) << name;
    } else {
      EXPECT_EQ(std::get<GpuTuning>(entry->numbers), GpuTuning{}) << name;
    }
  }
}

TEST(TuningTest, a_table_is_read_as_it_was_printed) {
  TuningTable table;
  table.put(
      {"x86-64-v4", CpuTuning{1, 2, 3}, TuningMeasured{"a \"machine\"\n", "2026-01-02", "b"}});
  table.put({"sm_90", GpuTuning{16, 4, 5, 6}, std::nullopt});
  const TuningTable read = parse(print_tuning(table));
  ASSERT_EQ(read.entries.size(), 2u);
  EXPECT_EQ(std::get<CpuTuning>(read.entries[0].numbers), (CpuTuning{1, 2, 3}));
  EXPECT_EQ(read.entries[0].measured->machine, "a \"machine\"\n");
  EXPECT_EQ(std::get<GpuTuning>(read.entries[1].numbers), (GpuTuning{16, 4, 5, 6}));
  EXPECT_FALSE(read.entries[1].measured);
}

TEST(TuningTest, numbers_left_out_are_those_of_the_base) {
  TuningTable base;
  base.put({"x86-64", CpuTuning{7, 8, 9}, std::nullopt});
  const TuningTable read = parse(table_of("x86-64", R"({"tasks_per_thread": 3})"), base);
  EXPECT_EQ(std::get<CpuTuning>(read.entries[0].numbers), (CpuTuning{7, 3, 9}));
}

TEST(TuningTest, every_number_can_be_its_least_and_most_and_its_candidates_fit) {
  const auto check = []<typename Tuning>(const char* architecture, Tuning numbers) {
    for (const TuningNumber<Tuning>& number : tuning_numbers<Tuning>()) {
      std::vector<std::int64_t> values(number.candidates.begin(), number.candidates.end());
      values.insert(values.end(), {number.least, number.most, Tuning{}.*number.member});
      for (const std::int64_t value : values) {
        numbers.*number.member = value;
        const TuningTable read =
            parse(print_tuning(TuningTable{{{architecture, numbers, std::nullopt}}}));
        EXPECT_EQ(std::get<Tuning>(read.entries.at(0).numbers), numbers) << number.name;
      }
      for (const std::int64_t value : {number.least - 1, number.most + 1}) {
        const auto text = table_of(
            architecture, "{\"" + std::string(number.name) + "\": " + std::to_string(value) + "}");
        EXPECT_FALSE(parse_tuning(text, {})) << text;
      }
    }
  };
  check("x86-64", CpuTuning{});
  check("sm_90", GpuTuning{});
}

TEST(TuningTest, what_is_wrong_is_said) {
  const auto message = [](const std::string& text) {
    const auto table = parse_tuning(text, {});
    EXPECT_FALSE(table) << text;
    return table ? std::string() : table.error().message;
  };
  EXPECT_EQ(message("{"),
            "line 1, column 2: the text ends where a key in double quotes is expected");
  EXPECT_EQ(message(""), "line 1, column 1: the text ends where a value is expected");
  EXPECT_EQ(message("[]"), "not a JSON object");
  EXPECT_EQ(message("{}"), "there is no format");
  EXPECT_EQ(message(R"({"format": 2})"), "format 2; this version reads format 1");
  EXPECT_EQ(message(R"({"format": 1, "entries": 3})"), "there are no entries");
  EXPECT_EQ(message(R"({"format": 1, "entries": [3]})"), "an entry without an architecture");
  EXPECT_EQ(message(table_of("z80", "{}")), "there is no architecture 'z80'");
  EXPECT_EQ(message(table_of("sm_9x", "{}")), "there is no architecture 'sm_9x'");
  EXPECT_EQ(message(table_of("sm_90", "{\"task_bytes\": 1}")),
            "sm_90: there is no number 'task_bytes'");
  EXPECT_EQ(message(table_of("sm_90", "{\"block_warps\": 6}")),
            "sm_90: block_warps is 6; it is a power of two from 2 to 16");
  EXPECT_EQ(message(table_of("x86-64", "{\"task_bytes\": 1.5}")),
            "x86-64: task_bytes is 1.5; it is a whole number from 1 to 1099511627776");
  EXPECT_EQ(message(table_of("x86-64", "{\"task_bytes\": 18446744073709551615}")),
            "x86-64: task_bytes is 18446744073709551615; it is a whole number from 1 to "
            "1099511627776");
  EXPECT_EQ(message(table_of("x86-64", "{\"task_bytes\": \"many\"}")),
            "x86-64: task_bytes is \"many\"; it is a whole number from 1 to 1099511627776");
  EXPECT_EQ(message(table_of("x86-64", "3")), "x86-64: an entry has \"numbers\" and \"measured\"");
  EXPECT_EQ(message(table_of("x86-64", "{}", "true")),
            "x86-64: \"measured\" is null, or has the texts machine, date and benchmark");
}

// ---- where the user's table lies ----

class TuningPathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"CINCH_TUNING", "XDG_CONFIG_HOME"}) unsetenv(name);
    setenv("HOME", "/somebody", 1);
  }
};

TEST_F(TuningPathTest, follows_the_environment) {
  EXPECT_EQ(user_tuning_path(), "/somebody/.config/cinch/tuning.json");
  setenv("XDG_CONFIG_HOME", "/config", 1);
  EXPECT_EQ(user_tuning_path(), "/config/cinch/tuning.json");
  setenv("XDG_CONFIG_HOME", "./config", 1);  // relative: ignored, as the specification demands
  EXPECT_EQ(user_tuning_path(), "/somebody/.config/cinch/tuning.json");
  setenv("CINCH_TUNING", "/a/file", 1);
  EXPECT_EQ(user_tuning_path(), "/a/file");
  setenv("CINCH_TUNING", "off", 1);
  EXPECT_EQ(user_tuning_path(), "");
  unsetenv("CINCH_TUNING");
  unsetenv("XDG_CONFIG_HOME");
  unsetenv("HOME");
  EXPECT_EQ(user_tuning_path(), "");
}

// Read once per process, so all of it is one test.
TEST(UserTuningTest, serves_before_the_built_in_table) {
  const std::string path = ::testing::TempDir() + "cinch_tuning_test.json";
  std::ofstream(path) << R"({"format": 1, "entries": [
    {"architecture": "x86-64-v3", "numbers": {"task_bytes": 77}, "measured": null},
    {"architecture": "sm_91", "numbers": {"service_elements": 5}, "measured": null}]})";
  setenv("CINCH_TUNING", path.c_str(), 1);
  EXPECT_TRUE(user_tuning().is_there);
  EXPECT_FALSE(user_tuning().problem);
  EXPECT_EQ(cpu_tuning("x86-64-v3").task_bytes, 77);
  EXPECT_EQ(cpu_tuning("x86-64").task_bytes,
            std::get<CpuTuning>(builtin_tuning().find("x86-64")->numbers).task_bytes);
  EXPECT_EQ(gpu_tuning("sm_91").service_elements, 5);
  // The next lower one.
  EXPECT_EQ(gpu_tuning("sm_95").service_elements, 5);
  EXPECT_EQ(gpu_tuning("sm_90").service_elements, 4096);
  EXPECT_EQ(gpu_tuning("sm_103").service_elements, 4096);
  EXPECT_EQ(gpu_tuning("sm_20"), GpuTuning{});
  // An architecture of another kind has none of these numbers.
  EXPECT_EQ(cpu_tuning("sm_91"), CpuTuning{});
  std::filesystem::remove(path);
  const auto gone = load_tuning(path);
  ASSERT_FALSE(gone);
  EXPECT_NE(gone.error().message.find(path), std::string::npos);
}

}  // namespace
}  // namespace cinch::rt
